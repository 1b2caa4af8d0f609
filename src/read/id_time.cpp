/*
 * id_time.cpp
 *     See id_time.h.
 */
#include "read/id_time.h"

#include "server/layout_arg.h"

namespace snowflake {
namespace {

constexpr int64 kUsPerMs = 1000;

/* PostgreSQL counts from 2000-01-01. */
constexpr int64 kPostgresEpochMs =
    static_cast<int64>(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000;

/* False if the time, which may be a saturated one, is none of timestamptz. */
bool timestamp_of_unix_ms(int64 unix_ms, TimestampTz *timestamp)
{
    int64 since_2000 = 0;
    return !__builtin_sub_overflow(unix_ms, kPostgresEpochMs, &since_2000) &&
           !__builtin_mul_overflow(since_2000, kUsPerMs, timestamp) &&
           IS_VALID_TIMESTAMP(*timestamp);
}

/* A time as the session writes it, or as ISO 8601 does where timestamptz ends. Allocated. */
const char *text_of(int64 unix_ms)
{
    TimestampTz timestamp = 0;
    if (timestamp_of_unix_ms(unix_ms, &timestamp)) {
        return pstrdup(timestamptz_to_str(timestamp));
    }
    const CivilTime time = civil_time_of(unix_ms);
    return psprintf("%04d-%02d-%02d %02d:%02d:%02d+00", time.year, time.month, time.day, time.hour,
                    time.minute, time.second);
}

[[noreturn]] void report_id_out_of_range(const Layout &layout, int64 id)
{
    ereport(
        ERROR,
        (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
         errmsg("ID " INT64_FORMAT " is out of range for layout \"%s\"", id, layout_label(layout)),
         errdetail("IDs of this layout are 0 to " INT64_FORMAT ".", layout.max_id()),
         errhint("Give the layout that the ID was made with; the view snowflake_layouts lists "
                 "those that have a name.")));
}

[[noreturn]] void report_id_past_timestamptz(const Layout &layout, int64 id)
{
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
             errmsg("timestamp of ID " INT64_FORMAT " is out of range in layout \"%s\"", id,
                    layout_label(layout)),
             errdetail("The ID's time is past the last one that timestamptz can hold."),
             errhint("Give the layout that the ID was made with; the view snowflake_layouts lists "
                     "those that have a name.")));
}

[[noreturn]] void report_time_out_of_range(const Layout &layout, int64 unix_ms, bool before_epoch)
{
    const char *given = text_of(unix_ms);
    const char *limit =
        text_of(before_epoch ? layout.epoch_ms : layout.to_unix_ms(layout.timestamp.max()));
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
             before_epoch ? errmsg("timestamp \"%s\" is before the epoch of layout \"%s\"", given,
                                   layout_label(layout))
                          : errmsg("timestamp \"%s\" is past the end of layout \"%s\"", given,
                                   layout_label(layout)),
             before_epoch ? errdetail("The epoch of this layout is %s.", limit)
                          : errdetail("The last timestamp of this layout is %s.", limit),
             before_epoch ? errhint("Use a layout with an earlier epoch.")
                          : errhint("Use a layout with a later epoch or a wider timestamp.")));
}

} /* namespace */

bool timestamp_of_id_time(const Layout &layout, int64 id_time, TimestampTz *timestamp,
                          bool *past_end)
{
    *past_end = id_time > 0;
    return timestamp_of_unix_ms(layout.to_unix_ms(id_time), timestamp);
}

Instant instant_of_timestamp(TimestampTz timestamp)
{
    const int64 ms = floor_div(timestamp, kUsPerMs);
    return {ms + kPostgresEpochMs, ms * kUsPerMs == timestamp};
}

int64 id_time_of_unix_ms(const Layout &layout, int64 unix_ms)
{
    const int64 id_time = layout.from_unix_ms(unix_ms);
    if (id_time < 0 || id_time > layout.timestamp.max()) {
        report_time_out_of_range(layout, unix_ms, id_time < 0);
    }
    return id_time;
}

int64 id_time_of_timestamp(const Layout &layout, TimestampTz timestamp)
{
    if (TIMESTAMP_NOT_FINITE(timestamp)) {
        ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                        errmsg("timestamp \"%s\" has no ID",
                               TIMESTAMP_IS_NOBEGIN(timestamp) ? "-infinity" : "infinity"),
                        errhint("Give a finite timestamp, or leave the bound out of the query.")));
    }
    return id_time_of_unix_ms(layout, instant_of_timestamp(timestamp).unix_ms);
}

int64 checked_id(const Layout &layout, int64 id)
{
    if (unlikely(!layout.contains(id))) {
        report_id_out_of_range(layout, id);
    }
    return id;
}

TimestampTz timestamp_of_id(const Layout &layout, int64 id)
{
    TimestampTz timestamp = 0;
    if (unlikely(
            !timestamp_of_unix_ms(layout.to_unix_ms(layout.decompose(id).timestamp), &timestamp))) {
        report_id_past_timestamptz(layout, id);
    }
    return timestamp;
}

int64 unix_ms_of_id(const Layout &layout, int64 id)
{
    timestamp_of_id(layout, id);
    return layout.to_unix_ms(layout.decompose(id).timestamp);
}

} /* namespace snowflake */
