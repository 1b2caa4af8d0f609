/*
 * text_format.cpp
 *     See text_format.h.
 */
#include "core/text_format.h"

#include <algorithm>

#include "core/ascii.h"

namespace snowflake {
namespace {

constexpr std::string_view kDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static_assert(kDigits.size() == static_cast<std::size_t>(Radix::Base62), "a digit for each value");

/* Digits only, as the callers make sure, and few enough not to overflow. */
std::int64_t number(std::string_view digits) noexcept
{
    std::int64_t value = 0;
    for (const char c : digits) {
        value = value * 10 + (c - '0');
    }
    return value;
}

/* Takes the first `count` characters off a text. */
std::string_view take(std::string_view &text, std::size_t count) noexcept
{
    const std::string_view taken = text.substr(0, count);
    text.remove_prefix(taken.size());
    return taken;
}

std::string_view leading_digits(std::string_view text) noexcept
{
    const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
    return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/* A number as it is written: no leading zeros, and not longer than any field's greatest value. */
bool is_number_up_to(std::string_view digits, std::int64_t max, std::int64_t &value) noexcept
{
    constexpr std::size_t kMaxDigits = 10; /* of 2^31 - 1 */
    if (digits.size() > kMaxDigits) {
        return false;
    }
    value = number(digits);
    return value <= max;
}

constexpr ParsedFriendly fail(FriendlyProblem problem, std::string_view where) noexcept
{
    return {Friendly{}, problem, where};
}

} /* namespace */

RadixText format_radix(std::int64_t id, Radix radix) noexcept
{
    const auto base = static_cast<std::uint64_t>(radix);
    const std::size_t width = radix_width(radix);
    char digits[radix_width(Radix::Base36)];
    auto rest = static_cast<std::uint64_t>(id);
    for (std::size_t i = width; i > 0; --i) {
        digits[i - 1] = kDigits[rest % base];
        rest /= base;
    }
    RadixText text;
    text.append(std::string_view(digits, width));
    return text;
}

ParsedRadix parse_radix(std::string_view text, Radix radix) noexcept
{
    const auto base = static_cast<std::int64_t>(radix);
    if (text.empty()) {
        return {0, RadixProblem::Empty, 0};
    }
    std::int64_t id = 0;
    bool overflow = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const std::size_t digit = kDigits.substr(0, static_cast<std::size_t>(base)).find(text[i]);
        if (digit == std::string_view::npos) {
            return {0, RadixProblem::BadDigit, i};
        }
        overflow = overflow || __builtin_mul_overflow(id, base, &id) ||
                   __builtin_add_overflow(id, static_cast<std::int64_t>(digit), &id);
    }
    if (text.size() > radix_width(radix)) {
        return {0, RadixProblem::TooLong, 0};
    }
    if (overflow) {
        return {0, RadixProblem::OutOfRange, 0};
    }
    return {id, RadixProblem::None, 0};
}

FriendlyText format_friendly(const Friendly &friendly, Unit unit) noexcept
{
    const CivilTime &time = friendly.time;
    const auto append = [](FriendlyText &text, std::int64_t value, int width) {
        text.append_number(static_cast<std::uint64_t>(value), width);
    };
    FriendlyText text;
    append(text, time.year, 4);
    append(text, time.month, 2);
    append(text, time.day, 2);
    append(text, time.hour, 2);
    append(text, time.minute, 2);
    append(text, time.second, 2);
    if (unit != Unit::Second) {
        append(text, time.millisecond / unit_ms(unit), friendly_decimals(unit));
    }
    text.append('-');
    append(text, friendly.machine_id, 1);
    text.append('-');
    append(text, friendly.sequence, 1);
    return text;
}

ParsedFriendly parse_friendly(std::string_view text, const Layout &layout) noexcept
{
    constexpr std::size_t kDigitsToSeconds = 14; /* yyyyMMddHHmmss */

    /* the three parts: digits, with a hyphen between them */
    std::string_view parts[3];
    std::string_view rest = text;
    for (std::string_view &part : parts) {
        if (&part != parts) {
            if (rest.empty() || rest.front() != '-') {
                return fail(FriendlyProblem::BadShape, rest);
            }
            rest.remove_prefix(1);
        }
        part = take(rest, leading_digits(rest).size());
        const bool is_time = &part == parts;
        const bool leading_zero = part.size() > 1 && part.front() == '0';
        if (part.empty()) {
            return fail(FriendlyProblem::BadShape, rest);
        }
        if (!is_time && leading_zero) {
            return fail(FriendlyProblem::BadShape, part);
        }
    }
    if (!rest.empty()) {
        return fail(FriendlyProblem::BadShape, rest);
    }

    std::string_view digits = parts[0];
    const auto decimals = static_cast<std::size_t>(friendly_decimals(layout.unit));
    if (digits.size() != kDigitsToSeconds + decimals) {
        return fail(FriendlyProblem::BadShape, digits);
    }
    Friendly friendly{};
    CivilTime &time = friendly.time;
    time.year = static_cast<int>(number(take(digits, 4)));
    time.month = static_cast<int>(number(take(digits, 2)));
    time.day = static_cast<int>(number(take(digits, 2)));
    time.hour = static_cast<int>(number(take(digits, 2)));
    time.minute = static_cast<int>(number(take(digits, 2)));
    time.second = static_cast<int>(number(take(digits, 2)));
    time.millisecond = static_cast<int>(number(digits) * unit_ms(layout.unit));
    if (time.month < 1 || time.month > 12 || time.day < 1 ||
        time.day > days_in_month(time.year, time.month) || time.hour > 23 || time.minute > 59 ||
        time.second > 59) {
        return fail(FriendlyProblem::BadTime, parts[0]);
    }
    if (!is_number_up_to(parts[1], layout.machine_id.max(), friendly.machine_id)) {
        return fail(FriendlyProblem::BadMachineId, parts[1]);
    }
    if (!is_number_up_to(parts[2], layout.sequence.max(), friendly.sequence)) {
        return fail(FriendlyProblem::BadSequence, parts[2]);
    }
    return {friendly, FriendlyProblem::None, {}};
}

} /* namespace snowflake */
