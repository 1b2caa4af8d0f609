/*
 * lease.h
 *     One lease in memory: the word from which all backends of an instance take
 *     their ticks, and the fence up to which they may.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception, and
 * time is passed in. Lives in shared memory.
 *
 * Why no tick is handed out twice
 * -------------------------------
 * The word holds the next free tick. take() moves it with one compare-and-swap
 * from the value it planned with to a greater one, and owns what lies between:
 * two takes cannot both have swapped the same value. Nothing else moves the
 * word except install(), and that changes the version first.
 *
 * Why no tick at or past the horizon is handed out
 * ------------------------------------------------
 * take() clips what it takes to the horizon that it read. Within one version the
 * horizon only rises, and it is raised only after the registry has committed the
 * new one, so the horizon read is never above a durable one.
 *
 * Why a tick of one lease is never issued under another
 * ------------------------------------------------------
 * A caller knows a lease by its version and machine ID (LeaseRef). install() and
 * retire() make the version odd before they touch anything and leave a new value
 * behind, so take() compares the version before it plans and again after the
 * swap. If the swap hit the word of a newer lease, then it read a value stored
 * after the version had changed, and the second look (ordered after the swap by
 * its acquire) sees that: the tick is dropped, and a gap is all that is left.
 */
#pragma once

#include <atomic>
#include <cstdint>

#include "core/layout.h"

namespace snowflake {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free,
              "a lease word in shared memory needs a lock-free 64-bit atomic");

constexpr std::size_t kCacheLine = 64;

/* A lease as a session knows it: which one, and since which claim. */
struct LeaseRef {
    std::uint32_t index; /* in the table of leases */
    std::uint32_t machine_id;
    std::uint64_t version; /* even; 0 is no lease */
};

enum class TakeOutcome {
    Taken,     /* first .. first + count - 1 belong to the caller */
    Ahead,     /* the next free tick is later than the caller would wait for */
    AtHorizon, /* the lease has to be renewed first */
    Changed,   /* the lease is no longer the one that the caller knows */
    EndOfTime, /* the layout has no later timestamp */
};

/* What a take would do; pure arithmetic on a value of the word. */
struct TakePlan {
    TakeOutcome outcome;
    std::uint64_t first;
    std::uint32_t count;
};

/*
 * Where a lease goes on when the clock shows a later unit than its word: with
 * the sequence that follows the last one, until that has passed half its range,
 * then at 0. So id % n stays even at low rates, and a unit never begins with
 * less than half its sequences.
 */
constexpr std::uint64_t tick_at(const Layout &layout, std::uint64_t word, std::int64_t now) noexcept
{
    const std::uint64_t sequence = word & layout.sequence.mask();
    const bool passed_half = sequence > layout.sequence.mask() / 2;
    return layout.first_tick(now) | (passed_half ? 0 : sequence);
}

/*
 * In: the word, the time, the horizon and the latest time the caller would wait
 * for (all in ID time), and how many ticks it wants (at least 1).
 * Out: a run of ticks within one unit of time, not before now.
 */
constexpr TakePlan plan_take(const Layout &layout, std::uint64_t word, std::int64_t now,
                             std::int64_t horizon, std::int64_t latest, std::uint32_t want) noexcept
{
    const std::uint64_t first = layout.tick_time(word) < now ? tick_at(layout, word, now) : word;
    const std::int64_t time = layout.tick_time(first);
    /* Behind a clock that was there and stepped back, the end is just far ahead. */
    if (time > layout.timestamp.max() && time <= latest) {
        return {TakeOutcome::EndOfTime, first, 0};
    }
    if (now >= horizon) {
        return {TakeOutcome::AtHorizon, first, 0};
    }
    if (time > latest) {
        return {TakeOutcome::Ahead, first, 0};
    }
    if (time >= horizon) {
        return {TakeOutcome::AtHorizon, first, 0};
    }
    const std::uint64_t left = layout.sequence.mask() - (first & layout.sequence.mask()) + 1;
    return {TakeOutcome::Taken, first, static_cast<std::uint32_t>(want < left ? want : left)};
}

/*
 * What every take writes has a cache line of its own; what a take only reads has
 * the other.
 */
struct alignas(2 * kCacheLine) Lease {
    std::atomic<std::uint64_t> word;
    std::atomic<std::int64_t> clock; /* in ID time: the latest that a take has seen */
    alignas(kCacheLine) std::atomic<std::uint64_t> version; /* even: held; odd: no lease here */
    std::atomic<std::int64_t> horizon;                      /* exclusive, in ID time, durable */
    std::atomic<std::int64_t> renew_at;                     /* in ID time: renewal is due */
    std::atomic<std::uint32_t> machine_id;

    /* Puts a slot of zeroed memory in the state "no lease". */
    void clear() noexcept
    {
        word.store(0, std::memory_order_relaxed);
        clock.store(0, std::memory_order_relaxed);
        version.store(1, std::memory_order_relaxed);
        horizon.store(0, std::memory_order_relaxed);
        renew_at.store(0, std::memory_order_relaxed);
        machine_id.store(0, std::memory_order_relaxed);
    }

    /*
     * Makes this the lease of a machine ID for ticks from `start` to below
     * `new_horizon` (ID time). Call it after the claim is durable, and one
     * caller at a time.
     */
    void install(std::uint32_t machine, std::uint64_t first_tick, std::int64_t new_horizon,
                 std::int64_t new_renew_at) noexcept
    {
        retire();
        word.store(first_tick, std::memory_order_release);
        clock.store(0, std::memory_order_relaxed);
        machine_id.store(machine, std::memory_order_release);
        horizon.store(new_horizon, std::memory_order_release);
        renew_at.store(new_renew_at, std::memory_order_release);
        /* release: who sees the even version sees all of the above */
        version.fetch_add(1, std::memory_order_release);
    }

    /* Raises the horizon after the renewal is durable; it never goes down. */
    void extend(std::int64_t new_horizon, std::int64_t new_renew_at) noexcept
    {
        if (new_horizon > horizon.load(std::memory_order_relaxed)) {
            horizon.store(new_horizon, std::memory_order_release);
        }
        renew_at.store(new_renew_at, std::memory_order_relaxed);
    }

    /* Ends the lease in memory. The word and horizon stay to be read. */
    void retire() noexcept
    {
        if ((version.load(std::memory_order_relaxed) & 1) == 0) {
            /* install() stores with release after this: who reads what it stored sees this */
            version.fetch_add(1, std::memory_order_acq_rel);
        }
    }

    bool held() const noexcept { return (version.load(std::memory_order_acquire) & 1) == 0; }

    /* Takes ticks as plan_take() says, in one atomic step. */
    TakePlan take(const Layout &layout, const LeaseRef &ref, std::int64_t now, std::int64_t latest,
                  std::uint32_t want) noexcept
    {
        /* acquire: what follows reads this version's fields, or newer ones */
        if (version.load(std::memory_order_acquire) != ref.version) {
            return {TakeOutcome::Changed, 0, 0};
        }
        const std::int64_t limit = horizon.load(std::memory_order_acquire);
        std::uint64_t seen = word.load(std::memory_order_acquire);
        TakePlan plan{};
        do {
            plan = plan_take(layout, seen, now, limit, latest, want);
            if (plan.outcome != TakeOutcome::Taken) {
                break;
            }
            /* acquire orders the second look at the version after the swap */
        } while (!word.compare_exchange_weak(seen, plan.first + plan.count,
                                             std::memory_order_acq_rel, std::memory_order_acquire));
        if (version.load(std::memory_order_acquire) != ref.version) {
            return {TakeOutcome::Changed, 0, 0};
        }
        if (now > clock.load(std::memory_order_relaxed)) {
            clock.store(now, std::memory_order_relaxed); /* for statistics: a race loses little */
        }
        return plan;
    }
};

static_assert(sizeof(Lease) == 2 * kCacheLine, "one line to write, one to read");

} /* namespace snowflake */
