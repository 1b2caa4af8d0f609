/*
 * clock.h
 *     The two clocks: the wall clock, which IDs show and which may step, and the
 *     monotonic one, by which waits are bounded.
 */
#pragma once

#include <cstdint>
#include <ctime>

#include "server/compat.h"

namespace snowflake {

inline std::int64_t wall_clock_us() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

inline std::int64_t wall_clock_ms() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

inline std::int64_t monotonic_us() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

inline std::int64_t monotonic_ms() noexcept { return monotonic_us() / 1000; }

constexpr std::int64_t kPostgresEpochUs =
    static_cast<std::int64_t>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;

/* A finite timestamptz to Unix time and back, both in microseconds. */
constexpr std::int64_t unix_us(TimestampTz time) noexcept { return time + kPostgresEpochUs; }
constexpr TimestampTz timestamptz_of(std::int64_t unix_us) noexcept
{
    return unix_us - kPostgresEpochUs;
}

} /* namespace snowflake */
