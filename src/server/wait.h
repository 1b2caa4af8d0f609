/*
 * wait.h
 *     Waiting for the wall clock to reach a time.
 */
#pragma once

#include <cstdint>

namespace snowflake {

/*
 * Waits a while for the wall clock to reach a Unix time (in ms), and returns when
 * it has or when it is time to look again, since the clock may step meanwhile.
 * Ends at once with an error on cancel, timeout or shutdown.
 */
void wait_for_clock(std::int64_t unix_ms);

} /* namespace snowflake */
