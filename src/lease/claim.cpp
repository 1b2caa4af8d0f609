/*
 * claim.cpp
 *     Getting a machine ID from the registry; see claim.h.
 */
#include "lease/claim.h"

#include <cinttypes>
#include <climits>
#include <cstring>

#include "core/layout_spec.h"
#include "lease/pools.h"
#include "server/clock.h"
#include "server/settings.h"

extern "C" {
#include "utils/syscache.h"
}

namespace snowflake {
namespace {

/* How often a claim that was lost to a faster one, or to another database, is repeated. */
constexpr int kClaimAttempts = 64;
constexpr int kAttemptsIfAvoiding = 4;

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
void collect_avoided(const RenewalWork &work, bool others_too, Avoid *avoid)
{
    const SharedState *state = shared_state();
    const std::uint32_t hash = generator_hash(work.key);
    avoid->count = 0;
    lock_state(LW_SHARED);
    for (const LeaseRecord &record : state->records) {
        if (record.status == LeaseStatus::Free || record.generator_hash != hash) {
            continue;
        }
        const bool ours = record.database == work.key.database;
        const bool ahead = record.status == LeaseStatus::Retired && record.horizon > work.now;
        const bool held =
            record.status == LeaseStatus::Held || record.status == LeaseStatus::Claiming;
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
bool reserve(RenewalWork *work, std::uint32_t machine_id, bool others_too)
{
    const SharedState *state = shared_state();
    const std::uint32_t hash = generator_hash(work->key);
    bool taken = false;
    lock_state(LW_EXCLUSIVE);
    for (const LeaseRecord &record : state->records) {
        taken = taken ||
                (others_too && record.generator_hash == hash && record.machine_id == machine_id &&
                 record.database != work->key.database &&
                 (record.status == LeaseStatus::Held || record.status == LeaseStatus::Claiming));
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

bool claim_one(Registry *registry, RenewalWork *work, bool others_too, Avoid *avoid)
{
    collect_avoided(*work, others_too, avoid);
    for (int attempt = 0; attempt < kClaimAttempts; attempt++) {
        const ClaimRequest request{&work->key, work->now, work->horizon, avoid->ids, avoid->count};
        const ClaimReply reply = registry->claim(request);
        if (!reply.claimed) {
            const Availability availability = registry->availability(work->key, work->now);
            const bool none_free = availability.known && availability.free_in_us > 0;
            const bool refused =
                availability.known &&
                std::strcmp(availability.layout, format_layout(work->key.layout).c_str()) != 0;
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
std::int64_t time_when_free(const Availability &availability)
{
    return availability.known && availability.free_in_us != INT64_MAX
               ? wall_clock_us() + availability.free_in_us
               : 0;
}

/* Says why no machine ID could be had, as an error of the renewal. */
[[noreturn]] void report_none_free(const Availability &availability, const RenewalWork &work)
{
    const char *generator = NameStr(work.key.generator);
    const SpecText layout = format_layout(work.key.layout);
    if (availability.known && std::strcmp(availability.layout, layout.c_str()) != 0) {
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the registry knows generator \"%s\" under another layout", generator),
             errdetail("It is \"%s\" here and \"%s\" there.", layout.c_str(), availability.layout),
             errhint("Give the generator another name.")));
    }
    const std::int64_t free_at_us = time_when_free(availability);
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
                        availability.machine_id, generator,
                        availability.known ? availability.holder : "another", free_at),
                 errhint("It is the only one that snowflake.machine_ids allows. Wait, or allow "
                         "another.")));
    }
    ereport(
        ERROR,
        (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
         errmsg("no machine ID of generator \"%s\" is free", generator),
         errdetail("Machine ID %u, held by %s, is free soonest, at %s.", availability.machine_id,
                   availability.known ? availability.holder : "another", free_at),
         errhint("Wait, allow more machine IDs in snowflake.machine_ids, or end a lease that "
                 "nobody uses with snowflake_release_lease().")));
}

void check_allowed(const RenewalWork &work)
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

/* Goes on with a lease of this server's last run, if one was saved that is of use. */
bool resume(Registry *registry, RenewalWork *work)
{
    for (;;) {
        SavedLease saved;
        lock_state(LW_EXCLUSIVE);
        const bool found = take_saved_lease(work->key, &saved);
        unlock_state();
        if (!found) {
            return false;
        }
        HeldLease held{};
        held.word = saved.next_tick;
        if (!machine_ids().contains(saved.machine_id) ||
            !in_reach(work->key.layout, work->terms, held, work->now)) {
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

} /* namespace */

bool claim(Registry *registry, RenewalWork *work)
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

void claim_or_report(Registry *registry, RenewalWork *work)
{
    if (!claim(registry, work)) {
        const Availability availability = registry->availability(work->key, work->now);
        work->failure.retry_at_us = time_when_free(availability);
        report_none_free(availability, *work);
    }
}

} /* namespace snowflake */
