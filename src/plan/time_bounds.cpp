/*
 * time_bounds.cpp
 *     The first and last IDs on either side of a time.
 *
 * Other than snowflake_min_id() and snowflake_max_id(), which refuse what a layout
 * cannot hold, these take any time there is: predicates on times must neither
 * fail nor find a wrong row because of a time before the epoch, past the end, or
 * between two units. The planner puts them into queries (see time_predicates.cpp).
 */
#include "plan/time_bounds.h"

#include "core/time_cut.h"
#include "read/id_time.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

namespace snowflake {
namespace {

int64 last_time_with_timestamp(const Layout &layout)
{
    const int64 end = layout.from_unix_ms(instant_of_timestamp(END_TIMESTAMP - 1).unix_ms);
    return Min(layout.timestamp.max(), end);
}

TimeCut cut_of_call(FunctionCallInfo fcinfo, Meeting meeting)
{
    const TimestampTz timestamp = PG_GETARG_TIMESTAMPTZ(0);
    const Layout layout = layout_argument(fcinfo, 1);
    if (!layout.sorts_by_time()) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("IDs of layout \"%s\" do not sort by time", layout_label(layout)),
                        errhint("Only a layout whose first field is the timestamp divides into "
                                "IDs before and after a time.")));
    }
    const int64 last_time = last_time_with_timestamp(layout);
    if (TIMESTAMP_IS_NOBEGIN(timestamp)) {
        return cut_at_begin(layout, last_time);
    }
    if (TIMESTAMP_IS_NOEND(timestamp)) {
        return cut_at_end(layout, last_time);
    }
    return cut_at(layout, last_time, instant_of_timestamp(timestamp), meeting);
}

Datum first_id_of_call(FunctionCallInfo fcinfo, Meeting meeting)
{
    const TimeCut cut = cut_of_call(fcinfo, meeting);
    if (!cut.has_ids_after()) {
        PG_RETURN_NULL();
    }
    PG_RETURN_INT64(cut.first_after());
}

Datum last_id_of_call(FunctionCallInfo fcinfo, Meeting meeting)
{
    const TimeCut cut = cut_of_call(fcinfo, meeting);
    if (!cut.has_ids_before()) {
        PG_RETURN_NULL();
    }
    PG_RETURN_INT64(cut.last_before());
}

} /* namespace */

int64 last_id_with_time(const Layout &layout)
{
    return cut_at_end(layout, last_time_with_timestamp(layout)).last_before();
}

} /* namespace snowflake */

using namespace snowflake;

/*
 * Each takes ("timestamp" timestamptz, layout text) and returns null if there is no
 * such ID: the first one at the time or later, later; the last one earlier, at the
 * time or earlier.
 */

SNOWFLAKE_FUNCTION(snowflake_first_id_from) { return first_id_of_call(fcinfo, Meeting::After); }

SNOWFLAKE_FUNCTION(snowflake_first_id_after) { return first_id_of_call(fcinfo, Meeting::Before); }

SNOWFLAKE_FUNCTION(snowflake_last_id_before) { return last_id_of_call(fcinfo, Meeting::After); }

SNOWFLAKE_FUNCTION(snowflake_last_id_until) { return last_id_of_call(fcinfo, Meeting::Before); }
