/*
 * lease_policy_test.cpp
 *     How far a lease is granted.
 */
#include "core/lease_policy.h"

#include <gtest/gtest.h>

namespace snowflake {
namespace {

constexpr Layout kSmall = make_layout(0, Unit::Second, 10, 3, 3);

TEST(GrantedHorizonTest, IsATtlAway) { EXPECT_EQ(granted_horizon(kSmall, {60, 10}, 100), 160); }

TEST(GrantedHorizonTest, NeverGoesPastTheLastTime)
{
    EXPECT_EQ(granted_horizon(kSmall, {60, 10}, 1000), 1024);
    EXPECT_EQ(granted_horizon(kSmall, {60, 10}, 1023), 1024);
}

TEST(GrantedHorizonTest, RaisesEveryHorizonAtWhichAWaiterMayStand)
{
    constexpr Terms kShort{1, 2};
    std::int64_t horizon = granted_horizon(kSmall, kShort, 100);
    Lease lease;
    lease.clear();
    lease.install(5, kSmall.first_tick(100), horizon, renewal_time(kShort, 100));
    const LeaseRef ref{0, 5, lease.version.load()};

    /* sessions in turn use up all that they would wait for */
    TakePlan plan{};
    do {
        plan = lease.take(kSmall, ref, 100, 100 + kShort.max_wait, 8);
    } while (plan.outcome == TakeOutcome::Taken);

    EXPECT_EQ(plan.outcome, TakeOutcome::Ahead) << "not AtHorizon: nothing for a keeper to do";
}

} /* namespace */
} /* namespace snowflake */
