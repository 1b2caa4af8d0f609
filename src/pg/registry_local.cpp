/*
 * registry_local.cpp
 *     The registry in the database at hand, called by SPI.
 *
 * The lease functions run with a superuser's rights, and the keeper is one. So
 * what is called must be what the extension's script made, whatever the owner
 * of a schema or of the database has put in its place: a function counts only if
 * it is a member of the extension and a superuser owns it. It is called by its
 * qualified name with arguments of exactly its types, so no overload is a better
 * match; and its body was bound to its table when it was made.
 */
#include "pg/registry.h"

#include <cstdint>

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "executor/spi.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace snowflake {
namespace {

/* What is known of an extension's row. */
struct ExtensionRow {
    bool found;
    Oid schema;
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
        row.found = true;
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

/* The owner of a lease function that may be trusted. */
Oid trusted_owner(Oid extension, Oid schema, const LeaseFunction &function)
{
    Oid types[LeaseFunction::kMostArguments];
    for (int i = 0; i < function.arguments; i++) {
        types[i] = type_by_name(psprintf("pg_catalog.%s", function.argument_types[i]));
    }
    oidvector *arguments = buildoidvector(types, function.arguments);
    HeapTuple tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(function.name),
                                      PointerGetDatum(arguments), ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple)) {
        report_missing(function.name);
    }
    const auto *row = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    const Oid oid = row->oid;
    const Oid owner = row->proowner;
    ReleaseSysCache(tuple);
    if (getExtensionOfObject(ProcedureRelationId, oid) != extension || !superuser_arg(owner)) {
        report_missing(function.name);
    }
    return owner;
}

} /* namespace */

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

char *extension_schema(Oid extension)
{
    const ExtensionRow row = read_extension(extension);
    return row.found ? get_namespace_name(row.schema) : nullptr;
}

LocalRegistry::LocalRegistry(Oid extension)
{
    const ExtensionRow row = read_extension(extension);
    if (!row.found) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("extension \"snowflake\" has been dropped")));
    }
    Oid owner = InvalidOid;
    for (int i = 0; i < kLeaseFunctionCount; i++) {
        owner = trusted_owner(extension, row.schema, kLeaseFunctions[i]);
    }
    schema_ = get_namespace_name(row.schema);

    /* A session that claims for itself has no rights on these; their owner has. */
    GetUserIdAndSecContext(&caller_, &caller_context_);
    SetUserIdAndSecContext(
        owner, caller_context_ | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
    if (SPI_connect() != SPI_OK_CONNECT) {
        elog(ERROR, "could not connect to SPI");
    }
}

void LocalRegistry::close()
{
    SPI_finish();
    SetUserIdAndSecContext(caller_, caller_context_);
}

LeaseRow LocalRegistry::call(const LeaseFunction &function, const char *const *arguments)
{
    Oid types[LeaseFunction::kMostArguments];
    Datum values[LeaseFunction::kMostArguments];
    for (int i = 0; i < function.arguments; i++) {
        types[i] = TEXTOID;
        values[i] = CStringGetTextDatum(arguments[i]);
    }
    const int result = SPI_execute_with_args(call_text(function, schema_), function.arguments,
                                             types, values, nullptr, false, 0);
    if (result != SPI_OK_SELECT || SPI_processed > 1) {
        elog(ERROR, "unexpected result of %s: %s", function.name, SPI_result_code_string(result));
    }
    LeaseRow row{};
    for (int i = 0; i < function.columns && SPI_processed == 1; i++) {
        row.values[i] = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1);
    }
    return row;
}

} /* namespace snowflake */
