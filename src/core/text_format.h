/*
 * text_format.h
 *     IDs as text: base 62, base 36 and the friendly form.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception. All
 * parsers are strict: what they accept, they would have written themselves (but
 * for leading zeros in base 62 and base 36, which may be left out).
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/civil_time.h"
#include "core/fixed_text.h"
#include "core/layout.h"

namespace snowflake {

/*
 * Digits are 0-9, A-Z and, in base 62, a-z: the order of ASCII. With leading
 * zeros up to the width of the greatest ID, texts sort like the IDs, byte by byte.
 */
enum class Radix : std::uint8_t { Base36 = 36, Base62 = 62 };

/* The number of digits of the greatest ID. */
constexpr std::size_t radix_width(Radix radix) noexcept
{
    std::size_t digits = 0;
    for (auto rest = std::numeric_limits<std::int64_t>::max(); rest > 0;
         rest /= static_cast<std::int64_t>(radix)) {
        ++digits;
    }
    return digits;
}

using RadixText = FixedText<radix_width(Radix::Base36)>;

/* The ID, which must not be negative, with radix_width() digits. */
RadixText format_radix(std::int64_t id, Radix radix) noexcept;

enum class RadixProblem { None, Empty, TooLong, BadDigit, OutOfRange };

struct ParsedRadix {
    std::int64_t id;
    RadixProblem problem;
    std::size_t position; /* of the bad digit */

    constexpr bool ok() const noexcept { return problem == RadixProblem::None; }
};

/* From one to radix_width() digits. */
ParsedRadix parse_radix(std::string_view text, Radix radix) noexcept;

/*
 * The friendly form of CosId (https://github.com/Ahoo-Wang/CosId): local time,
 * machine ID and sequence, such as 20210623131730192-1-0. Time is written as
 * finely as the unit: yyyyMMddHHmmss, then 3 decimals for ms, 2 for 10 ms, none
 * for s. So its length tells the unit, and years have four digits.
 */
struct Friendly {
    CivilTime time; /* in the zone of the reader or writer */
    std::int64_t machine_id;
    std::int64_t sequence;
};

/* Decimals of a second in the friendly form. */
constexpr int friendly_decimals(Unit unit) noexcept
{
    return unit == Unit::Millisecond ? 3 : unit == Unit::Centisecond ? 2 : 0;
}

constexpr int kLastFriendlyYear = 9999;

/* A machine ID and a sequence have up to 10 digits. */
using FriendlyText = FixedText<17 + 1 + 10 + 1 + 10>;

/* The year must be in 0 .. kLastFriendlyYear. */
FriendlyText format_friendly(const Friendly &friendly, Unit unit) noexcept;

enum class FriendlyProblem {
    None,
    BadShape,     /* not digits-digits-digits, or the time has not the digits it should */
    BadTime,      /* no such date or time of day */
    BadMachineId, /* does not fit the layout */
    BadSequence,
};

struct ParsedFriendly {
    Friendly friendly;
    FriendlyProblem problem;
    std::string_view where; /* the part of the text that is wrong; empty at its end */

    constexpr bool ok() const noexcept { return problem == FriendlyProblem::None; }
};

ParsedFriendly parse_friendly(std::string_view text, const Layout &layout) noexcept;

} /* namespace snowflake */
