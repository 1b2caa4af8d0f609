/*
 * time_cut_test.cpp
 *     Which IDs lie before and after a point in time.
 */
#include "core/time_cut.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/layout_spec.h"
#include "random_layouts.h"

namespace snowflake {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr int kRounds = 20000;
constexpr std::int64_t kLast = kDefaultLayout.timestamp.max();

constexpr TimeCut cut(std::int64_t since_epoch_ms, bool begins_ms, Meeting meeting)
{
    return cut_at(kDefaultLayout, kLast, {kDefaultEpochMs + since_epoch_ms, begins_ms}, meeting);
}

TEST(TimeCutTest, AllIdsOfAUnitLieOnOneSide)
{
    const std::int64_t first = kDefaultLayout.compose({5, 0, 0});
    const std::int64_t next = kDefaultLayout.compose({6, 0, 0});
    EXPECT_EQ(cut(5, true, Meeting::After).first_after(), first);
    EXPECT_EQ(cut(5, true, Meeting::After).last_before(), first - 1);
    EXPECT_EQ(cut(5, true, Meeting::Before).first_after(), next);
    EXPECT_EQ(cut(5, true, Meeting::Before).last_before(), next - 1);
}

TEST(TimeCutTest, AUnitThatHasBegunLiesBefore)
{
    const std::int64_t next = kDefaultLayout.compose({6, 0, 0});
    EXPECT_EQ(cut(5, false, Meeting::After).first_after(), next);
    EXPECT_EQ(cut(5, false, Meeting::Before).first_after(), next);
}

TEST(TimeCutTest, TheFirstAndTheLastUnitCount)
{
    EXPECT_FALSE(cut(0, true, Meeting::After).has_ids_before());
    EXPECT_EQ(cut(0, true, Meeting::After).first_after(), 0);
    EXPECT_TRUE(cut(0, true, Meeting::Before).has_ids_before());
    EXPECT_FALSE(cut(-1, false, Meeting::After).has_ids_before());

    EXPECT_TRUE(cut(kLast, true, Meeting::After).has_ids_after());
    EXPECT_FALSE(cut(kLast, true, Meeting::Before).has_ids_after());
    EXPECT_EQ(cut(kLast, true, Meeting::Before).last_before(), kMax);
    EXPECT_FALSE(cut(kLast + 1, true, Meeting::After).has_ids_after());
}

TEST(TimeCutTest, TimesThatALayoutDoesNotReachCutOffNothingOrAll)
{
    for (const Meeting meeting : {Meeting::Before, Meeting::After}) {
        for (const bool begins_ms : {false, true}) {
            const TimeCut early = cut_at(kDefaultLayout, kLast, {kMin, begins_ms}, meeting);
            EXPECT_FALSE(early.has_ids_before());
            EXPECT_EQ(early.first_after(), 0);
            const TimeCut late = cut_at(kDefaultLayout, kLast, {kMax, begins_ms}, meeting);
            EXPECT_FALSE(late.has_ids_after());
            EXPECT_EQ(late.last_before(), kMax);
        }
    }
    EXPECT_FALSE(cut_at_begin(kDefaultLayout, kLast).has_ids_before());
    EXPECT_FALSE(cut_at_end(kDefaultLayout, kLast).has_ids_after());
}

/* The time of an ID against an instant, in halves of a ms: an instant that does not begin one
 * lies in the middle. */
int compare(const Layout &layout, std::int64_t id, Instant instant)
{
    const std::int64_t begin = layout.to_unix_ms(layout.decompose(id).timestamp);
    if (begin != instant.unix_ms) {
        return begin < instant.unix_ms ? -1 : 1;
    }
    return instant.begins_ms ? 0 : -1;
}

TEST(TimeCutTest, ACutIsWhereTheTimesOfIdsPassTheInstant)
{
    Random random;
    SCOPED_TRACE(random.seed());
    for (int round = 0; round < kRounds; ++round) {
        const Layout layout = random.layout();
        if (!layout.sorts_by_time()) {
            continue;
        }
        SCOPED_TRACE(format_layout(layout).c_str());
        /* of longer ones, int64 cannot count the ms */
        const std::int64_t last_time = std::min(layout.timestamp.max(), std::int64_t{1} << 50);
        const std::int64_t last_id = cut_at_end(layout, last_time).last_before();
        const std::int64_t near = layout.to_unix_ms(random.in(0, last_time));
        const Instant instant{near + random.in(-2, 2), random.in(0, 1) == 1};

        const TimeCut after = cut_at(layout, last_time, instant, Meeting::After);
        const TimeCut before = cut_at(layout, last_time, instant, Meeting::Before);
        ASSERT_EQ(after.has_ids_before(), compare(layout, 0, instant) < 0);
        ASSERT_EQ(before.has_ids_before(), compare(layout, 0, instant) <= 0);
        ASSERT_EQ(after.has_ids_after(), compare(layout, last_id, instant) >= 0);
        ASSERT_EQ(before.has_ids_after(), compare(layout, last_id, instant) > 0);
        if (after.has_ids_before()) {
            ASSERT_LT(compare(layout, after.last_before(), instant), 0);
        }
        if (after.has_ids_after()) {
            ASSERT_GE(compare(layout, after.first_after(), instant), 0);
        }
        if (before.has_ids_before()) {
            ASSERT_LE(compare(layout, before.last_before(), instant), 0);
        }
        if (before.has_ids_after()) {
            ASSERT_GT(compare(layout, before.first_after(), instant), 0);
        }
    }
}

} /* namespace */
} /* namespace snowflake */
