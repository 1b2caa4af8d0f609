/*
 * lease_request.h
 *     How a session gets its generator's leases looked after: by asking a
 *     keeper, or in its own transaction where no keeper could see the registry.
 */
#pragma once

#include <cstdint>

#include "pg/session.h"

namespace snowflake {

/* Asks for the renewal of the session's leases, if nobody has yet, and does not wait. */
void request_renewal(Session *session);

/* Asks for one more machine ID, and does not wait. */
void request_growth(Session *session);

/*
 * Returns once the leases of the session's generator have been looked after;
 * reports an error if they could not be before the deadline (monotonic_us).
 */
void acquire_lease(Session *session, std::int64_t deadline_us);

/* Ends leases that were claimed in a transaction of this backend that is rolled back. */
void install_transaction_hooks();

} /* namespace snowflake */
