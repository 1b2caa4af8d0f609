/*
 * zone.cpp
 *     See zone.h.
 */
#include "read/zone.h"

#include "core/layout_spec.h"
#include "server/argument_cache.h"

namespace snowflake {
namespace {

/* Local time is never further from UTC than this: the rules of POSIX allow a day. */
constexpr pg_time_t kMaxOffset = SECS_PER_DAY;

pg_tz *zone_from_text(std::string_view name)
{
    if (name == "UTC") {
        return nullptr;
    }
    pg_tz *zone = pg_tzset(pnstrdup(name.data(), name.size()));
    /* a zone that counts leap seconds does not fit timestamptz, which does not */
    if (zone == nullptr || !pg_tz_acceptable(zone)) {
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("time zone \"%.*s\" not recognized", static_cast<int>(name.size()),
                        name.data()),
                 find_preset(name) != nullptr
                     ? errhint("This is the name of a layout, which is the third argument; for "
                               "UTC, give \"UTC\" as the second.")
                     : errhint("Give a name from the view pg_timezone_names, such as \"UTC\".")));
    }
    return zone;
}

} /* namespace */

pg_tz *zone_argument(FunctionCallInfo fcinfo, int argno)
{
    ArgumentCache &cache = argument_cache(fcinfo);
    const std::string_view given = view_of(PG_GETARG_TEXT_PP(argno));
    if (!is_remembered(cache.zone_name, given)) {
        cache.zone = zone_from_text(given);
        remember(fcinfo, cache.zone_name, given);
    }
    return cache.zone;
}

const char *zone_label(pg_tz *zone) { return zone == nullptr ? "UTC" : pg_get_timezone_name(zone); }

CivilTime local_time(int64 unix_ms, pg_tz *zone)
{
    if (zone == nullptr) {
        return civil_time_of(unix_ms);
    }
    const pg_time_t seconds = floor_div(unix_ms, kMsPerSecond);
    const struct pg_tm *local = pg_localtime(&seconds, zone);
    if (local == nullptr) {
        elog(ERROR, "no local time for Unix time " INT64_FORMAT " in time zone \"%s\"", seconds,
             zone_label(zone));
    }
    return {local->tm_year + 1900,
            local->tm_mon + 1,
            local->tm_mday,
            local->tm_hour,
            local->tm_min,
            local->tm_sec,
            static_cast<int>(unix_ms - seconds * kMsPerSecond)};
}

Moment moment_of_local_time(const CivilTime &time, pg_tz *zone)
{
    const int64 as_utc_ms = unix_ms_of(time);
    if (zone == nullptr) {
        return {LocalTimeKind::Unique, as_utc_ms};
    }

    /*
     * Between two changes of its offset a zone shows each local time at most
     * once, and one subtraction says when. So look at every such stretch that is
     * near enough, however many there are and however odd their offsets.
     */
    const pg_time_t as_utc = floor_div(as_utc_ms, kMsPerSecond);
    const pg_time_t last = as_utc + kMaxOffset;
    Moment moment = {LocalTimeKind::Nonexistent, 0};
    pg_time_t from = as_utc - kMaxOffset;
    for (;;) {
        long int offset = 0;
        long int next_offset = 0;
        int is_dst = 0;
        int next_is_dst = 0;
        pg_time_t change = 0;
        const int changes = pg_next_dst_boundary(&from, &offset, &is_dst, &change, &next_offset,
                                                 &next_is_dst, zone);
        if (changes < 0) {
            elog(ERROR, "no offset for Unix time " INT64_FORMAT " in time zone \"%s\"", from,
                 zone_label(zone));
        }
        const bool is_last = changes == 0 || change > last;
        const pg_time_t seconds = as_utc - offset;
        if (seconds >= from && (is_last || seconds < change)) {
            const int64 unix_ms = as_utc_ms - offset * kMsPerSecond;
            /* never a wrong answer, should the two ways to ask for an offset disagree */
            if (local_time(unix_ms, zone) == time) {
                if (moment.kind == LocalTimeKind::Unique) {
                    return {LocalTimeKind::Ambiguous, 0};
                }
                moment = {LocalTimeKind::Unique, unix_ms};
            }
        }
        if (is_last) {
            return moment;
        }
        from = change;
    }
}

} /* namespace snowflake */
