/*
 * pools.cpp
 *     Pools of leases; see pools.h.
 */
#include "lease/pools.h"

#include <cstring>

#include "server/clock.h"
#include "server/settings.h"

extern "C" {
#include "common/hashfn.h"
}

namespace snowflake {
namespace {

bool is_visible(const Pool &pool)
{
    return pool.private_to == -1 || pool.private_to == leader_proc_number();
}

/* A slot for a new pool: an empty one, else that of the pool unused for longest. */
std::uint32_t slot_for_pool(SharedState *state)
{
    const std::int64_t idle_since = monotonic_ms() - lease_ttl_ms;
    std::uint32_t oldest = kNone;
    for (std::uint32_t i = 0; i < kMaxPools; i++) {
        const Pool &pool = state->pools[i];
        if (!pool.in_use) {
            return i;
        }
        if (pool.private_to == -1 && pool.keeper_state == KeeperState::Idle &&
            pool.used_at_ms < idle_since &&
            (oldest == kNone || pool.used_at_ms < state->pools[oldest].used_at_ms)) {
            oldest = i;
        }
    }
    if (oldest != kNone) {
        drop_pool(oldest);
    }
    return oldest;
}

} /* namespace */

bool same_key(const PoolKey &a, const PoolKey &b)
{
    return a.database == b.database && a.extension == b.extension && a.layout == b.layout &&
           std::strcmp(NameStr(a.generator), NameStr(b.generator)) == 0;
}

std::uint32_t find_pool(const PoolKey &key)
{
    SharedState *state = shared_state();
    std::uint32_t found = kNone;
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; i++) {
        const Pool &pool = state->pools[i];
        if (pool.in_use && is_visible(pool) && same_key(pool.key, key)) {
            if (pool.private_to != -1) {
                return i;
            }
            found = i;
        }
    }
    return found;
}

std::uint32_t make_pool(const PoolKey &key, int private_to)
{
    SharedState *state = shared_state();
    const std::uint32_t index = slot_for_pool(state);
    if (index == kNone) {
        return kNone;
    }
    Pool &pool = state->pools[index];
    pool.key = key;
    pool.private_to = private_to;
    pool.claimed_in = InvalidSubTransactionId;
    pool.generation++;
    pool.used_at_ms = monotonic_ms();
    pool.count = 0;
    pool.requested = 0;
    pool.served = 0;
    pool.wants_more = false;
    pool.keeper_state = KeeperState::Idle;
    pool.keeper_pid = 0;
    pool.launched_at_ms = 0;
    pool.not_before_ms = 0;
    pool.failure = Failure{};
    pool.counts = LeaseCounts{};
    pool.issued.store(0, std::memory_order_relaxed);
    pool.in_use = true;
    pool.change.fetch_add(1, std::memory_order_release);
    if (index >= state->pools_used.load(std::memory_order_relaxed)) {
        state->pools_used.store(index + 1, std::memory_order_relaxed);
    }
    return index;
}

void add_lease(Pool *pool, std::uint32_t index, std::uint64_t first_tick, std::int64_t horizon,
               std::int64_t renew_at)
{
    SharedState *state = shared_state();
    Lease &lease = state->leases[index];
    LeaseRecord &record = state->records[index];
    lease.install(record.machine_id, first_tick, horizon, renew_at);
    /* If the first tick is in the future, the clock was there and has stepped back. */
    lease.clock.store(pool->key.layout.tick_time(first_tick), std::memory_order_relaxed);
    record.status = LeaseStatus::Held;
    record.horizon = horizon;
    record.word_at_grant = first_tick;
    record.granted_at_ms = monotonic_ms();

    Assert(pool->count < kMaxLeasesOfPool);
    std::uint32_t place = pool->count;
    while (place > 0 && pool->refs[place - 1].machine_id > record.machine_id) {
        pool->refs[place] = pool->refs[place - 1];
        place--;
    }
    pool->refs[place] = {index, record.machine_id, lease.version.load(std::memory_order_relaxed)};
    pool->count++;
    pool->change.fetch_add(1, std::memory_order_release);
}

void retire_lease(std::uint32_t index)
{
    SharedState *state = shared_state();
    LeaseRecord &record = state->records[index];
    state->leases[index].retire();
    if (record.status == LeaseStatus::Held) {
        Pool &pool = state->pools[record.pool];
        std::uint32_t kept = 0;
        for (std::uint32_t i = 0; i < pool.count; i++) {
            if (pool.refs[i].index != index) {
                pool.refs[kept++] = pool.refs[i];
            }
        }
        pool.count = kept;
        pool.change.fetch_add(1, std::memory_order_release);
    }
    record.status = LeaseStatus::Retired;
}

std::uint32_t reserve_lease(std::uint32_t pool, std::uint32_t machine_id, std::int64_t horizon)
{
    SharedState *state = shared_state();
    std::uint32_t place = kNone;
    for (std::uint32_t i = 0; i < kMaxLeases; i++) {
        const LeaseRecord &record = state->records[i];
        if (record.status == LeaseStatus::Free) {
            place = i;
            break;
        }
        if (record.status == LeaseStatus::Retired &&
            (place == kNone || record.horizon < state->records[place].horizon)) {
            place = i;
        }
    }
    if (place != kNone) {
        const PoolKey &key = state->pools[pool].key;
        state->records[place] = {LeaseStatus::Claiming,
                                 pool,
                                 key.database,
                                 generator_hash(key),
                                 machine_id,
                                 horizon,
                                 0,
                                 0};
    }
    return place;
}

bool take_saved_lease(const PoolKey &key, SavedLease *saved)
{
    SharedState *state = shared_state();
    for (std::uint32_t i = 0; i < state->saved_count; i++) {
        if (same_key(state->saved[i].key, key)) {
            *saved = state->saved[i];
            state->saved[i] = state->saved[--state->saved_count];
            return true;
        }
    }
    return false;
}

void drop_pool(std::uint32_t index)
{
    SharedState *state = shared_state();
    Pool &pool = state->pools[index];
    while (pool.count > 0) {
        retire_lease(pool.refs[0].index);
    }
    pool.in_use = false;
    pool.private_to = -1;
    pool.generation++;
    pool.change.fetch_add(1, std::memory_order_release);
}

std::uint32_t generator_hash(const PoolKey &key)
{
    return string_hash(NameStr(key.generator), NAMEDATALEN);
}

} /* namespace snowflake */
