/*
 * text_format.cpp
 *     IDs to text and back: the friendly form, base 62 and base 36.
 *
 * All of these functions are IMMUTABLE STRICT PARALLEL SAFE. Zones are no
 * exception, as in PostgreSQL's own timezone(): their rules change so rarely that
 * a query may take them as given.
 */
#include "core/text_format.h"
#include "read/id_time.h"
#include "read/text_format.h"
#include "read/zone.h"
#include "server/argument_cache.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

extern "C" {
#include "mb/pg_wchar.h"
}

namespace snowflake {
namespace {

text *text_of(std::string_view value)
{
    return cstring_to_text_with_len(value.data(), static_cast<int>(value.size()));
}

/* --- friendly ------------------------------------------------------------ */

const char *unit_pattern(Unit unit)
{
    switch (unit) {
        case Unit::Millisecond:
            return "yyyyMMddHHmmssSSS";
        case Unit::Centisecond:
            return "yyyyMMddHHmmssSS";
        case Unit::Second:
            break;
    }
    return "yyyyMMddHHmmss";
}

int sqlstate_of(FriendlyProblem problem)
{
    switch (problem) {
        case FriendlyProblem::None:
        case FriendlyProblem::BadShape:
            break;
        case FriendlyProblem::BadTime:
            return ERRCODE_DATETIME_FIELD_OVERFLOW;
        case FriendlyProblem::BadMachineId:
        case FriendlyProblem::BadSequence:
            return ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
    }
    return ERRCODE_INVALID_TEXT_REPRESENTATION;
}

/* The DETAIL of a bad friendly ID. */
char *explain(std::string_view given, const ParsedFriendly &parsed, const Layout &layout)
{
    const int size = static_cast<int>(parsed.where.size());
    const char *where = parsed.where.data();
    switch (parsed.problem) {
        case FriendlyProblem::None:
        case FriendlyProblem::BadShape:
            break;
        case FriendlyProblem::BadTime:
            return psprintf("There is no date and time \"%.*s\".", size, where);
        case FriendlyProblem::BadMachineId:
            return psprintf("Machine ID \"%.*s\" is not in 0 to " INT64_FORMAT ".", size, where,
                            layout.machine_id.max());
        case FriendlyProblem::BadSequence:
            return psprintf("Sequence \"%.*s\" is not in 0 to " INT64_FORMAT ".", size, where,
                            layout.sequence.max());
    }
    return size == 0 ? pstrdup("It ends too early.")
                     : psprintf("Error at \"%.*s\", character %d.", size, where,
                                static_cast<int>(where - given.data()) + 1);
}

[[noreturn]] void report_bad_friendly(std::string_view given, const ParsedFriendly &parsed,
                                      const Layout &layout)
{
    const FriendlyText example =
        format_friendly({civil_time_of(layout.epoch_ms), 0, 0}, layout.unit);
    ereport(ERROR, (errcode(sqlstate_of(parsed.problem)),
                    errmsg("invalid friendly ID \"%.*s\" for layout \"%s\"",
                           static_cast<int>(given.size()), given.data(), layout_label(layout)),
                    errdetail("%s", explain(given, parsed, layout)),
                    errhint("The friendly form in this layout is %s-machine-sequence, such as "
                            "\"%s\".",
                            unit_pattern(layout.unit), example.c_str())));
}

[[noreturn]] void report_bad_local_time(std::string_view given, LocalTimeKind kind, pg_tz *zone)
{
    const bool ambiguous = kind == LocalTimeKind::Ambiguous;
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_DATETIME_FORMAT),
         errmsg(ambiguous ? "local time of friendly ID \"%.*s\" is ambiguous in time zone \"%s\""
                          : "local time of friendly ID \"%.*s\" does not exist in time zone \"%s\"",
                static_cast<int>(given.size()), given.data(), zone_label(zone)),
         ambiguous ? errdetail("Clocks were set back, and showed this time more than once.")
                   : errdetail("Clocks were set forward, and skipped this time."),
         errhint("Write and read friendly IDs in UTC, where every time is there once.")));
}

/* --- base 62 and base 36 -------------------------------------------------- */

[[noreturn]] void report_bad_radix(std::string_view given, const ParsedRadix &parsed, Radix radix)
{
    const char *bad = given.data() + parsed.position;
    ereport(ERROR, (errcode(parsed.problem == RadixProblem::OutOfRange
                                ? ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE
                                : ERRCODE_INVALID_TEXT_REPRESENTATION),
                    errmsg("invalid base %d ID \"%.*s\"", static_cast<int>(radix),
                           static_cast<int>(given.size()), given.data()),
                    parsed.problem == RadixProblem::Empty     ? errdetail("It has no digits.")
                    : parsed.problem == RadixProblem::TooLong ? errdetail("It has too many digits.")
                    : parsed.problem == RadixProblem::BadDigit
                        ? errdetail("\"%.*s\" is not a digit.", pg_mblen(bad), bad)
                        : errdetail("IDs are 0 to " INT64_FORMAT ", which is \"%s\".", PG_INT64_MAX,
                                    format_radix(PG_INT64_MAX, radix).c_str()),
                    errhint("An ID in base %d has up to %d digits of %s.", static_cast<int>(radix),
                            static_cast<int>(radix_width(radix)),
                            radix == Radix::Base62 ? "0-9, A-Z and a-z" : "0-9 and A-Z")));
}

Datum to_radix(FunctionCallInfo fcinfo, Radix radix)
{
    const int64 id = PG_GETARG_INT64(0);
    if (id < 0) {
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("ID " INT64_FORMAT " is out of range", id),
                        errdetail("IDs are 0 to " INT64_FORMAT ".", PG_INT64_MAX),
                        errhint("The highest bit of an ID is always 0.")));
    }
    PG_RETURN_TEXT_P(text_of(format_radix(id, radix).view()));
}

Datum from_radix(FunctionCallInfo fcinfo, Radix radix)
{
    const std::string_view given = view_of(PG_GETARG_TEXT_PP(0));
    const ParsedRadix parsed = parse_radix(given, radix);
    if (!parsed.ok()) {
        report_bad_radix(given, parsed, radix);
    }
    PG_RETURN_INT64(parsed.id);
}

} /* namespace */

FriendlyText friendly_id(const Layout &layout, int64 id, pg_tz *zone)
{
    const CivilTime time = local_time(unix_ms_of_id(layout, id), zone);
    if (time.year < 0 || time.year > kLastFriendlyYear) {
        ereport(ERROR,
                (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                 errmsg("ID " INT64_FORMAT " has no friendly form in layout \"%s\"", id,
                        layout_label(layout)),
                 errdetail("Its year, %d, does not have four digits.", time.year),
                 errhint("Give the layout that the ID was made with; the view snowflake_layouts "
                         "lists those that have a name.")));
    }
    const Parts parts = layout.decompose(id);
    return format_friendly({time, parts.machine_id, parts.sequence}, layout.unit);
}

} /* namespace snowflake */

using namespace snowflake;

/* snowflake_friendly(id bigint, zone text, layout text) */
SNOWFLAKE_FUNCTION(snowflake_friendly)
{
    pg_tz *zone = zone_argument(fcinfo, 1);
    const Layout layout = layout_argument(fcinfo, 2);
    const int64 id = checked_id(layout, PG_GETARG_INT64(0));
    PG_RETURN_TEXT_P(text_of(friendly_id(layout, id, zone).view()));
}

/* snowflake_from_friendly(friendly text, zone text, layout text) */
SNOWFLAKE_FUNCTION(snowflake_from_friendly)
{
    const std::string_view given = view_of(PG_GETARG_TEXT_PP(0));
    pg_tz *zone = zone_argument(fcinfo, 1);
    const Layout layout = layout_argument(fcinfo, 2);
    const ParsedFriendly parsed = parse_friendly(given, layout);
    if (!parsed.ok()) {
        report_bad_friendly(given, parsed, layout);
    }
    const Moment moment = moment_of_local_time(parsed.friendly.time, zone);
    if (moment.kind != LocalTimeKind::Unique) {
        report_bad_local_time(given, moment.kind, zone);
    }
    PG_RETURN_INT64(layout.compose({id_time_of_unix_ms(layout, moment.unix_ms),
                                    parsed.friendly.machine_id, parsed.friendly.sequence}));
}

/* snowflake_to_base62(id bigint) */
SNOWFLAKE_FUNCTION(snowflake_to_base62) { return to_radix(fcinfo, Radix::Base62); }

/* snowflake_from_base62(base62 text) */
SNOWFLAKE_FUNCTION(snowflake_from_base62) { return from_radix(fcinfo, Radix::Base62); }

/* snowflake_to_base36(id bigint) */
SNOWFLAKE_FUNCTION(snowflake_to_base36) { return to_radix(fcinfo, Radix::Base36); }

/* snowflake_from_base36(base36 text) */
SNOWFLAKE_FUNCTION(snowflake_from_base36) { return from_radix(fcinfo, Radix::Base36); }
