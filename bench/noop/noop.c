/*
 * noop.c
 *     Functions that do nothing: the yardstick for what a call costs.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"

PG_MODULE_MAGIC;

/* noop() and noop(bigint) */
PG_FUNCTION_INFO_V1(noop);
Datum
noop(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(1);
}

/* noop_row(bigint): a row of three columns, made as functions usually make one */
PG_FUNCTION_INFO_V1(noop_row);
Datum
noop_row(PG_FUNCTION_ARGS)
{
	TupleDesc	desc = fcinfo->flinfo->fn_extra;
	Datum		values[] = {Int64GetDatum(1), Int32GetDatum(2), Int32GetDatum(3)};
	bool		nulls[] = {false, false, false};

	if (desc == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		fcinfo->flinfo->fn_extra = desc = BlessTupleDesc(CreateTupleDescCopy(desc));
		MemoryContextSwitchTo(caller);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, nulls)));
}
