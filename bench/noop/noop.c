/*
 * noop.c
 *     Functions that do nothing: the yardstick for what a call costs.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

/* noop() and noop(bigint) */
PG_FUNCTION_INFO_V1(noop);
Datum
noop(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(1);
}
