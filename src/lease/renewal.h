/*
 * renewal.h
 *     One renewal of one pool: renew the leases that are due, claim another
 *     machine ID where one is needed. The rules are in core/lease_policy.h.
 *
 * A renewal has three steps, so that nothing is true in memory before it is
 * durable in the registry:
 *
 *     begin_renewal()    look at the pool, under the lock
 *     do_renewal()       call the registry, in a transaction of the caller's
 *     finish_renewal()   after that has committed: publish, wake who waits
 *
 * or abandon_renewal() in place of the third, after an error.
 */
#pragma once

#include <cstdint>

#include "core/lease_policy.h"
#include "lease/registry.h"
#include "lease/shared_state.h"

namespace snowflake {

struct RenewedLease {
    LeaseRef ref;
    HeldLease held;
    RenewalDecision decision;
    bool lost; /* the registry says that it is another's */
};

struct RenewalWork {
    std::uint32_t pool;
    std::uint64_t pool_generation;
    PoolKey key;
    std::uint64_t request; /* the request that this serves */
    bool wants_more;
    Terms terms;
    std::int64_t now; /* ID time, when the registry was called */
    std::uint32_t count;
    RenewedLease leases[kMaxLeasesOfPool];

    std::uint32_t claimed; /* the new lease's record; kNone: no claim */
    std::uint64_t first_tick;
    std::int64_t horizon;
    bool because_behind; /* the clock is behind every lease at hand */
    std::int64_t behind; /* by how much at the least, in ID time */
    std::uint32_t behind_machine_id;

    Failure failure;
};

/*
 * The next pool of a registry with an unserved request that nobody serves, now
 * being served by this process. False if there is none.
 */
bool begin_next_renewal(Oid database, RenewalWork *work);

/* The same for one pool, which the caller has just made its own. */
void begin_renewal(std::uint32_t pool, RenewalWork *work);

void do_renewal(Registry *registry, RenewalWork *work);
void finish_renewal(RenewalWork *work);

/* `failure` is shown to the sessions that wait. */
void abandon_renewal(RenewalWork *work, const Failure &failure);

/* An error as sessions will see it. */
Failure failure_of(const ErrorData *error);

} /* namespace snowflake */
