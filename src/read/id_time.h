/*
 * id_time.h
 *     ID time and timestamptz, one to the other.
 */
#pragma once

#include "core/layout.h"
#include "core/time_cut.h"
#include "server/compat.h"

namespace snowflake {

/*
 * The time at which a unit of ID time begins. False if timestamptz has no such
 * time; `past_end` then says on which side.
 */
bool timestamp_of_id_time(const Layout &layout, int64 id_time, TimestampTz *timestamp,
                          bool *past_end);

/* A finite time to the precision that Unix time in ms lacks. */
Instant instant_of_timestamp(TimestampTz timestamp);

/* The unit of ID time that a time is in. An error if the layout has no such unit. */
int64 id_time_of_timestamp(const Layout &layout, TimestampTz timestamp);

/* The same of Unix time in ms. An error if the layout has no such unit. */
int64 id_time_of_unix_ms(const Layout &layout, int64 unix_ms);

/* An ID as it is, if it can be one of this layout; else an error. */
int64 checked_id(const Layout &layout, int64 id);

/* The time that a valid ID of this layout holds. An error if timestamptz has no such time. */
TimestampTz timestamp_of_id(const Layout &layout, int64 id);

/* The same as Unix time in ms. */
int64 unix_ms_of_id(const Layout &layout, int64 id);

} /* namespace snowflake */
