/*
 * registry_local.cpp
 *     The registry in the database at hand.
 *
 * The lease functions run with a superuser's rights, and the keeper is one. So what is
 * called must be what the extension's script made; see definer_call.h.
 */
#include "lease/registry.h"

#include <cstdint>

extern "C" {
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"
}

namespace snowflake {
namespace {

void find_types(const LeaseFunction &function, Oid *types)
{
    for (int i = 0; i < function.arguments; i++) {
        types[i] = type_by_name(psprintf("pg_catalog.%s", function.argument_types[i]));
    }
}

Datum datum_of(const char *text, Oid type)
{
    Oid input = InvalidOid;
    Oid parameter = InvalidOid;
    getTypeInputInfo(type, &input, &parameter);
    return OidInputFunctionCall(input, const_cast<char *>(text), parameter, -1);
}

const char *text_of(Datum value, Oid type)
{
    Oid output = InvalidOid;
    bool varlena = false;
    getTypeOutputInfo(type, &output, &varlena);
    return OidOutputFunctionCall(output, value);
}

LeaseRow columns_of(HeapTupleHeader row, int columns)
{
    LeaseRow result{};
    TupleDesc descriptor =
        lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
    for (int i = 0; i < columns; i++) {
        bool null = false;
        const Datum value = GetAttributeByNum(row, static_cast<AttrNumber>(i + 1), &null);
        result.values[i] = null ? nullptr : text_of(value, TupleDescAttr(descriptor, i)->atttypid);
    }
    ReleaseTupleDesc(descriptor);
    return result;
}

/*
 * IDs are drawn on what is committed, so that must outlive a crash and a failover to a
 * synchronous standby, whatever the database or the session says of other commits.
 */
void make_commit_durable()
{
    ForceSyncCommit();
    if (synchronous_commit <= SYNCHRONOUS_COMMIT_LOCAL_FLUSH) {
        set_config_option("synchronous_commit", "on", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL,
                          true, 0, false);
    }
}

} /* namespace */

LocalRegistry::LocalRegistry(Oid extension)
{
    for (int i = 0; i < kLeaseFunctionCount; i++) {
        Oid types[LeaseFunction::kMostArguments];
        find_types(kLeaseFunctions[i], types);
        functions_[i] = definer_function(extension, kLeaseFunctions[i].name,
                                         kLeaseFunctions[i].arguments, types);
    }
    calls_ =
        AllocSetContextCreate(CurrentMemoryContext, "snowflake registry", ALLOCSET_DEFAULT_SIZES);

    /* A session that claims for itself has no rights on these; their owner has. */
    GetUserIdAndSecContext(&caller_, &caller_context_);
    SetUserIdAndSecContext(functions_[0].owner, caller_context_ | SECURITY_LOCAL_USERID_CHANGE |
                                                    SECURITY_RESTRICTED_OPERATION);
}

void LocalRegistry::close()
{
    MemoryContextDelete(calls_);
    SetUserIdAndSecContext(caller_, caller_context_);
    make_commit_durable();
}

LeaseRow LocalRegistry::call(const LeaseFunction &function, const char *const *arguments)
{
    Oid types[LeaseFunction::kMostArguments];
    Datum values[LeaseFunction::kMostArguments];
    MemoryContext former = MemoryContextSwitchTo(calls_);
    find_types(function, types);
    for (int i = 0; i < function.arguments; i++) {
        values[i] = datum_of(arguments[i], types[i]);
    }
    const DefinerFunction &called = functions_[&function - kLeaseFunctions];
    const NullableDatum result = call_as_definer(called, function.arguments, values);
    LeaseRow row{};
    if (!result.isnull && function.columns == 1) {
        row.values[0] = text_of(result.value, get_func_rettype(called.oid));
    } else if (!result.isnull) {
        row = columns_of(DatumGetHeapTupleHeader(result.value), function.columns);
    }
    MemoryContextSwitchTo(former);
    return row;
}

} /* namespace snowflake */
