/*
 * layout_test.cpp
 *     Fields in an ID, and ID time against Unix time.
 */
#include "core/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/civil_time.h"
#include "core/layout_spec.h"
#include "random_layouts.h"

namespace snowflake {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr int kRounds = 20000;

TEST(LayoutTest, TheBuiltInLayoutFillsAllBitsButTheSign)
{
    EXPECT_EQ(kDefaultLayout.max_id(), kMax);
    EXPECT_EQ(kDefaultLayout.compose({kDefaultLayout.timestamp.max(), 1023, 4095}), kMax);
    EXPECT_EQ(kDefaultLayout.compose({1, 0, 0}), std::int64_t{1} << 22);
    EXPECT_EQ(kDefaultLayout.compose({0, 1, 0}), 1 << 12);
    EXPECT_EQ(kDefaultLayout.compose({0, 0, 1}), 1);
}

TEST(LayoutTest, ComposingAndDecomposingAreInverses)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const Layout layout = random.layout();
        SCOPED_TRACE(format_layout(layout).c_str());

        const Parts parts = random.parts(layout);
        const std::int64_t id = layout.compose(parts);
        ASSERT_TRUE(layout.contains(id));
        const Parts again = layout.decompose(id);
        ASSERT_EQ(again.timestamp, parts.timestamp);
        ASSERT_EQ(again.machine_id, parts.machine_id);
        ASSERT_EQ(again.sequence, parts.sequence);

        const std::int64_t other = random.up_to(layout.max_id());
        ASSERT_EQ(layout.compose(layout.decompose(other)), other);
    }
}

TEST(LayoutTest, ATickAndItsPartsMakeTheSameId)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const Layout layout = random.layout();
        SCOPED_TRACE(format_layout(layout).c_str());
        if (layout.timestamp.bits + layout.sequence.bits > 63) {
            continue;
        }
        const Parts parts = random.parts(layout);
        const std::uint64_t tick =
            layout.first_tick(parts.timestamp) + static_cast<std::uint64_t>(parts.sequence);
        ASSERT_EQ(layout.compose_tick(tick, static_cast<std::uint64_t>(parts.machine_id)),
                  layout.compose(parts));
        ASSERT_EQ(layout.tick_time(tick), parts.timestamp);
    }
}

TEST(LayoutTest, ContainsExactlyTheIdsOfItsBits)
{
    const Layout layout = make_layout(0, Unit::Millisecond, 41, 3, 9);
    EXPECT_TRUE(layout.contains(0));
    EXPECT_TRUE(layout.contains((std::int64_t{1} << 53) - 1));
    EXPECT_FALSE(layout.contains(std::int64_t{1} << 53));
    EXPECT_FALSE(layout.contains(-1));
    EXPECT_FALSE(layout.contains(kMin));
}

TEST(LayoutTest, UnixTimeIsRoundedDownToTheUnit)
{
    const Layout seconds = make_layout(10000, Unit::Second, 31, 10, 22);
    EXPECT_EQ(seconds.from_unix_ms(10000), 0);
    EXPECT_EQ(seconds.from_unix_ms(10999), 0);
    EXPECT_EQ(seconds.from_unix_ms(11000), 1);
    EXPECT_EQ(seconds.from_unix_ms(9999), -1) << "before the epoch too";
    EXPECT_EQ(seconds.from_unix_ms(9000), -1);
    EXPECT_EQ(seconds.from_unix_ms(8999), -2);

    const Layout centiseconds = make_layout(0, Unit::Centisecond, 39, 16, 8);
    EXPECT_EQ(centiseconds.from_unix_ms(19), 1);
    EXPECT_EQ(centiseconds.from_unix_ms(-1), -1);
}

TEST(LayoutTest, AUnitBeginsWhereUnixTimeEntersIt)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const Layout layout = random.layout();
        SCOPED_TRACE(format_layout(layout).c_str());
        const std::int64_t id_time = random.in(-(std::int64_t{1} << 40), std::int64_t{1} << 40);
        const std::int64_t unix_ms = layout.to_unix_ms(id_time);
        ASSERT_EQ(layout.from_unix_ms(unix_ms), id_time);
        ASSERT_EQ(layout.from_unix_ms(unix_ms + unit_ms(layout.unit) - 1), id_time);
        ASSERT_EQ(layout.from_unix_ms(unix_ms - 1), id_time - 1);
    }
}

TEST(LayoutTest, TimesThatOverflowStayAtTheEndOfInt64)
{
    const Layout layout = make_layout(kDefaultEpochMs, Unit::Second, 63, 0, 0);
    EXPECT_EQ(layout.to_unix_ms(layout.timestamp.max()), kMax);
    EXPECT_EQ(layout.to_unix_ms(kMin), kMin);
    EXPECT_EQ(layout.to_unix_ms(kMax / 1000), kMax) << "the epoch itself overflows it";

    const Layout early = make_layout(-1000, Unit::Millisecond, 41, 10, 12);
    EXPECT_EQ(early.from_unix_ms(kMax), kMax);
    const Layout late = make_layout(1000, Unit::Millisecond, 41, 10, 12);
    EXPECT_EQ(late.from_unix_ms(kMin), kMin);
}

TEST(LayoutTest, LayoutsThatMeanTheSameAreEqual)
{
    const Layout no_machine = make_layout(0, Unit::Millisecond, 47, 0, 16);
    EXPECT_EQ(no_machine.machine_id.shift, 0);
    EXPECT_TRUE(parse_layout("epoch=1970-01-01T00:00:00Z unit=ms fields=t47,m0,s16").layout ==
                parse_layout("epoch=1970-01-01T00:00:00Z unit=ms fields=m0,t47,s16").layout);
    EXPECT_FALSE(no_machine == make_layout(1, Unit::Millisecond, 47, 0, 16));
    EXPECT_FALSE(no_machine == make_layout(0, Unit::Second, 47, 0, 16));
    EXPECT_FALSE(no_machine == make_layout(0, Unit::Millisecond, 47, 1, 15));
}

TEST(LayoutTest, OnlyATimestampOnTopWithMachineIdsCanGenerate)
{
    const auto can_generate = [](const char *fields) {
        const std::string spec = std::string("epoch=2026-01-01T00:00:00Z unit=ms fields=") + fields;
        return parse_layout(spec).layout.can_generate();
    };
    EXPECT_TRUE(can_generate("t41,m10,s12"));
    EXPECT_TRUE(can_generate("t39,s8,m16"));
    EXPECT_TRUE(can_generate("t41,m3,s0"));
    EXPECT_TRUE(can_generate("t29,m30,s4"));
    EXPECT_FALSE(can_generate("t28,m31,s4"));
    EXPECT_FALSE(can_generate("t47,m0,s16"));
    EXPECT_FALSE(can_generate("m10,t41,s12"));
    EXPECT_FALSE(can_generate("s12,m10,t41"));
}

TEST(CivilTimeTest, KnownDays)
{
    EXPECT_EQ(unix_ms_of({2000, 2, 29, 0, 0, 0, 0}), 951782400000);
    EXPECT_EQ(unix_ms_of({2000, 3, 1, 0, 0, 0, 0}), 951868800000);
    EXPECT_EQ(unix_ms_of({1900, 3, 1, 0, 0, 0, 0}), -2203891200000);
    EXPECT_EQ(unix_ms_of({1, 1, 1, 0, 0, 0, 0}), -62135596800000);
    EXPECT_EQ(unix_ms_of({9999, 12, 31, 23, 59, 59, 999}), 253402300799999);
    EXPECT_EQ(civil_time_of(-62135596800001), (CivilTime{0, 12, 31, 23, 59, 59, 999}));
}

TEST(CivilTimeTest, EveryDayOfEightHundredYearsFollowsTheOneBefore)
{
    CivilTime expected{1599, 12, 31, 12, 34, 56, 789};
    std::int64_t unix_ms = unix_ms_of(expected);
    while (expected.year < 2400) {
        ASSERT_EQ(civil_time_of(unix_ms), expected) << unix_ms;
        ASSERT_EQ(unix_ms_of(expected), unix_ms);
        unix_ms += kMsPerDay;
        if (++expected.day > days_in_month(expected.year, expected.month)) {
            expected.day = 1;
            if (++expected.month > 12) {
                expected.month = 1;
                ++expected.year;
            }
        }
    }
}

TEST(CivilTimeTest, AnyUnixTimeComesBack)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const std::int64_t unix_ms = random.up_to(kMax) * (random.in(0, 1) == 0 ? 1 : -1);
        ASSERT_EQ(unix_ms_of(civil_time_of(unix_ms)), unix_ms);
    }
    EXPECT_EQ(unix_ms_of(civil_time_of(kMax)), kMax);
}

} /* namespace */
} /* namespace snowflake */
