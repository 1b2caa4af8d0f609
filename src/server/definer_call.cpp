/*
 * definer_call.cpp
 *     See definer_call.h.
 */
#include "server/definer_call.h"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "utils/fmgroids.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace snowflake {
namespace {

/* What is known of an extension's row. */
struct ExtensionRow {
    Oid schema; /* InvalidOid: there is no such extension */
    bool is_new;
};

ExtensionRow read_extension(Oid extension)
{
    ExtensionRow row{};
    ScanKeyData key;
    Relation relation = table_open(ExtensionRelationId, AccessShareLock);
    ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(extension));
    SysScanDesc scan = systable_beginscan(relation, ExtensionOidIndexId, true, nullptr, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    if (HeapTupleIsValid(tuple)) {
        row.schema = (reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple)))->extnamespace;
        row.is_new = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
    }
    systable_endscan(scan);
    table_close(relation, AccessShareLock);
    return row;
}

[[noreturn]] void report_missing(const char *function)
{
    ereport(
        ERROR,
        (errcode(ERRCODE_UNDEFINED_FUNCTION),
         errmsg("function %s of extension \"snowflake\" is missing or is not the extension's own",
                function),
         errhint("Drop and create the extension again.")));
    pg_unreachable();
}

} /* namespace */

DefinerFunction definer_function(Oid extension, const char *name, int arguments, const Oid *types)
{
    const Oid schema = extension_schema(extension);
    if (!OidIsValid(schema)) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("extension \"snowflake\" has been dropped")));
    }
    HeapTuple tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name),
                                      PointerGetDatum(buildoidvector(types, arguments)),
                                      ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple)) {
        report_missing(name);
    }
    const auto *row = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    const DefinerFunction function = {row->oid, row->proowner};
    ReleaseSysCache(tuple);
    if (getExtensionOfObject(ProcedureRelationId, function.oid) != extension ||
        !superuser_arg(function.owner)) {
        report_missing(name);
    }
    return function;
}

NullableDatum call_as_definer(const DefinerFunction &function, int arguments, const Datum *values)
{
    FmgrInfo info;
    LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);
    fmgr_info(function.oid, &info);
    InitFunctionCallInfoData(*fcinfo, &info, static_cast<short>(arguments), DEFAULT_COLLATION_OID,
                             nullptr, nullptr);
    for (int i = 0; i < arguments; i++) {
        fcinfo->args[i] = {values[i], false};
    }
    const Datum result = FunctionCallInvoke(fcinfo);
    return {result, fcinfo->isnull};
}

Oid extension_of_function(Oid function)
{
    const Oid extension = getExtensionOfObject(ProcedureRelationId, function);
    if (!OidIsValid(extension)) {
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("function %s does not belong to an extension", format_procedure(function)),
                 errhint("Use the functions that CREATE EXTENSION snowflake makes.")));
    }
    return extension;
}

bool extension_is_new(Oid extension) { return read_extension(extension).is_new; }

Oid extension_schema(Oid extension) { return read_extension(extension).schema; }

} /* namespace snowflake */
