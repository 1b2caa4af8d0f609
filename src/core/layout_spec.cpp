/*
 * layout_spec.cpp
 *     See layout_spec.h. The parser is constexpr, so the presets are written as
 *     specs too and a wrong one does not compile.
 */
#include "core/layout_spec.h"

#include <cstdint>

#include "core/ascii.h"
#include "core/civil_time.h"

namespace snowflake {
namespace {

constexpr int kMaxBits = 63;    /* an ID is a bigint that is not negative */
constexpr int kMaxIntBits = 31; /* machine ID and sequence are SQL integers */
constexpr int kMaxOffsetHours = 15;

constexpr bool starts_with(std::string_view text, std::string_view prefix) noexcept
{
    return text.substr(0, prefix.size()) == prefix;
}

/* Reads a text from left to right. A step that does not fit fails and so do all after it. */
class Scanner {
  public:
    constexpr explicit Scanner(std::string_view text) noexcept : text_(text) {}

    constexpr bool at_end() const noexcept { return text_.empty(); }
    constexpr bool next_is(char c) const noexcept { return !text_.empty() && text_.front() == c; }
    constexpr bool ok() const noexcept { return ok_; }

    constexpr bool skip(char c) noexcept
    {
        if (!next_is(c)) {
            return false;
        }
        text_.remove_prefix(1);
        return true;
    }

    constexpr void expect(char c) noexcept { ok_ = skip(c) && ok_; }

    /* A number of exactly `digits` digits, in min .. max. */
    constexpr int number(int digits, int min, int max) noexcept
    {
        int value = 0;
        for (int i = 0; i < digits; ++i) {
            if (text_.empty() || !is_digit(text_.front())) {
                ok_ = false;
                return min;
            }
            value = value * 10 + (text_.front() - '0');
            text_.remove_prefix(1);
        }
        ok_ = ok_ && value >= min && value <= max;
        return value;
    }

    /* One to three decimals of a second, as ms. */
    constexpr int milliseconds() noexcept
    {
        int value = number(1, 0, 9) * 100;
        if (!text_.empty() && is_digit(text_.front())) {
            value += number(1, 0, 9) * 10;
        }
        if (!text_.empty() && is_digit(text_.front())) {
            value += number(1, 0, 9);
        }
        return value;
    }

  private:
    std::string_view text_;
    bool ok_ = true;
};

struct ParsedEpoch {
    std::int64_t unix_ms;
    bool ok;
};

/* 2024-01-01T00:00:00[.000](Z|+00:00) */
constexpr ParsedEpoch parse_epoch(std::string_view text) noexcept
{
    Scanner scanner(text);
    CivilTime time{};
    time.year = scanner.number(4, 1, 9999);
    scanner.expect('-');
    time.month = scanner.number(2, 1, 12);
    scanner.expect('-');
    time.day = scanner.number(2, 1, 31);
    scanner.expect('T');
    time.hour = scanner.number(2, 0, 23);
    scanner.expect(':');
    time.minute = scanner.number(2, 0, 59);
    scanner.expect(':');
    time.second = scanner.number(2, 0, 59);
    if (scanner.skip('.')) {
        time.millisecond = scanner.milliseconds();
    }
    int offset_minutes = 0;
    if (!scanner.skip('Z')) {
        const int sign = scanner.next_is('-') ? -1 : 1;
        scanner.expect(sign < 0 ? '-' : '+');
        offset_minutes = scanner.number(2, 0, kMaxOffsetHours) * 60;
        scanner.expect(':');
        offset_minutes = sign * (offset_minutes + scanner.number(2, 0, 59));
    }
    if (!scanner.ok() || !scanner.at_end() || time.day > days_in_month(time.year, time.month)) {
        return {0, false};
    }
    return {unix_ms_of(time) - offset_minutes * kMsPerMinute, true};
}

/* The years that a spec can say, so that format_layout can write every epoch. */
constexpr std::int64_t kFirstEpoch = unix_ms_of({1, 1, 1, 0, 0, 0, 0});
constexpr std::int64_t kLastEpoch = unix_ms_of({9999, 12, 31, 23, 59, 59, 999});

constexpr bool parse_unit(std::string_view text, Unit &unit) noexcept
{
    if (text == "ms") {
        unit = Unit::Millisecond;
    } else if (text == "10ms") {
        unit = Unit::Centisecond;
    } else if (text == "s") {
        unit = Unit::Second;
    } else {
        return false;
    }
    return true;
}

/* A problem and where it is. */
struct Complaint {
    SpecProblem problem = SpecProblem::None;
    std::string_view where{};
};

/* The width of a field, as format_layout would write it. */
constexpr bool parse_width(std::string_view digits, int &width) noexcept
{
    if (digits.empty() || digits.size() > 2 || (digits.size() == 2 && digits.front() == '0')) {
        return false;
    }
    width = 0;
    for (const char c : digits) {
        if (!is_digit(c)) {
            return false;
        }
        width = width * 10 + (c - '0');
    }
    return true;
}

constexpr BitField *field_of(Layout &layout, char letter) noexcept
{
    switch (letter) {
        case 't':
            return &layout.timestamp;
        case 'm':
            return &layout.machine_id;
        case 's':
            return &layout.sequence;
        default:
            return nullptr;
    }
}

/* t41,m10,s12: each of the three once. `list` is what follows "fields=". */
constexpr Complaint parse_fields(std::string_view list, std::string_view word,
                                 Layout &layout) noexcept
{
    std::string_view seen_letters[3]{};
    int seen = 0;
    int total = 0;
    for (std::string_view rest = list;;) {
        const std::size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        int width = 0;
        BitField *field = item.empty() ? nullptr : field_of(layout, item.front());
        if (field == nullptr || !parse_width(after(item, 1), width)) {
            return {SpecProblem::BadField, item.empty() ? word : item};
        }
        for (int i = 0; i < seen; ++i) {
            if (seen_letters[i].front() == item.front()) {
                return {SpecProblem::RepeatedField, item};
            }
        }
        if (field == &layout.timestamp ? width > kMaxBits : width > kMaxIntBits) {
            return {SpecProblem::FieldTooWide, item};
        }
        if (field == &layout.timestamp && width == 0) {
            return {SpecProblem::NoTimestamp, item};
        }
        seen_letters[seen++] = item;
        total += width;
        field->bits = static_cast<std::uint8_t>(width);
        if (comma == std::string_view::npos) {
            break;
        }
        rest.remove_prefix(comma + 1);
    }
    if (seen < 3) {
        return {SpecProblem::MissingField, word};
    }
    if (total > kMaxBits) {
        return {SpecProblem::TooManyBits, word};
    }
    int shift = total;
    for (const std::string_view letter : seen_letters) {
        BitField *field = field_of(layout, letter.front());
        shift -= field->bits;
        *field = make_field(field->bits, shift);
    }
    return {};
}

constexpr ParsedSpec fail(SpecProblem problem, std::string_view where) noexcept
{
    return {Layout{}, problem, where};
}

constexpr ParsedSpec parse(std::string_view spec) noexcept
{
    constexpr std::string_view kEpoch = "epoch=";
    constexpr std::string_view kUnit = "unit=";
    constexpr std::string_view kFields = "fields=";
    std::string_view epoch_word{};
    std::string_view unit_word{};
    std::string_view fields_word{};
    Layout layout{};

    for (std::size_t at = 0; at < spec.size();) {
        if (is_space(spec[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < spec.size() && !is_space(spec[end])) {
            ++end;
        }
        const std::string_view word = after(spec, at).substr(0, end - at);
        at = end;

        std::string_view *slot = starts_with(word, kEpoch)    ? &epoch_word
                                 : starts_with(word, kUnit)   ? &unit_word
                                 : starts_with(word, kFields) ? &fields_word
                                                              : nullptr;
        if (slot == nullptr) {
            return fail(SpecProblem::UnknownWord, word);
        }
        if (!slot->empty()) {
            return fail(SpecProblem::RepeatedWord, word);
        }
        *slot = word;
    }

    const std::string_view at_end = after(spec, spec.size());
    if (epoch_word.empty()) {
        return fail(SpecProblem::MissingEpoch, at_end);
    }
    const ParsedEpoch epoch = parse_epoch(after(epoch_word, kEpoch.size()));
    if (!epoch.ok || epoch.unix_ms < kFirstEpoch || epoch.unix_ms > kLastEpoch) {
        return fail(SpecProblem::BadEpoch, epoch_word);
    }
    layout.epoch_ms = epoch.unix_ms;
    if (unit_word.empty()) {
        return fail(SpecProblem::MissingUnit, at_end);
    }
    if (!parse_unit(after(unit_word, kUnit.size()), layout.unit)) {
        return fail(SpecProblem::BadUnit, unit_word);
    }
    /* else an ID's time would not be a whole number of units on the clock, as its friendly form is
     */
    if (layout.epoch_ms % unit_ms(layout.unit) != 0) {
        return fail(SpecProblem::EpochOffUnit, epoch_word);
    }
    if (fields_word.empty()) {
        return fail(SpecProblem::MissingFields, at_end);
    }
    const Complaint complaint =
        parse_fields(after(fields_word, kFields.size()), fields_word, layout);
    if (complaint.problem != SpecProblem::None) {
        return fail(complaint.problem, complaint.where);
    }
    return {layout, SpecProblem::None, {}};
}

constexpr Preset preset(std::string_view name, std::string_view spec,
                        std::string_view source) noexcept
{
    const ParsedSpec parsed = parse(spec);
    return {name, parsed.ok() ? parsed.layout : Layout{}, source};
}

constexpr Preset kPresets[] = {
    preset("default", "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m10,s12",
           "the built-in generator; fields as in Twitter's snowflake"),

    /* machine ID: 5 bits of data center, then 5 bits of worker */
    preset("twitter", "epoch=2010-11-04T01:42:54.657Z unit=ms fields=t41,m10,s12",
           "github.com/twitter-archive/snowflake, IdWorker.scala: twepoch = 1288834974657"),

    /* machine ID: 5 bits of worker, then 5 bits of process; 42 bits of time with the sign bit */
    preset("discord", "epoch=2015-01-01T00:00:00Z unit=ms fields=t41,m10,s12",
           "discord.com/developers/docs/reference#snowflakes: epoch 1420070400000"),

    preset("cosid", "epoch=2019-12-24T16:00:00Z unit=ms fields=t41,m10,s12",
           "github.com/Ahoo-Wang/CosId, CosId.COSID_EPOCH = 1577203200000, MillisecondSnowflakeId"),
    preset("cosid_second", "epoch=2019-12-24T16:00:00Z unit=s fields=t31,m10,s22",
           "github.com/Ahoo-Wang/CosId, CosId.COSID_EPOCH_SECOND = 1577203200, SecondSnowflakeId"),

    /* no public source was found for these two */
    preset("gokit", "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m10,s12",
           "unverified, no public source: epoch 2026-01-01, fields as in Twitter's snowflake"),
    preset("voltro", "epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12",
           "unverified, no public source: epoch 2024-01-01, fields as in Twitter's snowflake"),

    /* machine ID: the logical shard; 41 bits of time with the sign bit */
    preset("instagram", "epoch=2011-08-24T21:07:01.721Z unit=ms fields=t40,m13,s10",
           "Instagram Engineering, Sharding & IDs at Instagram: our_epoch 1314220021721"),

    /* 48 bits of time with the sign bit; the sequence is a counter added to a hash */
    preset("mastodon", "epoch=1970-01-01T00:00:00Z unit=ms fields=t47,s16,m0",
           "github.com/mastodon/mastodon, lib/mastodon/snowflake.rb: 6 bytes of ms, 2 of sequence"),

    preset(
        "sonyflake", "epoch=2014-09-01T00:00:00Z unit=10ms fields=t39,s8,m16",
        "github.com/sony/sonyflake, sonyflake.go: BitLenTime 39, BitLenSequence 8, 16 of machine"),

    /* 2016-05-20 in China, where the generator's own constant puts it */
    preset("baidu", "epoch=2016-05-20T00:00:00+08:00 unit=s fields=t28,m22,s13",
           "github.com/baidu/uid-generator, DefaultUidGenerator: 28/22/13, epoch 1463673600000"),

    /*
     * Its README and IDs of early releases have node and counter the other way
     * round: "epoch=2023-01-01T00:00:00Z unit=ms fields=t41,s12,m10" reads those.
     */
    preset("pgedge", "epoch=2023-01-01T00:00:00Z unit=ms fields=t41,m10,s12",
           "github.com/pgEdge/snowflake, snowflake.c: epoch 1672531200 s, node << 12, count << 0"),

    /* at most 2^53 - 1, JavaScript's Number.MAX_SAFE_INTEGER */
    preset("js_safe", "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m3,s9",
           "fields as in CosId's SafeJavaScriptSnowflakeId, epoch of the default layout"),
};

constexpr bool all_presets_parse() noexcept
{
    for (const Preset &each : kPresets) {
        if (each.layout.timestamp.bits == 0) {
            return false;
        }
    }
    return true;
}

static_assert(all_presets_parse(), "every preset's spec is right");
static_assert(kPresets[0].layout == kDefaultLayout, "the built-in layout is the preset `default`");

} /* namespace */

const char *explain(SpecProblem problem) noexcept
{
    switch (problem) {
        case SpecProblem::None:
            return "Nothing is wrong.";
        case SpecProblem::UnknownWord:
            return "The words of a layout are \"epoch=\", \"unit=\" and \"fields=\".";
        case SpecProblem::RepeatedWord:
            return "Each word of a layout stands once.";
        case SpecProblem::MissingEpoch:
            return "The word \"epoch=\" is missing.";
        case SpecProblem::MissingUnit:
            return "The word \"unit=\" is missing.";
        case SpecProblem::MissingFields:
            return "The word \"fields=\" is missing.";
        case SpecProblem::BadEpoch:
            return "The epoch is a time such as \"2024-01-01T00:00:00Z\" or "
                   "\"2024-01-01T08:00:00.000+08:00\", in the years 1 to 9999.";
        case SpecProblem::EpochOffUnit:
            return "The epoch must be a whole number of units.";
        case SpecProblem::BadUnit:
            return "The unit is \"ms\", \"10ms\" or \"s\".";
        case SpecProblem::BadField:
            return "A field is \"t\" (timestamp), \"m\" (machine ID) or \"s\" (sequence) "
                   "and its width in bits.";
        case SpecProblem::RepeatedField:
            return "Each of the fields \"t\", \"m\" and \"s\" stands once.";
        case SpecProblem::MissingField:
            return "The fields \"t\", \"m\" and \"s\" must all be there; "
                   "\"m0\" stands for IDs without a machine ID.";
        case SpecProblem::NoTimestamp:
            return "The timestamp needs at least 1 bit.";
        case SpecProblem::FieldTooWide:
            return "A timestamp has at most 63 bits, a machine ID or a sequence at most 31.";
        case SpecProblem::TooManyBits:
            return "The fields may have at most 63 bits together.";
    }
    return "";
}

ParsedSpec parse_layout(std::string_view spec) noexcept { return parse(spec); }

SpecText format_layout(const Layout &layout) noexcept
{
    SpecText text;
    const CivilTime epoch = civil_time_of(layout.epoch_ms);
    text.append("epoch=");
    text.append_number(static_cast<std::uint64_t>(epoch.year), 4);
    text.append('-');
    text.append_number(static_cast<std::uint64_t>(epoch.month), 2);
    text.append('-');
    text.append_number(static_cast<std::uint64_t>(epoch.day), 2);
    text.append('T');
    text.append_number(static_cast<std::uint64_t>(epoch.hour), 2);
    text.append(':');
    text.append_number(static_cast<std::uint64_t>(epoch.minute), 2);
    text.append(':');
    text.append_number(static_cast<std::uint64_t>(epoch.second), 2);
    if (epoch.millisecond != 0) {
        text.append('.');
        text.append_number(static_cast<std::uint64_t>(epoch.millisecond), 3);
    }
    text.append("Z unit=");
    text.append(unit_name(layout.unit));
    text.append(" fields=");

    /* from the high bits down; one without bits sorts below those that have some */
    struct Named {
        char letter;
        BitField field;

        bool is_above(const Named &other) const noexcept
        {
            return field.bits == 0         ? false
                   : other.field.bits == 0 ? true
                                           : field.shift > other.field.shift;
        }
    };
    Named fields[] = {{'t', layout.timestamp}, {'m', layout.machine_id}, {'s', layout.sequence}};
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < 2; ++i) {
            if (fields[i + 1].is_above(fields[i])) {
                const Named lower = fields[i];
                fields[i] = fields[i + 1];
                fields[i + 1] = lower;
            }
        }
    }
    for (const Named &each : fields) {
        if (each.letter != fields[0].letter) {
            text.append(',');
        }
        text.append(each.letter);
        text.append_number(each.field.bits);
    }
    return text;
}

PresetList presets() noexcept { return {kPresets, sizeof(kPresets) / sizeof(kPresets[0])}; }

const Preset *find_preset(std::string_view name) noexcept
{
    for (const Preset &each : kPresets) {
        if (each.name == name) {
            return &each;
        }
    }
    return nullptr;
}

const Preset *find_preset(const Layout &layout) noexcept
{
    for (const Preset &each : kPresets) {
        if (each.layout == layout) {
            return &each;
        }
    }
    return nullptr;
}

} /* namespace snowflake */
