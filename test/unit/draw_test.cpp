/*
 * draw_test.cpp
 *     A session's draws: runs, waits, order, and the choice among leases.
 */
#include "core/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace snowflake {
namespace {

/* Eight sequences a unit, runs of one tick: small enough to use up. */
constexpr Layout kSmall = make_layout(0, Unit::Millisecond, 20, 3, 3);
constexpr std::uint32_t kSequences = 8;

/* Runs of up to 64 ticks. */
constexpr Layout kWide = make_layout(0, Unit::Millisecond, 20, 3, 12);

constexpr std::int64_t kHorizon = 10000;
constexpr std::int64_t kRenewAt = 5000;

/* One session and what it draws on. */
class DrawTest : public testing::Test {
  protected:
    explicit DrawTest(const Layout &layout = kSmall) : layout_(layout)
    {
        for (Lease &lease : leases_) {
            lease.clear();
        }
        state_.clear();
    }

    /* A lease that begins at a time and has the table's next place. */
    Lease &hold(std::uint32_t machine, std::int64_t from, std::int64_t horizon = kHorizon)
    {
        const auto index = static_cast<std::uint32_t>(refs_.size());
        leases_[index].install(machine, layout_.first_tick(from), horizon, kRenewAt);
        refs_.push_back({index, machine, leases_[index].version.load()});
        return leases_[index];
    }

    Draw draw_at(std::int64_t now, std::uint32_t hint = 1)
    {
        return draw(state_, source(), now, hint);
    }

    Source source()
    {
        return {&layout_, leases_.data(), refs_.data(), static_cast<std::uint32_t>(refs_.size()),
                max_wait_};
    }

    std::int64_t id(std::int64_t time, std::int64_t machine, std::int64_t sequence) const
    {
        return layout_.compose({time, machine, sequence});
    }

    /* Draws until the unit's end and returns how many IDs there were. */
    std::uint32_t use_up(std::int64_t now)
    {
        std::uint32_t count = 0;
        while (draw_at(now).verdict == Verdict::Issued) {
            count++;
        }
        return count;
    }

    Layout layout_;
    std::array<Lease, 3> leases_;
    std::vector<LeaseRef> refs_;
    GeneratorState state_;
    std::int64_t max_wait_ = 10;
};

class DrawRunTest : public DrawTest {
  protected:
    DrawRunTest() : DrawTest(kWide) {}
};

/*----------------------------------------------------------------------
 * Runs
 *----------------------------------------------------------------------*/

TEST_F(DrawTest, GivesTheIdOfTheMomentAndTheMachine)
{
    hold(5, 0);
    const Draw drawn = draw_at(123);
    EXPECT_EQ(drawn.verdict, Verdict::Issued);
    EXPECT_EQ(drawn.id, id(123, 5, 0));
}

TEST_F(DrawTest, CountsWhatItIssued)
{
    hold(5, 0);
    draw_at(123);
    draw_at(124);
    EXPECT_EQ(state_.issued.get(), 2u);
    EXPECT_EQ(state_.last_id.get(), id(124, 5, 1));
}

TEST_F(DrawRunTest, DoublesItsRunsWhileItUsesThemUpWithinAUnit)
{
    const Lease &lease = hold(1, 100);
    std::uint64_t taken = 0;
    for (std::uint64_t run : {1, 2, 4, 8, 16, 32, 64, 64, 64}) {
        taken += run;
        for (std::uint64_t i = 0; i < run; i++) {
            ASSERT_EQ(draw_at(100).verdict, Verdict::Issued);
            ASSERT_EQ(lease.word.load(), layout_.first_tick(100) + taken);
        }
    }
}

TEST_F(DrawRunTest, LeavesNoGapWithinAUnit)
{
    hold(1, 100);
    for (std::int64_t i = 0; i < 4096; i++) {
        ASSERT_EQ(draw_at(100).id, id(100, 1, i));
    }
}

TEST_F(DrawRunTest, BeginsEachUnitWithARunOfOne)
{
    const Lease &lease = hold(1, 100);
    for (int i = 0; i < 7; i++) {
        draw_at(100);
    }
    draw_at(101);
    EXPECT_EQ(lease.word.load(), layout_.first_tick(101) + 8);
}

TEST_F(DrawRunTest, DropsTheRestOfARunWhenItsUnitEnds)
{
    hold(1, 100);
    draw_at(100);
    draw_at(100); /* the first of two */
    EXPECT_EQ(draw_at(101).id, id(101, 1, 3));
}

TEST_F(DrawRunTest, TakesABatchInOneStep)
{
    const Lease &lease = hold(1, 100);
    draw_at(100, 1000);
    EXPECT_EQ(lease.word.load(), layout_.first_tick(100) + 1000);
    EXPECT_EQ(draw_at(100, 999).id, id(100, 1, 1));
}

TEST_F(DrawRunTest, CutsABatchAtTheEndOfItsUnit)
{
    hold(1, 100);
    draw_at(100, 4000);
    for (int i = 1; i < 4000; i++) {
        draw_at(100);
    }
    EXPECT_EQ(draw_at(100, 1000).id, id(100, 1, 4000));
    EXPECT_EQ(use_up(100), 95u);
}

TEST(MostAhead, IsHalfOfTheLongestWaitAndAtMost64Units)
{
    EXPECT_EQ(most_ahead(2), 1);
    EXPECT_EQ(most_ahead(10), 5);
    EXPECT_EQ(most_ahead(1000), 64);
}

TEST(LongestRun, IsOneSixtyFourthOfAUnitButAtLeastOne)
{
    EXPECT_EQ(longest_run(kDefaultLayout), 64u);
    EXPECT_EQ(longest_run(kSmall), 1u);
    EXPECT_EQ(longest_run(make_layout(0, Unit::Millisecond, 20, 3, 0)), 1u);
    EXPECT_EQ(longest_run(make_layout(0, Unit::Second, 30, 3, 30)), 65536u);
}

/*----------------------------------------------------------------------
 * The usual case by itself
 *----------------------------------------------------------------------*/

TEST_F(DrawRunTest, ContinuesARunWithoutTouchingTheLease)
{
    Lease &lease = hold(1, 100);
    draw_at(100, 8);
    const std::uint64_t word = lease.word.load();
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 100), id(100, 1, 1));
    EXPECT_EQ(lease.word.load(), word);
}

TEST_F(DrawRunTest, HasNothingInARunThatIsUsedUp)
{
    Lease &lease = hold(1, 100);
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 100), -1);
    draw_at(100);
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 100), -1);
}

TEST_F(DrawRunTest, HasNothingInARunOfAnotherTime)
{
    Lease &lease = hold(1, 100);
    draw_at(100, 8);
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 101), -1);
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 99), -1);
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 100), id(100, 1, 1));
}

TEST_F(DrawRunTest, HasNothingInARunOfAnEarlierLease)
{
    Lease &lease = hold(1, 100);
    draw_at(100, 8);
    lease.install(1, layout_.first_tick(100) + 8, kHorizon, kRenewAt);
    EXPECT_EQ(draw_from_run(state_, layout_, lease, 100), -1);
}

/*----------------------------------------------------------------------
 * Waiting for the clock
 *----------------------------------------------------------------------*/

TEST_F(DrawTest, WaitsForTheNextUnitWhenThisOneIsUsedUp)
{
    hold(5, 100);
    EXPECT_EQ(use_up(100), kSequences);
    const Draw waiting = draw_at(100);
    EXPECT_EQ(waiting.verdict, Verdict::Wait);
    EXPECT_EQ(waiting.until, 101);
    EXPECT_EQ(draw_at(101).id, id(101, 5, 0));
}

TEST_F(DrawTest, TellsAUsedUpSequenceFromAClockThatSteppedBack)
{
    hold(5, 100);
    for (std::uint32_t i = 0; i < kSequences; i++) {
        draw_at(100);
    }
    EXPECT_TRUE(draw_at(100).saturated);
    GeneratorState other;
    other.clear();
    EXPECT_FALSE(draw(other, source(), 99, 1).saturated);
}

TEST_F(DrawTest, TakesNothingFurtherAheadThanHalfOfWhatItWouldWait)
{
    const Lease &lease = hold(5, 100 + max_wait_ / 2 + 1);
    const std::uint64_t word = lease.word.load();
    EXPECT_EQ(draw_at(100).until, 101);
    EXPECT_EQ(lease.word.load(), word);
    EXPECT_EQ(draw_at(101).until, 101 + max_wait_ / 2);
    EXPECT_EQ(lease.word.load(), word + 1);
}

TEST_F(DrawRunTest, TakesNoMoreThanItNeedsOfAUnitThatHasNotBegun)
{
    const Lease &lease = hold(1, 100);
    EXPECT_EQ(use_up(100), 4096u);
    EXPECT_EQ(lease.word.load(), layout_.first_tick(101) + 1);
}

TEST_F(DrawTest, KeepsTheTickThatItWaitsFor)
{
    const Lease &lease = hold(5, 100);
    use_up(100);
    const std::uint64_t word = lease.word.load();
    EXPECT_EQ(draw_at(100).verdict, Verdict::Wait);
    EXPECT_EQ(lease.word.load(), word);
}

TEST_F(DrawTest, ServesWaitersInTheOrderOfTheirCalls)
{
    hold(5, 100);
    use_up(100);
    GeneratorState other;
    other.clear();
    EXPECT_EQ(draw(other, source(), 100, 1).verdict, Verdict::Wait);
    EXPECT_LT(draw_at(101).id, draw(other, source(), 101, 1).id);
}

TEST_F(DrawTest, WaitsUntilAClockThatSteppedBackHasCaughtUp)
{
    hold(5, 0);
    const std::int64_t before = draw_at(100).id;
    const Draw waiting = draw_at(95);
    EXPECT_EQ(waiting.verdict, Verdict::Wait);
    EXPECT_EQ(waiting.until, 100);
    EXPECT_EQ(draw_at(99).until, 100);
    EXPECT_GT(draw_at(100).id, before);
}

TEST_F(DrawTest, MissesTheTimeThatItWaitedForAndTakesTheNext)
{
    hold(5, 100);
    use_up(100);
    EXPECT_EQ(draw_at(105).id, id(105, 5, 1));
}

TEST_F(DrawTest, WaitsJustAsLongAsItIsWillingTo)
{
    hold(5, 0);
    draw_at(100);
    EXPECT_EQ(draw_at(100 - max_wait_).verdict, Verdict::Wait);
    EXPECT_EQ(draw_at(100 - max_wait_ - 1).verdict, Verdict::ClockBehind);
}

TEST_F(DrawTest, GoesOnAfterTheClockWasBehind)
{
    hold(5, 0);
    const std::int64_t before = draw_at(100).id;
    EXPECT_EQ(draw_at(50).verdict, Verdict::ClockBehind);
    EXPECT_GT(draw_at(100).id, before);
}

TEST_F(DrawTest, GivesUpATickThatItWaitedForWhenTheClockStepsBackFurther)
{
    hold(5, 100);
    use_up(100);
    EXPECT_EQ(draw_at(50).verdict, Verdict::ClockBehind);
    EXPECT_FALSE(state_.has_run());
}

/*----------------------------------------------------------------------
 * Leases
 *----------------------------------------------------------------------*/

TEST_F(DrawTest, NeedsALeaseWhenItHasNone) { EXPECT_EQ(draw_at(100).verdict, Verdict::NeedLease); }

TEST_F(DrawTest, NeedsALeaseFromTheHorizonOn)
{
    hold(5, 0, 200);
    EXPECT_EQ(draw_at(199).verdict, Verdict::Issued);
    EXPECT_EQ(draw_at(200).verdict, Verdict::NeedLease);
}

TEST_F(DrawTest, NeedsALeaseRatherThanATickAtTheHorizon)
{
    hold(5, 0, 200);
    EXPECT_EQ(use_up(199), kSequences);
    EXPECT_EQ(draw_at(199).verdict, Verdict::NeedLease);
}

TEST_F(DrawTest, GoesOnOnceTheHorizonIsExtended)
{
    Lease &lease = hold(5, 0, 200);
    draw_at(200);
    lease.extend(300, 250);
    EXPECT_EQ(draw_at(200).verdict, Verdict::Issued);
}

TEST_F(DrawTest, NeedsALeaseWhenItsOwnIsRetired)
{
    hold(5, 0).retire();
    EXPECT_EQ(draw_at(100).verdict, Verdict::NeedLease);
}

TEST_F(DrawTest, DoesNotWaitForATickOfALeaseThatIsRetired)
{
    Lease &lease = hold(5, 100);
    use_up(100);
    lease.retire();
    EXPECT_EQ(draw_at(100).verdict, Verdict::NeedLease);
}

TEST_F(DrawRunTest, DropsARunOfALeaseThatIsRetired)
{
    Lease &lease = hold(1, 100);
    draw_at(100, 8);
    lease.retire();
    EXPECT_EQ(draw_at(100).verdict, Verdict::NeedLease);
}

TEST_F(DrawRunTest, DropsARunWhenTheSameMachineIdWasClaimedAgain)
{
    Lease &lease = hold(1, 100);
    draw_at(100, 8);
    lease.install(1, layout_.first_tick(100) + 100, kHorizon, kRenewAt);
    EXPECT_EQ(draw_at(100).verdict, Verdict::NeedLease);
    refs_[0].version = lease.version.load();
    EXPECT_EQ(draw_at(100).id, id(100, 1, 100));
}

TEST_F(DrawRunTest, TellsFromWhenRenewalIsDue)
{
    hold(1, 0);
    EXPECT_FALSE(draw_at(kRenewAt - 1).renewal_is_due);
    EXPECT_TRUE(draw_at(kRenewAt).renewal_is_due);
    draw_at(kRenewAt, 8);
    EXPECT_TRUE(draw_at(kRenewAt).renewal_is_due) << "out of a run, too";
}

/*----------------------------------------------------------------------
 * Several leases
 *----------------------------------------------------------------------*/

TEST_F(DrawTest, UsesUpOneMachineIdAfterTheOtherInRisingOrder)
{
    hold(2, 100);
    hold(4, 100);
    hold(7, 100);
    for (std::int64_t machine : {2, 4, 7}) {
        for (std::int64_t sequence = 0; sequence < kSequences; sequence++) {
            ASSERT_EQ(draw_at(100).id, id(100, machine, sequence));
        }
    }
    const Draw waiting = draw_at(100);
    EXPECT_EQ(waiting.verdict, Verdict::Wait);
    EXPECT_EQ(waiting.until, 101);
}

TEST_F(DrawTest, ReturnsToTheLowestMachineIdInTheNextUnit)
{
    hold(2, 100);
    hold(4, 100);
    use_up(100);
    EXPECT_EQ(layout_.decompose(draw_at(101).id).machine_id, 2);
}

TEST_F(DrawTest, WaitsRatherThanGoBackToALowerMachineIdInTheSameUnit)
{
    hold(2, 100).retire();
    hold(4, 100);
    const std::int64_t before = draw_at(100).id;
    leases_[0].install(2, layout_.first_tick(100), kHorizon, kRenewAt);
    refs_[0].version = leases_[0].version.load();
    leases_[1].retire();
    const Draw waiting = draw_at(100);
    EXPECT_EQ(waiting.verdict, Verdict::Wait);
    EXPECT_EQ(waiting.until, 101);
    EXPECT_EQ(leases_[0].word.load(), layout_.first_tick(100)) << "takes nothing in vain";
    EXPECT_GT(draw_at(101).id, before);
}

TEST_F(DrawTest, PrefersALeaseThatServesNowToOneInTheFuture)
{
    hold(2, 105);
    hold(4, 0);
    EXPECT_EQ(draw_at(100).id, id(100, 4, 0));
}

TEST_F(DrawTest, WaitsForTheLeaseThatServesSoonest)
{
    hold(2, 108);
    hold(4, 103);
    EXPECT_EQ(draw_at(100).until, 103);
}

TEST_F(DrawTest, ServesFromOneLeaseWhileAnotherIsAtItsHorizon)
{
    hold(2, 0, 100);
    hold(4, 0);
    EXPECT_EQ(draw_at(100).id, id(100, 4, 0));
}

TEST_F(DrawTest, BeginsItsOrderAnewWhereTheLastIdIsTooFarInTheFuture)
{
    hold(5, 0);
    draw_at(1000);
    hold(2, 0);
    EXPECT_EQ(draw_at(500).id, id(500, 2, 0));
}

TEST_F(DrawTest, KeepsItsOrderWhereTheLastIdIsALittleInTheFuture)
{
    hold(5, 0);
    const std::int64_t before = draw_at(100).id;
    leases_[0].retire();
    hold(2, 0);
    for (const std::int64_t now : {std::int64_t{99}, 100 - max_wait_}) {
        const Draw waiting = draw_at(now);
        EXPECT_EQ(waiting.verdict, Verdict::Wait);
        EXPECT_EQ(waiting.until, 101);
    }
    EXPECT_EQ(leases_[1].word.load(), 0u) << "takes nothing in vain";
    EXPECT_GT(draw_at(101).id, before);
}

TEST_F(DrawTest, OwesItsOrderToNobodyAtTheBeginningOfASession)
{
    hold(5, 0);
    draw_at(100);
    leases_[0].retire();
    hold(2, 0);
    state_.begin_session();
    EXPECT_EQ(draw_at(100).id, id(100, 2, 0));
    EXPECT_EQ(state_.issued.get(), 2u) << "counters outlive sessions";
}

/*----------------------------------------------------------------------
 * The ends of time
 *----------------------------------------------------------------------*/

TEST_F(DrawTest, SaysSoWhenTheClockIsBeforeTheEpoch)
{
    hold(5, 0);
    EXPECT_EQ(draw_at(-1).verdict, Verdict::BeforeEpoch);
    EXPECT_EQ(draw_at(0).id, id(0, 5, 0));
}

TEST_F(DrawTest, TellsAClockFarBehindTheEndOfTimeFromTheEnd)
{
    const std::int64_t last = layout_.timestamp.max();
    hold(7, last, last + 1);
    use_up(last);
    EXPECT_EQ(draw_at(last - 1000).verdict, Verdict::ClockBehind);
}

TEST_F(DrawTest, SaysSoWhenTheClockIsPastTheEndEvenWithoutALease)
{
    EXPECT_EQ(draw_at(layout_.timestamp.max() + 1).verdict, Verdict::EndOfTime);
}

TEST_F(DrawTest, ServesTheLastUnitOfTimeAndNoneAfterIt)
{
    const std::int64_t last = layout_.timestamp.max();
    hold(7, last, last + 1);
    EXPECT_EQ(use_up(last), kSequences);
    EXPECT_EQ(state_.last_id.get(), layout_.max_id());
    EXPECT_EQ(draw_at(last).verdict, Verdict::EndOfTime);
    EXPECT_EQ(draw_at(last + 1).verdict, Verdict::EndOfTime);
}

/*----------------------------------------------------------------------
 * Under a wild clock, and many threads
 *----------------------------------------------------------------------*/

TEST_F(DrawTest, GivesIncreasingIdsOfTheVeryMomentHoweverTheClockWanders)
{
    hold(1, 0, 1 << 20);
    hold(6, 0, 1 << 20);
    max_wait_ = 1000;
    std::mt19937 random(2026);
    std::int64_t now = 1000;
    std::int64_t last_id = -1;
    for (int i = 0; i < 20000; i++) {
        now += static_cast<std::int64_t>(random() % 12) - 5;
        const Draw drawn = draw_at(now, 1 + random() % 4);
        if (drawn.verdict == Verdict::Issued) {
            ASSERT_GT(drawn.id, last_id);
            ASSERT_EQ(layout_.decompose(drawn.id).timestamp, now);
            last_id = drawn.id;
        } else if (drawn.verdict == Verdict::Wait) {
            ASSERT_GT(drawn.until, now);
        } else {
            FAIL() << "the clock never steps back by more than a session would wait";
        }
    }
    EXPECT_GT(state_.issued.get(), 1000u);
}

/*
 * Sessions in threads of their own, a keeper that grants short leases and moves
 * them from machine ID to machine ID, and a clock that goes on when somebody
 * waits for it.
 */
class Instance {
  public:
    static constexpr std::uint32_t kLeases = 3;
    static constexpr std::uint32_t kMachines = 8;
    static constexpr std::int64_t kGrant = 20; /* units */
    static constexpr std::int64_t kMaxWait = 5;

    Instance()
    {
        for (std::uint32_t i = 0; i < kLeases; i++) {
            leases_[i].clear();
            grant(i);
        }
    }

    /*
     * The keeper's rule: a machine ID that nobody holds, from its old horizon on.
     * Out of machine IDs whose time has come, the lease stays as it is.
     */
    void grant(std::uint32_t index)
    {
        std::uint32_t machine = 0;
        for (std::uint32_t i = 0; i < kMachines; i++) {
            if (!is_held(i) && (is_held(machine) || horizons_[i] < horizons_[machine])) {
                machine = i;
            }
        }
        const std::int64_t start = std::max(now(), horizons_[machine]);
        if (start > now() + kMaxWait) {
            return;
        }
        horizons_[machine] = start + kGrant;
        leases_[index].install(machine, kSmall.first_tick(start), start + kGrant, start);
    }

    void renew(std::uint32_t index)
    {
        Lease &lease = leases_[index];
        std::int64_t &horizon = horizons_[lease.machine_id.load()];
        horizon = std::max(horizon, now() + kGrant);
        lease.extend(horizon, now());
    }

    std::int64_t now() const { return clock_.load(std::memory_order_relaxed); }

    /* The next unit begins, unless somebody else made it begin already. */
    void pass_time(std::int64_t seen) { clock_.compare_exchange_strong(seen, seen + 1); }

    /* What a session sees at the moment, by machine ID. */
    std::vector<LeaseRef> refs() const
    {
        std::vector<LeaseRef> found;
        for (std::uint32_t i = 0; i < kLeases; i++) {
            const std::uint64_t version = leases_[i].version.load(std::memory_order_acquire);
            const std::uint32_t machine = leases_[i].machine_id.load(std::memory_order_acquire);
            if (version % 2 == 0 && leases_[i].version.load(std::memory_order_acquire) == version) {
                found.push_back({i, machine, version});
            }
        }
        std::sort(found.begin(), found.end(),
                  [](const LeaseRef &a, const LeaseRef &b) { return a.machine_id < b.machine_id; });
        return found;
    }

    Lease *leases() { return leases_.data(); }

  private:
    bool is_held(std::uint32_t machine) const
    {
        return std::any_of(leases_.begin(), leases_.end(), [machine](const Lease &lease) {
            return lease.held() && lease.machine_id.load() == machine;
        });
    }

    std::array<Lease, kLeases> leases_;
    std::array<std::int64_t, kMachines> horizons_{}; /* the keeper's alone */
    std::atomic<std::int64_t> clock_{0};
};

/* One session's IDs, until it has drawn `count`. */
std::vector<std::int64_t> run_session(Instance &instance, std::size_t count)
{
    std::vector<std::int64_t> ids;
    GeneratorState state;
    state.clear();
    std::uint32_t hint = 1;
    while (ids.size() < count) {
        const std::vector<LeaseRef> refs = instance.refs();
        const Source source{&kSmall, instance.leases(), refs.data(),
                            static_cast<std::uint32_t>(refs.size()), Instance::kMaxWait};
        const std::int64_t now = instance.now();
        const Draw drawn = draw(state, source, now, hint);
        hint = 1 + hint % 3;
        if (drawn.verdict == Verdict::Issued) {
            EXPECT_EQ(kSmall.decompose(drawn.id).timestamp, now);
            ids.push_back(drawn.id);
        } else if (drawn.verdict == Verdict::NeedLease) {
            std::this_thread::yield(); /* the keeper will see to it */
        } else if (drawn.verdict == Verdict::Wait || drawn.verdict == Verdict::ClockBehind) {
            instance.pass_time(now);
        } else {
            ADD_FAILURE() << "the clock ran away";
            break;
        }
    }
    return ids;
}

TEST(DrawUnderThreads, NeverGivesAnIdTwiceWhileLeasesComeAndGo)
{
    constexpr std::size_t kSessions = 8;
    constexpr std::size_t kIds = 10000;
    Instance instance;
    std::atomic<bool> done{false};
    std::thread keeper([&] {
        std::mt19937 random(1);
        while (!done.load(std::memory_order_relaxed)) {
            const std::uint32_t index = random() % Instance::kLeases;
            if (random() % 2 == 0) {
                instance.grant(index);
            } else {
                instance.renew(index);
            }
        }
    });
    std::array<std::vector<std::int64_t>, kSessions> ids;
    std::vector<std::thread> sessions;
    sessions.reserve(kSessions);
    for (std::vector<std::int64_t> &mine : ids) {
        sessions.emplace_back([&] { mine = run_session(instance, kIds); });
    }
    for (std::thread &session : sessions) {
        session.join();
    }
    done.store(true);
    keeper.join();

    std::vector<std::int64_t> all;
    for (const std::vector<std::int64_t> &mine : ids) {
        EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end())) << "a session's IDs increase";
        all.insert(all.end(), mine.begin(), mine.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "no ID comes twice";
}

} /* namespace */
} /* namespace snowflake */
