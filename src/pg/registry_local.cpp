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

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "core/layout_spec.h"
#include "pg/clock.h"
#include "pg/settings.h"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "postmaster/postmaster.h"
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
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_FUNCTION),
             errmsg("function %s of extension \"snowflake\" is missing or is not the extension's own",
                    function),
             errhint("Drop and create the extension again.")));
    pg_unreachable();
}

/* The owner of a lease function that may be trusted. */
Oid trusted_owner(Oid extension, Oid schema, const char *name, const Oid *types, int count)
{
    oidvector *arguments = buildoidvector(types, count);
    HeapTuple tuple =
        SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name), PointerGetDatum(arguments),
                        ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple)) {
        report_missing(name);
    }
    const auto *row = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    const Oid function = row->oid;
    const Oid owner = row->proowner;
    ReleaseSysCache(tuple);
    if (getExtensionOfObject(ProcedureRelationId, function) != extension ||
        !superuser_arg(owner)) {
        report_missing(name);
    }
    return owner;
}

constexpr Oid kClaimTypes[] = {TEXTOID, TEXTOID,     INT8OID, OIDOID,
                               TEXTOID, INTERVALOID, INT8OID, INT8OID,
                               INT4MULTIRANGEOID,   INT4ARRAYOID};
constexpr Oid kRenewTypes[] = {TEXTOID, INT4OID, INT8OID, OIDOID, INTERVALOID, INT8OID};
constexpr Oid kResumeTypes[] = {TEXTOID, INT4OID,     INT8OID, INT8OID, INT8OID,
                                OIDOID,  INTERVALOID, INT8OID};
constexpr Oid kReleaseTypes[] = {TEXTOID, INT4OID};
constexpr Oid kOutlookTypes[] = {TEXTOID, INT4MULTIRANGEOID};

Datum text_datum(const char *value) { return CStringGetTextDatum(value); }

Datum generator_datum(const PoolKey &key) { return text_datum(NameStr(key.generator)); }

Datum ttl_datum()
{
    auto *interval = static_cast<Interval *>(palloc0(sizeof(Interval)));
    interval->time = static_cast<std::int64_t>(lease_ttl_ms) * 1000;
    return IntervalPGetDatum(interval);
}

/* The machine IDs that this server may claim, as an int4multirange. */
Datum machine_ids_datum(const Layout &layout)
{
    const MachineIdSet &set = machine_ids();
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfoChar(&text, '{');
    if (set.all()) {
        appendStringInfo(&text, "[0,%" PRId64 "]", layout.machine_id.max());
    }
    for (std::uint32_t i = 0; i < set.count; i++) {
        appendStringInfo(&text, "%s[%u,%u]", i == 0 ? "" : ",", set.ranges[i].low,
                         set.ranges[i].high);
    }
    appendStringInfoChar(&text, '}');
    return OidInputFunctionCall(F_MULTIRANGE_IN, text.data, INT4MULTIRANGEOID, -1);
}

Datum avoid_datum(const ClaimRequest &request)
{
    auto *elements = static_cast<Datum *>(palloc(sizeof(Datum) * (request.avoid_count + 1)));
    for (std::uint32_t i = 0; i < request.avoid_count; i++) {
        elements[i] = Int32GetDatum(static_cast<std::int32_t>(request.avoid[i]));
    }
    return PointerGetDatum(construct_array(elements, static_cast<int>(request.avoid_count), INT4OID,
                                           sizeof(int32), true, TYPALIGN_INT));
}

/* host:port/database, for people who look for the holder of a lease. */
Datum holder_datum(const PoolKey &key)
{
    char host[64] = "?";
    gethostname(host, sizeof(host) - 1);
    const char *database = OidIsValid(key.database) ? get_database_name(key.database) : nullptr;
    return text_datum(psprintf("%s:%d/%s", host, PostPortNumber, database == nullptr ? "" : database));
}

std::int64_t int8_of(int column, bool *null)
{
    return DatumGetInt64(
        SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, null));
}

} /* namespace */

Oid extension_of_function(Oid function)
{
    const Oid extension = getExtensionOfObject(ProcedureRelationId, function);
    if (!OidIsValid(extension)) {
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("function %s does not belong to an extension",
                               format_procedure(function)),
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
    const Oid owner = trusted_owner(extension, row.schema, "snowflake_claim_lease", kClaimTypes,
                                    lengthof(kClaimTypes));
    trusted_owner(extension, row.schema, "snowflake_renew_lease", kRenewTypes,
                  lengthof(kRenewTypes));
    trusted_owner(extension, row.schema, "snowflake_resume_lease", kResumeTypes,
                  lengthof(kResumeTypes));
    trusted_owner(extension, row.schema, "snowflake_release_lease", kReleaseTypes,
                  lengthof(kReleaseTypes));
    trusted_owner(extension, row.schema, "snowflake_lease_outlook", kOutlookTypes,
                  lengthof(kOutlookTypes));
    schema_ = quote_identifier(get_namespace_name(row.schema));

    /* A session that claims for itself has no rights on these; their owner has. */
    GetUserIdAndSecContext(&caller_, &caller_context_);
    SetUserIdAndSecContext(owner, caller_context_ | SECURITY_LOCAL_USERID_CHANGE |
                                      SECURITY_RESTRICTED_OPERATION);
    if (SPI_connect() != SPI_OK_CONNECT) {
        elog(ERROR, "could not connect to SPI");
    }
}

void LocalRegistry::close()
{
    SPI_finish();
    SetUserIdAndSecContext(caller_, caller_context_);
}

namespace {

/* Calls a lease function; its one row is in SPI_tuptable. */
void call(const char *schema, const char *function, int count, const Oid *types, Datum *values)
{
    StringInfoData sql;
    initStringInfo(&sql);
    appendStringInfo(&sql, "SELECT * FROM %s.%s(", schema, function);
    for (int i = 1; i <= count; i++) {
        appendStringInfo(&sql, "%s$%d", i == 1 ? "" : ", ", i);
    }
    appendStringInfoChar(&sql, ')');
    const int result = SPI_execute_with_args(sql.data, count, const_cast<Oid *>(types), values,
                                             nullptr, false, 0);
    if (result != SPI_OK_SELECT || SPI_processed != 1) {
        elog(ERROR, "%s returned no row: %s", function, SPI_result_code_string(result));
    }
}

std::int64_t instance() { return static_cast<std::int64_t>(shared_state()->instance); }

} /* namespace */

ClaimReply LocalRegistry::claim(const ClaimRequest &request)
{
    const PoolKey &key = *request.key;
    const SpecText layout = format_layout(key.layout);
    Datum values[] = {generator_datum(key),
                      text_datum(layout.c_str()),
                      Int64GetDatum(instance()),
                      ObjectIdGetDatum(key.database),
                      holder_datum(key),
                      ttl_datum(),
                      Int64GetDatum(request.now),
                      Int64GetDatum(request.horizon),
                      machine_ids_datum(key.layout),
                      avoid_datum(request)};
    call(schema_, "snowflake_claim_lease", lengthof(values), kClaimTypes, values);
    bool none = false;
    const std::int32_t machine_id = DatumGetInt32(
        SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &none));
    const std::int64_t old_horizon = int8_of(2, &none);
    if (none) {
        return {};
    }
    return {true, static_cast<std::uint32_t>(machine_id), old_horizon};
}

std::int64_t LocalRegistry::renew(const PoolKey &key, std::uint32_t machine_id,
                                  std::int64_t horizon)
{
    Datum values[] = {generator_datum(key),
                      Int32GetDatum(static_cast<std::int32_t>(machine_id)),
                      Int64GetDatum(instance()),
                      ObjectIdGetDatum(key.database),
                      ttl_datum(),
                      Int64GetDatum(horizon)};
    call(schema_, "snowflake_renew_lease", lengthof(values), kRenewTypes, values);
    bool none = false;
    const std::int64_t granted = int8_of(1, &none);
    return none ? -1 : granted;
}

std::int64_t LocalRegistry::resume(const PoolKey &key, const SavedLease &saved,
                                   std::int64_t horizon)
{
    Datum values[] = {generator_datum(key),
                      Int32GetDatum(static_cast<std::int32_t>(saved.machine_id)),
                      Int64GetDatum(static_cast<std::int64_t>(saved.instance)),
                      Int64GetDatum(saved.horizon),
                      Int64GetDatum(instance()),
                      ObjectIdGetDatum(key.database),
                      ttl_datum(),
                      Int64GetDatum(horizon)};
    call(schema_, "snowflake_resume_lease", lengthof(values), kResumeTypes, values);
    bool none = false;
    const std::int64_t granted = int8_of(1, &none);
    return none ? -1 : granted;
}

void LocalRegistry::release(const PoolKey &key, std::uint32_t machine_id)
{
    Datum values[] = {generator_datum(key), Int32GetDatum(static_cast<std::int32_t>(machine_id))};
    call(schema_, "snowflake_release_lease", lengthof(values), kReleaseTypes, values);
}

Outlook LocalRegistry::outlook(const PoolKey &key)
{
    Datum values[] = {generator_datum(key), machine_ids_datum(key.layout)};
    call(schema_, "snowflake_lease_outlook", lengthof(values), kOutlookTypes, values);
    Outlook outlook{};
    bool none = false;
    const HeapTuple row = SPI_tuptable->vals[0];
    const TupleDesc columns = SPI_tuptable->tupdesc;
    const Datum layout = SPI_getbinval(row, columns, 1, &none);
    if (none) {
        return outlook;
    }
    outlook.known = true;
    strlcpy(outlook.layout, TextDatumGetCString(layout), sizeof(outlook.layout));
    outlook.machine_id = static_cast<std::uint32_t>(
        DatumGetInt32(SPI_getbinval(row, columns, 2, &none)));
    strlcpy(outlook.holder, TextDatumGetCString(SPI_getbinval(row, columns, 3, &none)),
            sizeof(outlook.holder));
    const TimestampTz free_at = DatumGetTimestampTz(SPI_getbinval(row, columns, 4, &none));
    outlook.free_at_us = TIMESTAMP_NOT_FINITE(free_at) ? INT64_MAX : unix_us(free_at);
    return outlook;
}

} /* namespace snowflake */
