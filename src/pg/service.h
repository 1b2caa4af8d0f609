/*
 * service.h
 *     One service of one pool: renew the leases that are due, claim another
 *     machine ID where one is needed. The rules are in core/tenure.h.
 *
 * A service has three steps, so that nothing is true in memory before it is
 * durable in the registry:
 *
 *     begin_service()    look at the pool, under the lock
 *     do_service()       call the registry, in a transaction of the caller's
 *     finish_service()   after that has committed: publish, wake who waits
 *
 * or abandon_service() in place of the third, after an error.
 */
#pragma once

#include <cstdint>

#include "core/tenure.h"
#include "pg/registry.h"
#include "pg/shared_state.h"

namespace snowflake {

struct ServicedLease {
    LeaseRef ref;
    Holding holding;
    Care care;
    bool lost; /* the registry says that it is another's */
};

struct ServiceWork {
    std::uint32_t pool;
    std::uint64_t pool_generation;
    PoolKey key;
    std::uint64_t request; /* the request that this serves */
    bool wants_more;
    Terms terms;
    std::int64_t now; /* ID time, when the registry was called */
    std::uint32_t count;
    ServicedLease leases[kMaxLeasesOfPool];

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
bool begin_next_service(Oid database, ServiceWork *work);

/* The same for one pool, which the caller has just made its own. */
void begin_service(std::uint32_t pool, ServiceWork *work);

void do_service(Registry *registry, ServiceWork *work);
void finish_service(ServiceWork *work);

/* `failure` is shown to the sessions that wait. */
void abandon_service(ServiceWork *work, const Failure &failure);

/* An error as sessions will see it. */
Failure failure_of(const ErrorData *error);

} /* namespace snowflake */
