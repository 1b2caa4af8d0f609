/*
 * lease_request.h
 *     How a session gets its generator's leases looked after: by asking a
 *     keeper, or in its own transaction where no keeper could see the registry.
 */
#pragma once

#include <cstdint>

#include "lease/pools.h"

namespace snowflake {

/* Asks for the renewal of a pool's leases, if nobody has yet, and does not wait. */
void request_renewal(const PoolView &view);

/* Asks for one more machine ID, and does not wait. */
void request_growth(const PoolView &view);

/*
 * Returns once the leases of the view's generator have been looked after;
 * reports an error if they could not be before the deadline (monotonic_us).
 */
void acquire_lease(const PoolView &view, std::int64_t deadline_us);

} /* namespace snowflake */
