/*
 * saved_leases.h
 *     Leases that outlive a clean restart of a preloaded server.
 *
 * The last tick of each lease is in memory alone; the registry knows no more
 * than the horizon. So a restarted server normally takes another machine ID. If
 * it was shut down cleanly, and the library is preloaded, the ticks are saved in
 * a file, and the next start goes on with the same machine ID at once.
 *
 * A saved tick may be used once. The file is removed, durably, before anything
 * in it is believed; and it names itself (device, inode, birth time, boot), so
 * that the file in a copy of the data directory, or one restored from a backup,
 * says nothing. In the registry the lease's row must still be that of the saved
 * instance, with the saved horizon.
 */
#pragma once

#include <cstdint>

#include "lease/shared_state.h"

namespace snowflake {

/* Called by the postmaster of a preloaded library, with the memory just made. */
void load_saved_leases(SharedState *state);

/* Called by the postmaster when it ends cleanly, after all others. */
void save_leases(SharedState *state);

} /* namespace snowflake */
