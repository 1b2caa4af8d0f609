/*
 * renewal.cpp
 *     One renewal of one pool; see renewal.h.
 */
#include "lease/renewal.h"

#include <cinttypes>
#include <cstring>

#include "lease/claim.h"
#include "lease/pools.h"
#include "server/clock.h"
#include "server/settings.h"

namespace snowflake {
namespace {

constexpr std::int64_t kDayMs = 86400000;
constexpr std::int64_t kYearMs = 365 * kDayMs;

std::int64_t id_time_now(const Layout &layout) { return layout.from_unix_ms(wall_clock_ms()); }

/* How far the clock is behind the lease that it is least behind of. */
void measure_step(RenewalWork *work, const HeldLease *leases_held)
{
    for (std::uint32_t i = 0; i < work->count; i++) {
        if (work->now >= leases_held[i].horizon) {
            continue;
        }
        const std::int64_t behind = work->key.layout.tick_time(leases_held[i].word) - work->now;
        if (behind > work->terms.max_wait && (!work->because_behind || behind < work->behind)) {
            work->because_behind = true;
            work->behind = behind;
            work->behind_machine_id = work->leases[i].ref.machine_id;
        }
    }
}

/* How many of the leases can give an ID soon. */
std::uint32_t leases_in_reach(const RenewalWork &work, const HeldLease *leases_held)
{
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < work.count; i++) {
        count += work.now < leases_held[i].horizon &&
                         in_reach(work.key.layout, work.terms, leases_held[i], work.now)
                     ? 1
                     : 0;
    }
    return count;
}

HeldLease held_lease_of(const Lease &lease, const LeaseRecord &record, std::int64_t now)
{
    HeldLease held{};
    held.word = lease.word.load(std::memory_order_acquire);
    held.horizon = lease.horizon.load(std::memory_order_acquire);
    held.due = now >= lease.renew_at.load(std::memory_order_relaxed) ||
               monotonic_ms() - record.granted_at_ms >= lease_ttl_ms / 3;
    held.used = held.word != record.word_at_grant;
    held.allowed = machine_ids().contains(record.machine_id);
    return held;
}

void start_working(Pool *pool)
{
    pool->keeper_state = KeeperState::Working;
    pool->keeper_pid = MyProcPid;
}

void look_at_pool(std::uint32_t index, RenewalWork *work)
{
    SharedState *state = shared_state();
    Pool &pool = state->pools[index];
    *work = RenewalWork{};
    work->pool = index;
    work->pool_generation = pool.generation;
    work->key = pool.key;
    work->request = pool.requested;
    work->wants_more = pool.wants_more;
    pool.wants_more = false; /* who asks from now on asks the next renewal */
    work->claimed = kNone;
    work->count = pool.count;
    for (std::uint32_t i = 0; i < pool.count; i++) {
        work->leases[i].ref = pool.refs[i];
    }
}

void count(Pool *pool, std::uint64_t LeaseCounts::*what)
{
    pool->counts.*what += 1;
    shared_state()->counts.*what += 1;
}

/* Ends this process's renewal of a pool and wakes who waits for it. */
void end_renewal(Pool *pool, const RenewalWork &work, const Failure &failure)
{
    pool->keeper_state = KeeperState::Idle;
    pool->keeper_pid = 0;
    pool->served = work.request > pool->served ? work.request : pool->served;
    pool->failure = failure;
    pool->failure.retry_at_us = work.failure.retry_at_us;
    if (failure.sqlerrcode != 0) {
        count(pool, &LeaseCounts::failures);
        pool->not_before_ms = monotonic_ms() + 1000;
    }
}

/* Says in the log, once in the life of a server, that a generator's time is near its end. */
void warn_of_end(const RenewalWork &work)
{
    const Layout &layout = work.key.layout;
    const std::int64_t left_ms =
        layout.to_unix_ms(layout.timestamp.max()) - layout.to_unix_ms(work.now);
    if (left_ms < kYearMs) {
        ereport(WARNING,
                (errmsg("snowflake: generator \"%s\" has no more IDs in " INT64_FORMAT " days",
                        NameStr(work.key.generator), left_ms / kDayMs),
                 errhint("Move its tables to a generator with a later epoch or a wider "
                         "timestamp.")));
    }
}

bool still_there(const Pool &pool, const RenewalWork &work)
{
    return pool.in_use && pool.generation == work.pool_generation;
}

} /* namespace */

bool begin_next_renewal(Oid database, RenewalWork *work)
{
    SharedState *state = shared_state();
    bool found = false;
    lock_state(LW_EXCLUSIVE);
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used && !found; i++) {
        Pool &pool = state->pools[i];
        if (pool.in_use && pool.private_to == -1 && pool.key.database == database &&
            pool.keeper_state != KeeperState::Working && pool.requested > pool.served) {
            start_working(&pool);
            look_at_pool(i, work);
            found = true;
        }
    }
    unlock_state();
    return found;
}

void begin_renewal(std::uint32_t pool, RenewalWork *work)
{
    lock_state(LW_EXCLUSIVE);
    start_working(&shared_state()->pools[pool]);
    look_at_pool(pool, work);
    unlock_state();
}

void do_renewal(Registry *registry, RenewalWork *work)
{
    const SharedState *state = shared_state();
    const Layout &layout = work->key.layout;
    work->terms = terms_for(layout);
    work->now = id_time_now(layout);
    if (work->now < 0 || work->now > layout.timestamp.max()) {
        return; /* the session that asked says so itself */
    }

    HeldLease leases_held[kMaxLeasesOfPool];
    for (std::uint32_t i = 0; i < work->count; i++) {
        const std::uint32_t index = work->leases[i].ref.index;
        leases_held[i] = held_lease_of(state->leases[index], state->records[index], work->now);
        work->leases[i].held = leases_held[i];
    }
    for (std::uint32_t i = 0; i < work->count; i++) {
        RenewedLease &renewed = work->leases[i];
        renewed.decision =
            decide_renewal(layout, work->terms, leases_held, work->count, i, work->now);
        if (renewed.decision != RenewalDecision::Renew) {
            continue;
        }
        const std::int64_t granted = registry->renew(
            work->key, renewed.ref.machine_id, granted_horizon(layout, work->terms, work->now));
        renewed.lost = granted < 0;
        renewed.held.horizon = renewed.lost ? 0 : granted;
    }
    for (std::uint32_t i = 0; i < work->count; i++) {
        leases_held[i] = work->leases[i].held;
    }
    if (needs_another(layout, work->terms, leases_held, work->count, work->now)) {
        measure_step(work, leases_held);
        claim_or_report(registry, work);
    } else if (work->wants_more &&
               leases_in_reach(*work, leases_held) <
                   most_machine_ids(layout, static_cast<std::uint32_t>(max_machine_ids))) {
        /* Only speed is at stake: where no machine ID is free, the ones at hand have to do. */
        claim(registry, work);
    }
}

void finish_renewal(RenewalWork *work)
{
    SharedState *state = shared_state();
    const Layout &layout = work->key.layout;
    const std::int64_t renew_at = renewal_time(work->terms, work->now);
    bool first_claim = false;
    lock_state(LW_EXCLUSIVE);
    Pool &pool = state->pools[work->pool];
    if (!still_there(pool, *work)) {
        if (work->claimed != kNone) {
            retire_lease(work->claimed);
        }
        unlock_state();
        return;
    }
    for (std::uint32_t i = 0; i < work->count; i++) {
        const RenewedLease &renewed = work->leases[i];
        const std::uint32_t index = renewed.ref.index;
        if (renewed.lost) {
            count(&pool, &LeaseCounts::lost);
        }
        if (renewed.lost || renewed.decision == RenewalDecision::LetLapse) {
            retire_lease(index);
        } else if (renewed.decision == RenewalDecision::Renew) {
            LeaseRecord &record = state->records[index];
            state->leases[index].extend(renewed.held.horizon, renew_at);
            record.horizon = renewed.held.horizon;
            record.word_at_grant = renewed.held.word;
            record.granted_at_ms = monotonic_ms();
            count(&pool, &LeaseCounts::renewals);
        }
    }
    if (work->claimed != kNone) {
        if (pool.count == kMaxLeasesOfPool) {
            retire_lease(pool.refs[0].index);
        }
        add_lease(&pool, work->claimed, work->first_tick, work->horizon, renew_at);
        count(&pool, &LeaseCounts::claims);
        if (work->because_behind) {
            count(&pool, &LeaseCounts::switches);
        }
        first_claim = pool.counts.claims == 1;
    }
    end_renewal(&pool, *work, Failure{});
    unlock_state();
    ConditionVariableBroadcast(&pool.served_cv);

    for (std::uint32_t i = 0; i < work->count; i++) {
        if (work->leases[i].lost) {
            ereport(WARNING,
                    (errmsg("snowflake: the lease of machine ID %u of generator \"%s\" is no "
                            "longer this server's",
                            work->leases[i].ref.machine_id, NameStr(work->key.generator)),
                     errdetail("It ran out or was ended, and another server may have it; this one "
                               "goes on under another machine ID.")));
        }
    }
    if (first_claim) {
        warn_of_end(*work);
    }
    if (work->claimed != kNone && work->because_behind) {
        ereport(WARNING,
                (errmsg("snowflake: the clock stepped back; generator \"%s\" goes on under machine "
                        "ID %u in place of %u",
                        NameStr(work->key.generator), state->records[work->claimed].machine_id,
                        work->behind_machine_id),
                 errdetail("The clock is " INT64_FORMAT
                           " ms behind the last ID, more than snowflake.max_clock_wait.",
                           work->behind * unit_ms(layout.unit))));
    }
}

void abandon_renewal(RenewalWork *work, const Failure &failure)
{
    SharedState *state = shared_state();
    lock_state(LW_EXCLUSIVE);
    if (work->claimed != kNone && state->records[work->claimed].status == LeaseStatus::Claiming) {
        retire_lease(work->claimed);
    }
    work->claimed = kNone;
    Pool &pool = state->pools[work->pool];
    const bool ours = still_there(pool, *work);
    if (ours) {
        end_renewal(&pool, *work, failure);
    }
    unlock_state();
    if (ours) {
        ConditionVariableBroadcast(&pool.served_cv);
    }
}

Failure failure_of(const ErrorData *error)
{
    Failure failure{};
    failure.sqlerrcode = error->sqlerrcode;
    strlcpy(failure.message, error->message == nullptr ? "unknown error" : error->message,
            sizeof(failure.message));
    if (error->detail != nullptr) {
        strlcat(failure.message, ": ", sizeof(failure.message));
        strlcat(failure.message, error->detail, sizeof(failure.message));
    }
    if (error->hint != nullptr) {
        strlcpy(failure.hint, error->hint, sizeof(failure.hint));
    }
    return failure;
}

} /* namespace snowflake */
