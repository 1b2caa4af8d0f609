/*
 * keeper.h
 *     The keeper: a short-lived background worker that claims and renews the
 *     leases of one registry in transactions of its own.
 */
#pragma once

#include "server/compat.h"

extern "C" {
#include "postmaster/bgworker.h"
}

namespace snowflake {

/*
 * Starts a keeper for a database's registry, or (InvalidOid) for the shared one. False if no worker
 * slot is free. This process is told when the keeper starts and ends.
 */
bool start_keeper(Oid database, BackgroundWorkerHandle **handle);

} /* namespace snowflake */

extern "C" SNOWFLAKE_EXPORT void snowflake_keeper_main(Datum database);
