/*
 * wait.cpp
 *     Waiting for the wall clock; see wait.h.
 *
 * The next millisecond is near: sleep for most of what is left, spin for the
 * rest, since the kernel wakes a sleeper some 50 us late. A clock that stepped
 * back is far: sleep on the latch, so that cancel and shutdown are noticed, in
 * slices, so that a clock set right again is noticed too.
 */
#include "server/wait.h"

#include <algorithm>
#include <ctime>

#include "server/clock.h"
#include "server/compat.h"

extern "C" {
#include "storage/latch.h"
}

namespace snowflake {
namespace {

constexpr std::int64_t kNearUs = 2000;
constexpr std::int64_t kWakeLatenessUs = 60;
constexpr std::int64_t kLongestSliceMs = 50;

uint32 clock_event()
{
    static uint32 event = 0;
    if (event == 0) {
        event = wait_event("SnowflakeClock");
    }
    return event;
}

void sleep_briefly(std::int64_t us)
{
    timespec length{};
    length.tv_nsec = us * 1000;
    nanosleep(&length, nullptr);
}

void spin_until(std::int64_t unix_us)
{
    const std::int64_t begin = monotonic_us();
    while (wall_clock_us() < unix_us && monotonic_us() - begin < 2 * kWakeLatenessUs) {
    }
}

void sleep_on_latch(std::int64_t left_us)
{
    const std::int64_t ms = std::clamp<std::int64_t>(left_us / 1000, 1, kLongestSliceMs);
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, static_cast<long>(ms),
              clock_event());
    ResetLatch(MyLatch);
}

} /* namespace */

void wait_for_clock(std::int64_t unix_ms)
{
    CHECK_FOR_INTERRUPTS();
    const std::int64_t until_us = unix_ms * 1000;
    const std::int64_t left_us = until_us - wall_clock_us();
    if (left_us <= 0) {
        return;
    }
    if (left_us > kNearUs) {
        sleep_on_latch(left_us - kNearUs / 2);
        CHECK_FOR_INTERRUPTS();
        return;
    }
    pgstat_report_wait_start(clock_event());
    if (left_us > 2 * kWakeLatenessUs) {
        sleep_briefly(left_us - kWakeLatenessUs);
    }
    spin_until(until_us);
    pgstat_report_wait_end();
}

} /* namespace snowflake */
