/*
 * lease_test.cpp
 *     One lease: who may take which ticks of it, and until when.
 */
#include "core/lease.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace snowflake {
namespace {

/* Eight sequences a unit: small enough to see every edge. */
constexpr Layout kSmall = make_layout(0, Unit::Millisecond, 20, 3, 3);
constexpr std::int64_t kSequences = 8;

constexpr std::uint64_t tick(std::int64_t time, std::uint64_t sequence) {
    return kSmall.first_tick(time) + sequence;
}

/* A lease of machine ID 5, for times 100 .. 199, whose renewal is due from 150. */
class LeaseTest : public testing::Test {
  protected:
    LeaseTest() {
        lease_.clear();
        lease_.install(5, tick(100, 0), 200, 150);
    }

    LeaseRef ref() const { return {0, 5, lease_.version.load()}; }

    /* Takes at a time, without waiting for a later one. */
    TakePlan take(std::int64_t now, std::uint32_t want = 1) {
        return lease_.take(kSmall, ref(), now, now, want);
    }

    Lease lease_;
};

/*----------------------------------------------------------------------
 * Which ticks
 *----------------------------------------------------------------------*/

TEST_F(LeaseTest, HandsOutTheSequencesOfAUnitOneAfterTheOther) {
    for (std::uint64_t sequence = 0; sequence < kSequences; sequence++) {
        const TakePlan plan = take(100);
        EXPECT_EQ(plan.outcome, TakeOutcome::Taken);
        EXPECT_EQ(plan.first, tick(100, sequence));
        EXPECT_EQ(plan.count, 1u);
    }
}

TEST_F(LeaseTest, HandsOutARunAsOneStep) {
    EXPECT_EQ(take(100, 3).count, 3u);
    EXPECT_EQ(take(100).first, tick(100, 3));
}

TEST_F(LeaseTest, CutsARunAtTheEndOfItsUnit) {
    take(100, 6);
    const TakePlan plan = take(100, 6);
    EXPECT_EQ(plan.first, tick(100, 6));
    EXPECT_EQ(plan.count, 2u);
}

TEST_F(LeaseTest, SkipsUnitsThatPassedUnused) {
    take(100);
    EXPECT_EQ(kSmall.tick_time(take(117).first), 117);
}

TEST_F(LeaseTest, GoesOnWithTheSequenceInALaterUnitUntilItHasPassedHalf) {
    for (std::uint64_t i = 0; i < 12; i++) {
        const auto time = static_cast<std::int64_t>(100 + i);
        EXPECT_EQ(take(time).first, tick(time, i % (kSequences / 2)));
    }
}

TEST_F(LeaseTest, BeginsAUnitWithAtLeastHalfItsSequencesLeft) {
    for (std::uint32_t used = 1; used <= kSequences; used++) {
        const auto time = static_cast<std::int64_t>(100 + 2 * used);
        take(time, used);
        const TakePlan plan = take(time + 1, kSequences);
        EXPECT_GE(plan.count, kSequences / 2) << "after " << used;
    }
}

TEST_F(LeaseTest, NeverGoesBackWithTheClock) {
    const std::uint64_t before = take(120).first;
    const TakePlan plan = lease_.take(kSmall, ref(), 110, 130, 1);
    EXPECT_EQ(plan.outcome, TakeOutcome::Taken);
    EXPECT_EQ(plan.first, before + 1);
}

TEST(LeaseWithoutSequence, HandsOutOneTickAUnit) {
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

TEST_F(LeaseTest, IsAheadWhenTheUnitIsUsedUp) {
    take(100, kSequences);
    EXPECT_EQ(take(100).outcome, TakeOutcome::Ahead);
    EXPECT_EQ(take(101).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, IsAheadWhenTheClockSteppedBackFurtherThanTheCallerWouldWait) {
    take(120);
    EXPECT_EQ(lease_.take(kSmall, ref(), 110, 119, 1).outcome, TakeOutcome::Ahead);
    EXPECT_EQ(lease_.take(kSmall, ref(), 110, 120, 1).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, TakesNothingWhenItIsAhead) {
    take(100, kSequences);
    const std::uint64_t word = lease_.word.load();
    take(100);
    EXPECT_EQ(lease_.word.load(), word);
}

/*----------------------------------------------------------------------
 * The horizon
 *----------------------------------------------------------------------*/

TEST_F(LeaseTest, ServesTheLastUnitBelowTheHorizonAndNoneFromIt) {
    EXPECT_EQ(take(199).outcome, TakeOutcome::Taken);
    EXPECT_EQ(take(200).outcome, TakeOutcome::AtHorizon);
    EXPECT_EQ(take(201).outcome, TakeOutcome::AtHorizon);
}

TEST_F(LeaseTest, DoesNotTakeAheadOfTheClockWhatLiesAtTheHorizon) {
    take(199, kSequences);
    EXPECT_EQ(lease_.take(kSmall, ref(), 199, 300, 1).outcome, TakeOutcome::AtHorizon);
}

TEST_F(LeaseTest, IsNotPoisonedByAWrongClockReading) {
    take(100);
    EXPECT_EQ(take(5000).outcome, TakeOutcome::AtHorizon);
    EXPECT_EQ(take(101).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, ServesPastTheOldHorizonOnceItIsExtended) {
    lease_.extend(300, 250);
    EXPECT_EQ(take(200).outcome, TakeOutcome::Taken);
    EXPECT_EQ(take(300).outcome, TakeOutcome::AtHorizon);
    EXPECT_EQ(lease_.renew_at.load(), 250);
}

TEST_F(LeaseTest, NeverLowersItsHorizon) {
    lease_.extend(150, 120);
    EXPECT_EQ(take(199).outcome, TakeOutcome::Taken);
}

/*----------------------------------------------------------------------
 * Versions
 *----------------------------------------------------------------------*/

TEST(LeaseSlot, HoldsNothingBeforeItsFirstLease) {
    Lease lease;
    lease.clear();
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(lease.take(kSmall, {0, 0, 0}, 0, 0, 1).outcome, TakeOutcome::Changed);
}

TEST_F(LeaseTest, IsHeldUntilItIsRetired) {
    EXPECT_TRUE(lease_.held());
    lease_.retire();
    EXPECT_FALSE(lease_.held());
}

TEST_F(LeaseTest, ServesNobodyOnceItIsRetired) {
    const LeaseRef old = ref();
    lease_.retire();
    EXPECT_EQ(lease_.take(kSmall, old, 100, 100, 1).outcome, TakeOutcome::Changed);
}

TEST_F(LeaseTest, StaysRetiredWhenItIsRetiredTwice) {
    lease_.retire();
    lease_.retire();
    EXPECT_FALSE(lease_.held());
}

TEST_F(LeaseTest, IsAnotherLeaseAfterTheSameMachineIdWasClaimedAgain) {
    const LeaseRef old = ref();
    lease_.install(5, tick(100, 0), 200, 150);
    EXPECT_EQ(lease_.take(kSmall, old, 100, 100, 1).outcome, TakeOutcome::Changed);
    EXPECT_EQ(take(100).outcome, TakeOutcome::Taken);
}

TEST_F(LeaseTest, IsAnotherLeaseWhenItWasRetiredInBetween) {
    const LeaseRef old = ref();
    lease_.retire();
    lease_.install(5, tick(100, 0), 200, 150);
    EXPECT_EQ(lease_.take(kSmall, old, 100, 100, 1).outcome, TakeOutcome::Changed);
}

TEST_F(LeaseTest, GivesAwayNoTickToThoseWhoKnowAnOldVersion) {
    const LeaseRef old = ref();
    lease_.install(6, tick(100, 0), 200, 150);
    lease_.take(kSmall, old, 100, 100, 1);
    EXPECT_EQ(lease_.word.load(), tick(100, 0));
}

/*----------------------------------------------------------------------
 * The ends of time
 *----------------------------------------------------------------------*/

TEST(LeaseAtTheEndOfTime, ServesTheLastUnitWholeAndThenEnds) {
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

TEST(LeaseAtTheEndOfTime, MakesTheGreatestIdOfTheDefaultLayout) {
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

TEST(LeaseAtTheEndOfTime, ServesTheFirstUnitToo) {
    Lease lease;
    lease.clear();
    lease.install(0, 0, 10, 5);
    EXPECT_EQ(lease.take(kSmall, {0, 0, lease.version.load()}, 0, 0, 1).first, 0u);
}

/*----------------------------------------------------------------------
 * Many threads
 *----------------------------------------------------------------------*/

constexpr int kThreads = 8;

struct Taken {
    std::uint64_t version;
    std::uint64_t first;
    std::uint64_t end;
};

/*
 * Runs `body(thread, its records)` in kThreads threads at once and returns the
 * records of all.
 */
template <typename Body>
std::vector<Taken> in_threads(Body body) {
    std::vector<std::vector<Taken>> records(kThreads);
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; i++) {
        threads.emplace_back([&, i] {
            ready.fetch_add(1);
            while (ready.load() < kThreads) {
                std::this_thread::yield();
            }
            body(i, records[static_cast<std::size_t>(i)]);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    std::vector<Taken> all;
    for (const auto &some : records) {
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

/* How many of the runs share a tick with another one of the same version. */
std::size_t overlaps(std::vector<Taken> runs) {
    std::sort(runs.begin(), runs.end(), [](const Taken &a, const Taken &b) {
        return a.version != b.version ? a.version < b.version : a.first < b.first;
    });
    std::size_t found = 0;
    for (std::size_t i = 1; i < runs.size(); i++) {
        found += runs[i].version == runs[i - 1].version && runs[i].first < runs[i - 1].end ? 1 : 0;
    }
    return found;
}

TEST(LeaseUnderThreads, HandsOutEachTickOnce) {
    constexpr int kTakes = 20000;
    constexpr std::int64_t kHorizon = 50000;
    Lease lease;
    lease.clear();
    lease.install(1, 0, kHorizon, 0);
    const LeaseRef ref{0, 1, lease.version.load()};
    std::atomic<std::int64_t> clock{0};

    const std::vector<Taken> runs = in_threads([&](int thread, std::vector<Taken> &mine) {
        for (int i = 0; i < kTakes; i++) {
            const std::int64_t now = clock.load(std::memory_order_relaxed);
            const auto want = static_cast<std::uint32_t>(1 + (i + thread) % 5);
            const TakePlan plan = lease.take(kSmall, ref, now, now + 1, want);
            if (plan.outcome == TakeOutcome::Taken) {
                mine.push_back({ref.version, plan.first, plan.first + plan.count});
            } else {
                clock.fetch_add(1, std::memory_order_relaxed);
            }
        }
    });

    EXPECT_GT(runs.size(), 10000u);
    EXPECT_EQ(overlaps(runs), 0u);
    for (const Taken &run : runs) {
        ASSERT_LE(run.end, kSmall.first_tick(kHorizon));
        ASSERT_EQ(kSmall.tick_time(run.first), kSmall.tick_time(run.end - 1));
    }
}

/*
 * Installs one lease after the other in a slot, in a thread of its own, while it
 * lives. `install(lease, version)` is told the version that the lease will have.
 */
template <typename Install>
class Churn {
  public:
    Churn(Lease &lease, Install install)
        : thread_([this, &lease, install] {
              while (!done_.load(std::memory_order_relaxed)) {
                  const std::uint64_t latest = lease.version.load(std::memory_order_relaxed);
                  install(lease, latest % 2 == 0 ? latest + 2 : latest + 1);
                  /* most leases live until somebody has taken of them */
                  const std::uint64_t word = lease.word.load(std::memory_order_relaxed);
                  for (int i = 0; i < 500 && lease.word.load(std::memory_order_relaxed) == word;) {
                      i++;
                  }
              }
          }) {}

    ~Churn() {
        done_.store(true);
        thread_.join();
    }

  private:
    std::atomic<bool> done_{false};
    std::thread thread_;
};

/*
 * Takes from a lease that changes all the time, at time 0, willing to wait until
 * `latest`, and long enough to see many leases.
 */
std::vector<Taken> take_under_churn(Lease &lease, std::int64_t latest, std::uint32_t want) {
    constexpr std::size_t kRuns = 5000;
    constexpr std::uint64_t kVersions = 50000;
    return in_threads([&](int, std::vector<Taken> &mine) {
        LeaseRef ref{0, 1, 0};
        while (mine.size() < kRuns || ref.version < kVersions) {
            ref.version = lease.version.load(std::memory_order_acquire);
            if (ref.version % 2 != 0) {
                continue; /* no lease at the moment, so nobody knows one by this version */
            }
            const TakePlan plan = lease.take(kDefaultLayout, ref, 0, latest, want);
            if (plan.outcome == TakeOutcome::Taken) {
                mine.push_back({ref.version, plan.first, plan.first + plan.count});
            }
        }
    });
}

/* Leases begin far apart here, so that a tick tells which one it belongs to. */
TEST(LeaseUnderThreads, NeverGivesATickOfOneLeaseToTheHolderOfAnother) {
    constexpr std::int64_t kApart = 1 << 20;
    constexpr std::int64_t kHorizon = std::int64_t{1} << 40;
    const auto start_of = [](std::uint64_t version) {
        const auto nth = static_cast<std::int64_t>(version / 2);
        return kDefaultLayout.first_tick(nth * kApart % kHorizon);
    };
    Lease lease;
    lease.clear();
    std::vector<Taken> runs;
    {
        const Churn churn(lease, [&](Lease &slot, std::uint64_t version) {
            slot.install(1, start_of(version), kHorizon, 0);
            if (version % 8 == 0) {
                slot.retire();
            }
        });
        runs = take_under_churn(lease, kHorizon, 2);
    }

    EXPECT_EQ(overlaps(runs), 0u);
    for (const Taken &run : runs) {
        ASSERT_GE(run.first, start_of(run.version));
        ASSERT_LT(run.first, start_of(run.version) + kDefaultLayout.first_tick(kApart));
    }
}

/*
 * Leases that begin at their horizon alternate with others that have room: under
 * the former nothing may be taken with the latter's horizon.
 */
TEST(LeaseUnderThreads, NeverUsesTheHorizonOfAnotherLease) {
    constexpr std::int64_t kStart = 1000;
    constexpr std::int64_t kRoomy = std::int64_t{1} << 40;
    const auto has_room = [](std::uint64_t version) { return version % 4 == 0; };
    Lease lease;
    lease.clear();
    std::vector<Taken> runs;
    {
        const Churn churn(lease, [&](Lease &slot, std::uint64_t version) {
            slot.install(1, kDefaultLayout.first_tick(kStart), has_room(version) ? kRoomy : kStart,
                         0);
        });
        runs = take_under_churn(lease, kRoomy, 1);
    }

    EXPECT_EQ(overlaps(runs), 0u);
    for (const Taken &run : runs) {
        ASSERT_TRUE(has_room(run.version)) << "a tick at the horizon was taken";
    }
}

} /* namespace */
} /* namespace snowflake */
