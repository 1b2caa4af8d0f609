/*
 * machine_ids.h
 *     Which machine IDs an instance may claim: the setting snowflake.machine_ids.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snowflake {

constexpr std::uint32_t kMaxMachineId = 0x7fffffff; /* an SQL integer's */

struct MachineIdRange {
    std::uint32_t low;
    std::uint32_t high; /* inclusive */
};

/* A set of machine IDs; no ranges at all stands for all of them. */
struct MachineIdSet {
    static constexpr std::uint32_t kMaxRanges = 64;

    std::uint32_t count;
    MachineIdRange ranges[kMaxRanges];

    bool all() const noexcept { return count == 0; }
    bool contains(std::uint32_t machine_id) const noexcept;

    /* The greatest ID in the set; 0 where it is all(). */
    std::uint32_t greatest() const noexcept;

    /* True if exactly one machine ID is allowed, as for a StatefulSet's ordinal. */
    bool pinned() const noexcept { return count == 1 && ranges[0].low == ranges[0].high; }
};

/* What is wrong with a text, and where; `message` is a literal. */
struct MachineIdsError {
    const char *message;
    std::size_t offset;
};

/*
 * In: IDs and ranges separated by commas, as in "0-127,200"; spaces around each
 * are allowed, an empty text stands for all.
 * Out: false, and what is wrong, for anything else.
 */
bool parse_machine_ids(std::string_view text, MachineIdSet *set, MachineIdsError *error) noexcept;

} /* namespace snowflake */
