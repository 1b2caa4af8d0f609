/*
 * pools.h
 *     Finding and changing pools of leases in shared memory.
 *
 * All of these want the lock, exclusive where they change something.
 */
#pragma once

#include <cstdint>

#include "lease/shared_state.h"

namespace snowflake {

/* What a session knows of the pool that it draws on. */
struct PoolView {
    PoolKey key;
    std::uint32_t pool; /* kNone: there is none yet */
    std::uint64_t pool_generation;
    std::uint64_t change_seen;
    std::uint32_t count;
    LeaseRef refs[kMaxLeasesOfPool];
};

bool same_key(const PoolKey &a, const PoolKey &b);

/*
 * The pool of a generator that this session may use, or kNone. `make` adds it;
 * a private pool is seen by its owner alone.
 */
std::uint32_t find_pool(const PoolKey &key);
std::uint32_t make_pool(const PoolKey &key, int private_to);

/* Puts a lease into a pool; `index` is a record in state Claiming. */
void add_lease(Pool *pool, std::uint32_t index, std::uint64_t first_tick, std::int64_t horizon,
               std::int64_t renew_at);

/* Takes a lease out of its pool. Its horizon is remembered. */
void retire_lease(std::uint32_t index);

/* A free record for a claim, set to Claiming; kNone where there is none. */
std::uint32_t reserve_lease(std::uint32_t pool, std::uint32_t machine_id, std::int64_t horizon);

/* Takes a saved lease of a generator out of the list; false if there is none. */
bool take_saved_lease(const PoolKey &key, SavedLease *saved);

/* Drops a pool and all its leases. */
void drop_pool(std::uint32_t index);

std::uint32_t generator_hash(const PoolKey &key);

} /* namespace snowflake */
