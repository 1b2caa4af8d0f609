/*
 * decode.cpp
 *     IDs to their fields and back.
 *
 * All of these functions are IMMUTABLE STRICT PARALLEL SAFE. Each takes a layout
 * as its last argument, and without one means the built-in layout.
 */
#include "read/id_time.h"
#include "server/argument_cache.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

namespace snowflake {
namespace {

/* The columns of snowflake_parse(), as they lie in a row: no null, nothing of variable width. */
struct PartsColumns {
    TimestampTz timestamp;
    int32 machine_id;
    int32 sequence;
};
static_assert(sizeof(PartsColumns) == 16, "no padding but what a row has too");
constexpr Oid kPartsTypes[] = {TIMESTAMPTZOID, INT4OID, INT4OID};

TupleDesc result_descriptor(FunctionCallInfo fcinfo)
{
    ArgumentCache &cache = argument_cache(fcinfo);
    if (cache.result == nullptr) {
        TupleDesc descriptor = nullptr;
        bool fits = get_call_result_type(fcinfo, nullptr, &descriptor) == TYPEFUNC_COMPOSITE &&
                    descriptor->natts == lengthof(kPartsTypes);
        for (int i = 0; fits && i < descriptor->natts; i++) {
            fits = TupleDescAttr(descriptor, i)->atttypid == kPartsTypes[i];
        }
        if (!fits) {
            elog(ERROR, "return type must be a row of timestamptz, int, int");
        }
        MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
        cache.result = BlessTupleDesc(CreateTupleDescCopy(descriptor));
        MemoryContextSwitchTo(caller);
    }
    return cache.result;
}

/* What heap_form_tuple() makes of such a row, without its loops over columns. */
Datum form_row(TupleDesc descriptor, const PartsColumns &columns)
{
    constexpr Size header_size = MAXALIGN(SizeofHeapTupleHeader);
    constexpr Size size = header_size + sizeof(columns);
    auto *row = static_cast<HeapTupleHeader>(palloc(size));
    memset(row, 0, header_size);
    HeapTupleHeaderSetDatumLength(row, size);
    HeapTupleHeaderSetTypeId(row, descriptor->tdtypeid);
    HeapTupleHeaderSetTypMod(row, descriptor->tdtypmod);
    ItemPointerSetInvalid(&row->t_ctid);
    HeapTupleHeaderSetNatts(row, lengthof(kPartsTypes));
    row->t_hoff = header_size;
    memcpy(reinterpret_cast<char *>(row) + header_size, &columns, sizeof(columns));
    return PointerGetDatum(row);
}

/* A machine ID or sequence as it is, if the layout has room for it; else an error. */
int64 checked_field(const Layout &layout, const BitField &field, const char *name, int32 value)
{
    if (value < 0 || value > field.max()) {
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("%s %d is out of range for layout \"%s\"", name, value,
                               layout_label(layout)),
                        errdetail("This layout has room for 0 to " INT64_FORMAT ".", field.max()),
                        errhint("Give a value in this range, or a layout that has more bits for "
                                "the %s.",
                                name)));
    }
    return value;
}

} /* namespace */
} /* namespace snowflake */

using namespace snowflake;

/* snowflake_parse(id bigint [, layout text]) */
SNOWFLAKE_FUNCTION(snowflake_parse)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id = checked_id(layout, PG_GETARG_INT64(0));
    const Parts parts = layout.decompose(id);
    return form_row(result_descriptor(fcinfo),
                    {timestamp_of_id(layout, id), static_cast<int32>(parts.machine_id),
                     static_cast<int32>(parts.sequence)});
}

/* snowflake_timestamp(id bigint [, layout text]) */
SNOWFLAKE_FUNCTION(snowflake_timestamp)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id = checked_id(layout, PG_GETARG_INT64(0));
    PG_RETURN_TIMESTAMPTZ(timestamp_of_id(layout, id));
}

/* snowflake_machine_id(id bigint [, layout text]) */
SNOWFLAKE_FUNCTION(snowflake_machine_id)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id = checked_id(layout, PG_GETARG_INT64(0));
    PG_RETURN_INT32(static_cast<int32>(layout.decompose(id).machine_id));
}

/* snowflake_sequence(id bigint [, layout text]) */
SNOWFLAKE_FUNCTION(snowflake_sequence)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id = checked_id(layout, PG_GETARG_INT64(0));
    PG_RETURN_INT32(static_cast<int32>(layout.decompose(id).sequence));
}

/*
 * snowflake_make("timestamp" timestamptz, machine_id int, sequence int [, layout text])
 *
 * The timestamp is rounded down to the layout's unit.
 */
SNOWFLAKE_FUNCTION(snowflake_make)
{
    const Layout layout = layout_argument(fcinfo, 3);
    const Parts parts = {
        id_time_of_timestamp(layout, PG_GETARG_TIMESTAMPTZ(0)),
        checked_field(layout, layout.machine_id, "machine ID", PG_GETARG_INT32(1)),
        checked_field(layout, layout.sequence, "sequence", PG_GETARG_INT32(2)),
    };
    PG_RETURN_INT64(layout.compose(parts));
}

/* snowflake_min_id("timestamp" timestamptz [, layout text]) */
SNOWFLAKE_FUNCTION(snowflake_min_id)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id_time = id_time_of_timestamp(layout, PG_GETARG_TIMESTAMPTZ(0));
    PG_RETURN_INT64(layout.compose({id_time, 0, 0}));
}

/* snowflake_max_id("timestamp" timestamptz [, layout text]) */
SNOWFLAKE_FUNCTION(snowflake_max_id)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id_time = id_time_of_timestamp(layout, PG_GETARG_TIMESTAMPTZ(0));
    PG_RETURN_INT64(layout.compose({id_time, layout.machine_id.max(), layout.sequence.max()}));
}

/*
 * snowflake_id_time(id_time bigint, layout text)
 *
 * The time at which a unit of ID time begins: infinity where timestamptz ends
 * before the layout does.
 */
SNOWFLAKE_FUNCTION(snowflake_id_time)
{
    const int64 id_time = PG_GETARG_INT64(0);
    const Layout layout = layout_argument(fcinfo, 1);
    TimestampTz timestamp = 0;
    bool past_end = false;
    if (timestamp_of_id_time(layout, id_time, &timestamp, &past_end)) {
        PG_RETURN_TIMESTAMPTZ(timestamp);
    }
    if (!past_end) {
        ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                        errmsg("ID time " INT64_FORMAT " is out of range for layout \"%s\"",
                               id_time, layout_label(layout)),
                        errdetail("It is before the first time that timestamptz can hold."),
                        errhint("ID time counts units from the layout's epoch; 0 is the epoch.")));
    }
    TIMESTAMP_NOEND(timestamp);
    PG_RETURN_TIMESTAMPTZ(timestamp);
}
