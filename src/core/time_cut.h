/*
 * time_cut.h
 *     Where a point in time cuts through the IDs of a layout.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 *
 * Only for layouts that sort by time. There, the IDs of times before some point
 * are all those up to a number, however precise the point is and whatever the
 * machine IDs and sequences are:
 *
 *     0 ... last_before() | first_after() ...
 */
#pragma once

#include <cstdint>

#include "core/layout.h"

namespace snowflake {

/* A point in time, more precise than Unix time in ms. */
struct Instant {
    std::int64_t unix_ms;
    bool begins_ms; /* or else it lies later in this ms */
};

/* On which side of the cut the IDs are whose time is the very instant. */
enum class Meeting { Before, After };

struct TimeCut {
    std::uint64_t units; /* of ID time that lie before the cut: 0 .. total */
    std::uint64_t total; /* units of ID time that there are at all: up to 2^63 */
    std::uint8_t shift;  /* of the timestamp in an ID */

    constexpr bool has_ids_before() const noexcept { return units > 0; }
    constexpr bool has_ids_after() const noexcept { return units < total; }

    /* The greatest ID before the cut and the least one after it; there must be one. */
    constexpr std::int64_t last_before() const noexcept
    {
        return static_cast<std::int64_t>((units << shift) - 1);
    }
    constexpr std::int64_t first_after() const noexcept
    {
        return static_cast<std::int64_t>(units << shift);
    }
};

/* The cut that leaves all IDs before it. last_time, up to timestamp.max(), is the last that counts.
 */
constexpr TimeCut cut_at_end(const Layout &layout, std::int64_t last_time) noexcept
{
    const std::uint64_t total = static_cast<std::uint64_t>(last_time) + 1;
    return {total, total, layout.timestamp.shift};
}

/* The cut that leaves all IDs after it. */
constexpr TimeCut cut_at_begin(const Layout &layout, std::int64_t last_time) noexcept
{
    TimeCut cut = cut_at_end(layout, last_time);
    cut.units = 0;
    return cut;
}

constexpr TimeCut cut_at(const Layout &layout, std::int64_t last_time, Instant instant,
                         Meeting meeting) noexcept
{
    const std::int64_t id_time = layout.from_unix_ms(instant.unix_ms);
    if (id_time < 0) {
        return cut_at_begin(layout, last_time);
    }
    TimeCut cut = cut_at_end(layout, last_time);
    if (id_time <= last_time) {
        const bool begins_unit = instant.begins_ms && layout.to_unix_ms(id_time) == instant.unix_ms;
        const bool unit_is_after = begins_unit && meeting == Meeting::After;
        cut.units = static_cast<std::uint64_t>(id_time) + (unit_is_after ? 0 : 1);
    }
    return cut;
}

} /* namespace snowflake */
