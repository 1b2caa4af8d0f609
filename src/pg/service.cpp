/*
 * service.cpp
 *     One service of one pool; see service.h.
 */
#include "pg/service.h"

#include <cinttypes>
#include <climits>
#include <cstring>

#include "core/layout_spec.h"
#include "pg/clock.h"
#include "pg/settings.h"

extern "C" {
#include "utils/syscache.h"
}

namespace snowflake {
namespace {

/* How often a claim that was lost to a faster one, or to another database, is repeated. */
constexpr int kClaimAttempts = 64;
constexpr int kAttemptsIfAvoiding = 4;

constexpr std::int64_t kDayMs = 86400000;
constexpr std::int64_t kYearMs = 365 * kDayMs;

std::int64_t id_time_now(const Layout &layout) { return layout.from_unix_ms(wall_clock_ms()); }

/*
 * Drops the pools of databases that are no longer there: nobody draws on their
 * leases, so their machine IDs are free for others.
 */
void forget_dropped_databases()
{
    SharedState *state = shared_state();
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; i++) {
        Pool &pool = state->pools[i];
        lock_state(LW_SHARED);
        const Oid database = pool.in_use && pool.private_to == -1 ? pool.key.database : InvalidOid;
        const std::uint64_t generation = pool.generation;
        unlock_state();
        if (!OidIsValid(database) ||
            SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database))) {
            continue;
        }
        lock_state(LW_EXCLUSIVE);
        if (pool.in_use && pool.generation == generation) {
            drop_pool(i);
        }
        unlock_state();
    }
}

/* What the claim must not choose, and what it had better not. */
struct Avoid {
    std::uint32_t ids[kMaxLeases];
    std::uint32_t count;
};

/*
 * A claim must not choose what this generator still holds or has held until a
 * horizon that lies ahead (a registry that was dropped and made anew knows
 * nothing of it). It had better not choose what other databases of this server
 * hold for a generator of the same name.
 */
void collect_avoided(const ServiceWork &work, bool others_too, Avoid *avoid)
{
    const SharedState *state = shared_state();
    const std::uint32_t hash = generator_hash(work.key);
    avoid->count = 0;
    lock_state(LW_SHARED);
    for (const LeaseRecord &record : state->records) {
        if (record.tenure == Tenure::Free || record.generator_hash != hash) {
            continue;
        }
        const bool ours = record.database == work.key.database;
        const bool ahead = record.tenure == Tenure::Retired && record.horizon > work.now;
        const bool held = record.tenure == Tenure::Held || record.tenure == Tenure::Claiming;
        if (ours ? (held || ahead) : (others_too && held)) {
            avoid->ids[avoid->count++] = record.machine_id;
        }
    }
    unlock_state();
}

/*
 * Makes a claimed machine ID known to the other keepers of this server before it
 * is committed. False if one of them has the same for another database.
 */
bool reserve(ServiceWork *work, std::uint32_t machine_id, bool others_too)
{
    const SharedState *state = shared_state();
    const std::uint32_t hash = generator_hash(work->key);
    bool taken = false;
    lock_state(LW_EXCLUSIVE);
    for (const LeaseRecord &record : state->records) {
        taken =
            taken || (others_too && record.generator_hash == hash &&
                      record.machine_id == machine_id && record.database != work->key.database &&
                      (record.tenure == Tenure::Held || record.tenure == Tenure::Claiming));
    }
    if (!taken) {
        work->claimed = reserve_lease(work->pool, machine_id, work->horizon);
    }
    unlock_state();
    if (!taken && work->claimed == kNone) {
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("this server holds the most leases that it can, %u", kMaxLeases)));
    }
    return !taken;
}

bool claim_one(Registry *registry, ServiceWork *work, bool others_too, Avoid *avoid)
{
    collect_avoided(*work, others_too, avoid);
    for (int attempt = 0; attempt < kClaimAttempts; attempt++) {
        const ClaimRequest request{&work->key, work->now, work->horizon, avoid->ids, avoid->count};
        const ClaimReply reply = registry->claim(request);
        if (!reply.claimed) {
            const Outlook outlook = registry->outlook(work->key, work->now);
            const bool none_free = outlook.known && outlook.free_in_us > 0;
            const bool refused =
                outlook.known &&
                std::strcmp(outlook.layout, format_layout(work->key.layout).c_str()) != 0;
            /* Where all that is free is to be avoided, it looks as if another claim were faster. */
            const bool perhaps_avoided = avoid->count > 0 && attempt >= kAttemptsIfAvoiding;
            if (none_free || refused || perhaps_avoided) {
                return false;
            }
            continue; /* another claim was faster */
        }
        if (reserve(work, reply.machine_id, others_too)) {
            work->first_tick = first_tick_of_claim(work->key.layout, reply.old_horizon, work->now);
            return true;
        }
        collect_avoided(*work, others_too, avoid);
    }
    return false;
}

/* By this server's clock, when a machine ID is free; 0 if that is unknown. */
std::int64_t time_when_free(const Outlook &outlook)
{
    return outlook.known && outlook.free_in_us != INT64_MAX ? wall_clock_us() + outlook.free_in_us
                                                            : 0;
}

/* Says why no machine ID could be had, as an error of the service. */
[[noreturn]] void report_none_free(const Outlook &outlook, const ServiceWork &work)
{
    const char *generator = NameStr(work.key.generator);
    const SpecText layout = format_layout(work.key.layout);
    if (outlook.known && std::strcmp(outlook.layout, layout.c_str()) != 0) {
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the registry knows generator \"%s\" under another layout", generator),
                 errdetail("It is \"%s\" here and \"%s\" there.", layout.c_str(), outlook.layout),
                 errhint("Give the generator another name.")));
    }
    const std::int64_t free_at_us = time_when_free(outlook);
    const char *free_at =
        free_at_us == 0 ? "infinity" : pstrdup(timestamptz_to_str(timestamptz_of(free_at_us)));
    if (work.because_behind) {
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
                        errmsg("the clock is " INT64_FORMAT " ms behind the last ID, and no other "
                               "machine ID of generator \"%s\" is free before %s",
                               work.behind * unit_ms(work.key.layout.unit), generator, free_at),
                        errhint("Correct the clock, or allow more machine IDs in "
                                "snowflake.machine_ids.")));
    }
    if (machine_ids().pinned()) {
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_IN_USE),
                 errmsg("machine ID %u of generator \"%s\" is leased to %s until %s",
                        outlook.machine_id, generator, outlook.known ? outlook.holder : "another",
                        free_at),
                 errhint("It is the only one that snowflake.machine_ids allows. Wait, or allow "
                         "another.")));
    }
    ereport(ERROR,
            (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
             errmsg("no machine ID of generator \"%s\" is free", generator),
             errdetail("Machine ID %u, held by %s, is free soonest, at %s.", outlook.machine_id,
                       outlook.known ? outlook.holder : "another", free_at),
             errhint("Wait, allow more machine IDs in snowflake.machine_ids, or end a lease that "
                     "nobody uses with snowflake_release_lease().")));
}

void check_allowed(const ServiceWork &work)
{
    const Layout &layout = work.key.layout;
    if (static_cast<std::int64_t>(machine_ids().greatest()) > layout.machine_id.max()) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("machine ID %u in snowflake.machine_ids is out of range for "
                               "generator \"%s\"",
                               machine_ids().greatest(), NameStr(work.key.generator)),
                        errdetail("Its machine IDs go from 0 to " INT64_FORMAT ".",
                                  layout.machine_id.max()),
                        errhint("Change snowflake.machine_ids.")));
    }
}

/* How far the clock is behind the lease that it is least behind of. */
void measure_step(ServiceWork *work, const Holding *holdings)
{
    for (std::uint32_t i = 0; i < work->count; i++) {
        if (work->now >= holdings[i].horizon) {
            continue;
        }
        const std::int64_t behind = work->key.layout.tick_time(holdings[i].word) - work->now;
        if (behind > work->terms.max_wait && (!work->because_behind || behind < work->behind)) {
            work->because_behind = true;
            work->behind = behind;
            work->behind_machine_id = work->leases[i].ref.machine_id;
        }
    }
}

/* Goes on with a lease of this server's last run, if one was saved that is of use. */
bool resume(Registry *registry, ServiceWork *work)
{
    for (;;) {
        SavedLease saved;
        lock_state(LW_EXCLUSIVE);
        const bool found = take_saved_lease(work->key, &saved);
        unlock_state();
        if (!found) {
            return false;
        }
        Holding holding{};
        holding.word = saved.next_tick;
        if (!machine_ids().contains(saved.machine_id) ||
            !in_reach(work->key.layout, work->terms, holding, work->now)) {
            continue;
        }
        const std::int64_t granted = registry->resume(work->key, saved, work->horizon);
        if (granted >= 0 && reserve(work, saved.machine_id, false)) {
            work->horizon = granted;
            work->first_tick = saved.next_tick;
            return true;
        }
    }
}

bool claim(Registry *registry, ServiceWork *work)
{
    check_allowed(*work);
    work->horizon = granted_horizon(work->key.layout, work->terms, work->now);
    if (resume(registry, work)) {
        return true;
    }
    if (OidIsValid(work->key.database)) {
        forget_dropped_databases();
    }
    auto *avoid = static_cast<Avoid *>(palloc(sizeof(Avoid)));
    const bool claimed =
        claim_one(registry, work, true, avoid) || claim_one(registry, work, false, avoid);
    pfree(avoid);
    return claimed;
}

void claim_or_report(Registry *registry, ServiceWork *work)
{
    if (!claim(registry, work)) {
        const Outlook outlook = registry->outlook(work->key, work->now);
        work->failure.retry_at_us = time_when_free(outlook);
        report_none_free(outlook, *work);
    }
}

/* How many of the leases can give an ID soon. */
std::uint32_t leases_in_reach(const ServiceWork &work, const Holding *holdings)
{
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < work.count; i++) {
        count += work.now < holdings[i].horizon &&
                         in_reach(work.key.layout, work.terms, holdings[i], work.now)
                     ? 1
                     : 0;
    }
    return count;
}

Holding holding_of(const Lease &lease, const LeaseRecord &record, std::int64_t now)
{
    Holding holding{};
    holding.word = lease.word.load(std::memory_order_acquire);
    holding.horizon = lease.horizon.load(std::memory_order_acquire);
    holding.due = now >= lease.renew_at.load(std::memory_order_relaxed) ||
                  monotonic_ms() - record.granted_at_ms >= lease_ttl_ms / 3;
    holding.used = holding.word != record.word_at_grant;
    holding.allowed = machine_ids().contains(record.machine_id);
    return holding;
}

void start_serving(Pool *pool)
{
    pool->service = Service::Serving;
    pool->keeper_pid = MyProcPid;
}

void look_at_pool(std::uint32_t index, ServiceWork *work)
{
    SharedState *state = shared_state();
    Pool &pool = state->pools[index];
    *work = ServiceWork{};
    work->pool = index;
    work->pool_generation = pool.generation;
    work->key = pool.key;
    work->request = pool.requested;
    work->wants_more = pool.wants_more;
    pool.wants_more = false; /* who asks from now on asks the next service */
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

/* Ends this process's service of a pool and wakes who waits for it. */
void end_service(Pool *pool, const ServiceWork &work, const Failure &failure)
{
    pool->service = Service::Idle;
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
void warn_of_end(const ServiceWork &work)
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

bool still_there(const Pool &pool, const ServiceWork &work)
{
    return pool.in_use && pool.generation == work.pool_generation;
}

} /* namespace */

bool begin_next_service(Oid database, ServiceWork *work)
{
    SharedState *state = shared_state();
    bool found = false;
    lock_state(LW_EXCLUSIVE);
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used && !found; i++) {
        Pool &pool = state->pools[i];
        if (pool.in_use && pool.private_to == -1 && pool.key.database == database &&
            pool.service != Service::Serving && pool.requested > pool.served) {
            start_serving(&pool);
            look_at_pool(i, work);
            found = true;
        }
    }
    unlock_state();
    return found;
}

void begin_service(std::uint32_t pool, ServiceWork *work)
{
    lock_state(LW_EXCLUSIVE);
    start_serving(&shared_state()->pools[pool]);
    look_at_pool(pool, work);
    unlock_state();
}

void do_service(Registry *registry, ServiceWork *work)
{
    const SharedState *state = shared_state();
    const Layout &layout = work->key.layout;
    work->terms = terms_for(layout);
    work->now = id_time_now(layout);
    if (work->now < 0 || work->now > layout.timestamp.max()) {
        return; /* the session that asked says so itself */
    }

    Holding holdings[kMaxLeasesOfPool];
    for (std::uint32_t i = 0; i < work->count; i++) {
        const std::uint32_t index = work->leases[i].ref.index;
        holdings[i] = holding_of(state->leases[index], state->records[index], work->now);
        work->leases[i].holding = holdings[i];
    }
    for (std::uint32_t i = 0; i < work->count; i++) {
        ServicedLease &serviced = work->leases[i];
        serviced.care = care_for(layout, work->terms, holdings, work->count, i, work->now);
        if (serviced.care != Care::Renew) {
            continue;
        }
        const std::int64_t granted = registry->renew(
            work->key, serviced.ref.machine_id, granted_horizon(layout, work->terms, work->now));
        serviced.lost = granted < 0;
        serviced.holding.horizon = serviced.lost ? 0 : granted;
    }
    for (std::uint32_t i = 0; i < work->count; i++) {
        holdings[i] = work->leases[i].holding;
    }
    if (needs_another(layout, work->terms, holdings, work->count, work->now)) {
        measure_step(work, holdings);
        claim_or_report(registry, work);
    } else if (work->wants_more &&
               leases_in_reach(*work, holdings) <
                   most_machine_ids(layout, static_cast<std::uint32_t>(max_machine_ids))) {
        /* Only speed is at stake: where no machine ID is free, the ones at hand have to do. */
        claim(registry, work);
    }
}

void finish_service(ServiceWork *work)
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
        const ServicedLease &serviced = work->leases[i];
        const std::uint32_t index = serviced.ref.index;
        if (serviced.lost) {
            count(&pool, &LeaseCounts::lost);
        }
        if (serviced.lost || serviced.care == Care::LetLapse) {
            retire_lease(index);
        } else if (serviced.care == Care::Renew) {
            LeaseRecord &record = state->records[index];
            state->leases[index].extend(serviced.holding.horizon, renew_at);
            record.horizon = serviced.holding.horizon;
            record.word_at_grant = serviced.holding.word;
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
    end_service(&pool, *work, Failure{});
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

void abandon_service(ServiceWork *work, const Failure &failure)
{
    SharedState *state = shared_state();
    lock_state(LW_EXCLUSIVE);
    if (work->claimed != kNone && state->records[work->claimed].tenure == Tenure::Claiming) {
        retire_lease(work->claimed);
    }
    work->claimed = kNone;
    Pool &pool = state->pools[work->pool];
    const bool ours = still_there(pool, *work);
    if (ours) {
        end_service(&pool, *work, failure);
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
