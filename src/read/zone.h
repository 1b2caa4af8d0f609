/*
 * zone.h
 *     Local time in any time zone that the server knows.
 */
#pragma once

#include "core/civil_time.h"
#include "server/compat.h"

extern "C" {
#include "pgtime.h"
}

namespace snowflake {

/* A null zone stands for UTC, which needs no rules. */

/*
 * The zone that a function's argument names, looked up again only when it changes.
 * An unknown name is an error.
 */
pg_tz *zone_argument(FunctionCallInfo fcinfo, int argno);

/* The name of a zone in messages. */
const char *zone_label(pg_tz *zone);

/* What the clocks in a zone show at a time. */
CivilTime local_time(int64 unix_ms, pg_tz *zone);

/* How many moments a local time names. */
enum class LocalTimeKind {
    Unique,
    Nonexistent, /* skipped: clocks were set forward */
    Ambiguous,   /* shown more than once: clocks were set back */
};

struct Moment {
    LocalTimeKind kind;
    int64 unix_ms; /* if it is unique */
};

/* When the clocks in a zone show a local time. */
Moment moment_of_local_time(const CivilTime &time, pg_tz *zone);

} /* namespace snowflake */
