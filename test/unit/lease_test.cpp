/*
 * lease_test.cpp
 *     One lease: who may take which ticks of it, and until when.
 */
#include "core/lease.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

namespace snowflake {
namespace {

/* Eight sequences a unit: small enough to see every edge. */
constexpr Layout kSmall = make_layout(0, Unit::Millisecond, 20, 3, 3);
constexpr std::int64_t kSequences = 8;

constexpr std::uint64_t tick(std::int64_t time, std::uint64_t sequence)
{
    return kSmall.first_tick(time) + sequence;
}

/* A lease of machine ID 5, for times 100 .. 199, whose renewal is due from 150. */
class LeaseTest : public testing::Test {
  protected:
    LeaseTest()
    {
        lease_.clear();
        lease_.install(5, tick(100, 0), 200, 150);
    }

    LeaseRef ref() const { return {0, 5, lease_.version.load()}; }

    /* Takes at a time, without waiting for a later one. */
    TakePlan take(std::int64_t now, std::uint32_t want = 1)
    {
        return lease_.take(kSmall, ref(), now, now, want);
    }

    Lease lease_;
};

/*----------------------------------------------------------------------
 * Which ticks
 *----------------------------------------------------------------------*/

TEST_F(LeaseTest, HandsOutTheSequencesOfAUnitOneAfterTheOther)
{
    for (std::uint64_t sequence = 0; sequence < kSequences; sequence++) {
        const TakePlan plan = take(100);
        EXPECT_EQ(plan.outcome, TakeOutcome::Taken);
        EXPECT_EQ(plan.first, tick(100, sequence));
        EXPECT_EQ(plan.count, 1u);
    }
}

TEST_F(LeaseTest, HandsOutARunAsOneStep)
{
    EXPECT_EQ(take(100, 3).count, 3u);
    EXPECT_EQ(take(100).first, tick(100, 3));
}

TEST_F(LeaseTest, CutsARunAtTheEndOfItsUnit)
{
    take(100, 6);
    const TakePlan plan = take(100, 6);
    EXPECT_EQ(plan.first, tick(100, 6));
    EXPECT_EQ(plan.count, 2u);
}

TEST_F(LeaseTest, SkipsUnitsThatPassedUnused)
{
    take(100);
    EXPECT_EQ(kSmall.tick_time(take(117).first), 117);
}

TEST_F(LeaseTest, GoesOnWithTheSequenceInALaterUnitUntilItHasPassedHalf)
{
    for (std::uint64_t i = 0; i < 12; i++) {
        const std::int64_t time = 100 + static_cast<std::int64_t>(i);
        EXPECT_EQ(take(time).first, tick(time, i % (kSequences / 2)));
    }
}

TEST_F(LeaseTest, BeginsAUnitWithAtLeastHalfItsSequencesLeft)
{
    for (std::uint32_t used = 1; used <= kSequences; used++) {
        const std::int64_t time = 100 + 2 * std::int64_t{used};
        take(time, used);
        const TakePlan plan = take(time + 1, kSequences);
        EXPECT_GE(plan.count, kSequences / 2) << "after " << used;
    }
}

TEST_F(LeaseTest, NeverGoesBackWithTheClock)
{
    const std::uint64_t before = take(120).first;
    const TakePlan plan = lease_.take(kSmall, ref(), 110, 130, 1);
    EXPECT_EQ(plan.outcome, TakeOutcome::Taken);
    EXPECT_EQ(plan.first, before + 1);
}

TEST(LeaseWithoutSequence, HandsOutOneTickAUnit)
{
    constexpr Layout layout = make_layout(0, Unit::Millisecond, 20, 3, 0);
    Lease lease;
    lease.clear();
    lease.install(1, layout.first_tick(10), 20, 15);
    const LeaseRef ref{0, 1, lease.version.load()};
    EXPECT_EQ(lease.take(layout, ref, 10, 10, 5).count, 1u);
    EXPECT_EQ(lease.take(layout, ref, 10, 10, 5).outcome, TakeOutcome::Ahead);
    EXPECT_EQ(lease.take(layout, ref, 11, 11, 5).first, layout.first_tick(11));
}

/*----------------------------------------------------------------------
 * Ahead of the clock
 *----------------------------------------------------------------------*/

TEST_F(LeaseTest, IsAheadWhenTheUnitIsUsedUp)
{
    take(100, kSequences);
    EXPECT_EQ(take(100).outcome, TakeOutcome::Ahead);
    EXPECT_EQ(take(101).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, IsAheadWhenTheClockSteppedBackFurtherThanTheCallerWouldWait)
{
    take(120);
    EXPECT_EQ(lease_.take(kSmall, ref(), 110, 119, 1).outcome, TakeOutcome::Ahead);
    EXPECT_EQ(lease_.take(kSmall, ref(), 110, 120, 1).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, TakesNothingWhenItIsAhead)
{
    take(100, kSequences);
    const std::uint64_t word = lease_.word.load();
    take(100);
    EXPECT_EQ(lease_.word.load(), word);
}

/*----------------------------------------------------------------------
 * The horizon
 *----------------------------------------------------------------------*/

TEST_F(LeaseTest, ServesTheLastUnitBelowTheHorizonAndNoneFromIt)
{
    EXPECT_EQ(take(199).outcome, TakeOutcome::Taken);
    EXPECT_EQ(take(200).outcome, TakeOutcome::AtHorizon);
    EXPECT_EQ(take(201).outcome, TakeOutcome::AtHorizon);
}

TEST_F(LeaseTest, DoesNotTakeAheadOfTheClockWhatLiesAtTheHorizon)
{
    take(199, kSequences);
    EXPECT_EQ(lease_.take(kSmall, ref(), 199, 300, 1).outcome, TakeOutcome::AtHorizon);
}

TEST_F(LeaseTest, IsNotPoisonedByAWrongClockReading)
{
    take(100);
    EXPECT_EQ(take(5000).outcome, TakeOutcome::AtHorizon);
    EXPECT_EQ(take(101).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, ServesPastTheOldHorizonOnceItIsExtended)
{
    lease_.extend(300, 250);
    EXPECT_EQ(take(200).outcome, TakeOutcome::Taken);
    EXPECT_EQ(take(300).outcome, TakeOutcome::AtHorizon);
    EXPECT_EQ(lease_.renew_at.load(), 250);
}

TEST_F(LeaseTest, NeverLowersItsHorizon)
{
    lease_.extend(150, 120);
    EXPECT_EQ(take(199).outcome, TakeOutcome::Taken);
}

/*----------------------------------------------------------------------
 * Versions
 *----------------------------------------------------------------------*/

TEST(LeaseSlot, HoldsNothingBeforeItsFirstLease)
{
    Lease lease;
    lease.clear();
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(lease.take(kSmall, {0, 0, 0}, 0, 0, 1).outcome, TakeOutcome::Changed);
}

TEST_F(LeaseTest, IsHeldUntilItIsRetired)
{
    EXPECT_TRUE(lease_.held());
    lease_.retire();
    EXPECT_FALSE(lease_.held());
}

TEST_F(LeaseTest, ServesNobodyOnceItIsRetired)
{
    const LeaseRef old = ref();
    lease_.retire();
    EXPECT_EQ(lease_.take(kSmall, old, 100, 100, 1).outcome, TakeOutcome::Changed);
}

TEST_F(LeaseTest, StaysRetiredWhenItIsRetiredTwice)
{
    lease_.retire();
    lease_.retire();
    EXPECT_FALSE(lease_.held());
}

TEST_F(LeaseTest, IsAnotherLeaseAfterTheSameMachineIdWasClaimedAgain)
{
    const LeaseRef old = ref();
    lease_.install(5, tick(100, 0), 200, 150);
    EXPECT_EQ(lease_.take(kSmall, old, 100, 100, 1).outcome, TakeOutcome::Changed);
    EXPECT_EQ(take(100).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, IsAnotherLeaseWhenItWasRetiredInBetween)
{
    const LeaseRef old = ref();
    lease_.retire();
    lease_.install(5, tick(100, 0), 200, 150);
    EXPECT_EQ(lease_.take(kSmall, old, 100, 100, 1).outcome, TakeOutcome::Changed);
}

TEST_F(LeaseTest, GivesAwayNoTickToThoseWhoKnowAnOldVersion)
{
    const LeaseRef old = ref();
    lease_.install(6, tick(100, 0), 200, 150);
    lease_.take(kSmall, old, 100, 100, 1);
    EXPECT_EQ(lease_.word.load(), tick(100, 0));
}

/*----------------------------------------------------------------------
 * The ends of time
 *----------------------------------------------------------------------*/

TEST(LeaseAtTheEndOfTime, ServesTheLastUnitWholeAndThenEnds)
{
    const std::int64_t last = kSmall.timestamp.max();
    Lease lease;
    lease.clear();
    lease.install(5, tick(last, 0), last + 1000, last);
    const LeaseRef ref{0, 5, lease.version.load()};
    const TakePlan plan = lease.take(kSmall, ref, last, last + 10, 2 * kSequences);
    EXPECT_EQ(plan.outcome, TakeOutcome::Taken);
    EXPECT_EQ(plan.first, tick(last, 0));
    EXPECT_EQ(plan.count, kSequences);
    EXPECT_EQ(lease.take(kSmall, ref, last, last + 10, 1).outcome, TakeOutcome::EndOfTime);
    EXPECT_EQ(lease.take(kSmall, ref, last + 1, last + 10, 1).outcome, TakeOutcome::EndOfTime);
}

TEST(LeaseAtTheEndOfTime, MakesTheGreatestIdOfTheDefaultLayout)
{
    constexpr Layout layout = kDefaultLayout;
    const std::int64_t last = layout.timestamp.max();
    Lease lease;
    lease.clear();
    lease.install(1023, layout.first_tick(last), last + 1, last);
    const LeaseRef ref{0, 1023, lease.version.load()};
    const TakePlan plan = lease.take(layout, ref, last, last, 4096);
    EXPECT_EQ(plan.count, 4096u);
    EXPECT_EQ(layout.compose_tick(plan.first + plan.count - 1, 1023), INT64_MAX);
}

TEST(LeaseAtTheEndOfTime, ServesTheFirstUnitToo)
{
    Lease lease;
    lease.clear();
    lease.install(0, 0, 10, 5);
    EXPECT_EQ(lease.take(kSmall, {0, 0, lease.version.load()}, 0, 0, 1).first, 0u);
}

/*----------------------------------------------------------------------
 * Many threads
 *----------------------------------------------------------------------*/

struct Ticks {
    std::uint64_t first;
    std::uint64_t end;
};

TEST(LeaseUnderThreads, HandsOutEachTickOnce)
{
    constexpr std::size_t kThreads = 8;
    constexpr int kTakes = 20000;
    constexpr std::int64_t kHorizon = 50000;
    Lease lease;
    lease.clear();
    lease.install(1, 0, kHorizon, 0);
    const LeaseRef ref{0, 1, lease.version.load()};
    std::atomic<std::int64_t> clock{0};
    std::array<std::vector<Ticks>, kThreads> runs;
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (std::vector<Ticks> &mine : runs) {
        threads.emplace_back([&] {
            for (int i = 0; i < kTakes; i++) {
                const std::int64_t now = clock.load(std::memory_order_relaxed);
                const auto want = static_cast<std::uint32_t>(1 + i % 5);
                const TakePlan plan = lease.take(kSmall, ref, now, now + 1, want);
                if (plan.outcome == TakeOutcome::Taken) {
                    mine.push_back({plan.first, plan.first + plan.count});
                } else {
                    clock.fetch_add(1, std::memory_order_relaxed);
                }
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }

    std::vector<Ticks> all;
    for (const std::vector<Ticks> &mine : runs) {
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end(),
              [](const Ticks &a, const Ticks &b) { return a.first < b.first; });
    ASSERT_GT(all.size(), 10000u);
    EXPECT_LE(all.back().end, kSmall.first_tick(kHorizon));
    for (std::size_t i = 1; i < all.size(); i++) {
        ASSERT_GE(all[i].first, all[i - 1].end);
    }
}

/*----------------------------------------------------------------------
 * Another lease in the middle of a take
 *----------------------------------------------------------------------*/

/* A slot of leases that come one after the other, and how they differ. */
struct Succession {
    Lease lease;
    std::int64_t horizon; /* of those that have room */

    /* Leases begin this far apart, so that a tick tells which one it belongs to. */
    static constexpr std::int64_t kApart = 1 << 20;

    Succession() : horizon(std::int64_t{1} << 40) { lease.clear(); }

    static std::int64_t start_of(std::uint64_t version)
    {
        return static_cast<std::int64_t>(version / 2) * kApart;
    }

    /* Every other lease begins at its horizon, so that nothing may be taken of it. */
    static bool has_room(std::uint64_t version) { return version % 4 == 0; }

    static bool owns(std::uint64_t version, const TakePlan &plan)
    {
        const std::int64_t time = kDefaultLayout.tick_time(plan.first);
        return has_room(version) && time >= start_of(version) && time < start_of(version) + kApart;
    }

    void next()
    {
        const std::uint64_t latest = lease.version.load(std::memory_order_relaxed);
        const std::uint64_t version = latest % 2 == 0 ? latest + 2 : latest + 1;
        const std::int64_t start = start_of(version);
        lease.install(1, kDefaultLayout.first_tick(start), has_room(version) ? horizon : start, 0);
    }

    /*
     * Takes until told to stop. Returns how often a tick was given that does not
     * belong to the lease as which it was asked for, or for the second time.
     */
    std::uint64_t count_wrong_takes(const std::atomic<bool> &stop)
    {
        std::uint64_t wrong = 0;
        std::uint64_t last_version = 0;
        std::uint64_t taken_up_to = 0;
        while (!stop.load(std::memory_order_relaxed)) {
            const LeaseRef ref{0, 1, lease.version.load(std::memory_order_acquire)};
            if (ref.version % 2 != 0) {
                continue; /* no lease at the moment, so nobody knows one by this version */
            }
            const TakePlan plan = lease.take(kDefaultLayout, ref, 0, horizon, 1);
            if (plan.outcome == TakeOutcome::Taken) {
                const bool again = ref.version == last_version && plan.first < taken_up_to;
                wrong += !owns(ref.version, plan) || again ? 1 : 0;
                last_version = ref.version;
                taken_up_to = plan.first + plan.count;
            }
        }
        return wrong;
    }
};

constexpr int kSuccessors = 100000;

TEST(LeaseUnderThreads, NeverGivesATickOfOneLeaseToTheHolderOfAnother)
{
    Succession succession;
    std::atomic<bool> stop{false};
    std::thread keeper([&] {
        for (int i = 0; i < kSuccessors; i++) {
            succession.next();
            /* most leases live until somebody has taken of them */
            const std::uint64_t word = succession.lease.word.load(std::memory_order_relaxed);
            for (int j = 0; j < 500 && succession.lease.word.load() == word;) {
                j++;
            }
        }
        stop.store(true);
    });
    EXPECT_EQ(succession.count_wrong_takes(stop), 0u);
    keeper.join();
}

Succession *interrupted;

/*
 * The same with a session that is put off the CPU wherever it happens to be, and
 * finds another lease when it wakes up: a signal handler installs it.
 */
TEST(LeaseUnderSignals, NeverGivesATickOfOneLeaseToTheHolderOfAnother)
{
    Succession succession;
    interrupted = &succession;
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_handler = [](int) { interrupted->next(); };
    sigaction(SIGUSR1, &action, &before);

    std::atomic<bool> stop{false};
    std::thread keeper([&, session = pthread_self()] {
        for (int i = 0; i < kSuccessors; i++) {
            pthread_kill(session, SIGUSR1);
        }
        stop.store(true);
    });
    EXPECT_EQ(succession.count_wrong_takes(stop), 0u);
    keeper.join();
    sigaction(SIGUSR1, &before, nullptr);
    interrupted = nullptr;
}

} /* namespace */
} /* namespace snowflake */
