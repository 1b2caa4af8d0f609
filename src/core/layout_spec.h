/*
 * layout_spec.h
 *     Layouts as text, and the layouts that have a name.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 *
 * A spec is three words, in any order:
 *
 *     epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12
 *
 *     epoch   ISO 8601, seconds with up to three decimals, then Z or an offset
 *             such as +08:00; a whole number of units since the Unix epoch
 *     unit    ms, 10ms or s: how long one step of ID time lasts
 *     fields  timestamp, machine ID and sequence with their widths in bits, from
 *             the high bits down; at most 63 bits together
 *
 * Machine IDs and sequences are SQL integers, so neither field is wider than 31
 * bits. Either may have no bits at all; a layout without machine IDs can be read
 * but not generated (see Layout::can_generate).
 */
#pragma once

#include <cstddef>
#include <string_view>

#include "core/fixed_text.h"
#include "core/layout.h"

namespace snowflake {

/* What is wrong with a spec. */
enum class SpecProblem {
    None,
    UnknownWord,
    RepeatedWord,
    MissingEpoch,
    MissingUnit,
    MissingFields,
    BadEpoch,
    EpochOffUnit,
    BadUnit,
    BadField,
    RepeatedField,
    MissingField,
    NoTimestamp,
    FieldTooWide,
    TooManyBits,
};

/* One sentence about a problem, to stand after the word that has it. */
const char *explain(SpecProblem problem) noexcept;

struct ParsedSpec {
    Layout layout; /* valid if the problem is None */
    SpecProblem problem;
    std::string_view
        where; /* the part of the spec that is wrong; empty at its end if one is missing */

    constexpr bool ok() const noexcept { return problem == SpecProblem::None; }
};

ParsedSpec parse_layout(std::string_view spec) noexcept;

/* "epoch=9999-12-31T23:59:59.999Z unit=10ms fields=t63,m31,s31" is as long as it gets. */
using SpecText = FixedText<64>;

/*
 * The canonical spec of a layout: equal layouts have equal specs. The epoch is in
 * UTC, and fields without bits come last.
 */
SpecText format_layout(const Layout &layout) noexcept;

/* A layout with a name. */
struct Preset {
    std::string_view name;
    Layout layout;
    std::string_view source; /* where its epoch and fields are written down */
};

struct PresetList {
    const Preset *first;
    std::size_t count;

    const Preset *begin() const noexcept { return first; }
    const Preset *end() const noexcept { return first + count; }
};

PresetList presets() noexcept;

/* The preset of a name, or null. */
const Preset *find_preset(std::string_view name) noexcept;

/* The first preset that is this layout, or null. */
const Preset *find_preset(const Layout &layout) noexcept;

} /* namespace snowflake */
