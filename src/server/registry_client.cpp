/*
 * registry_client.cpp
 *     Loading the client of shared registries; see registry_client.h.
 */
#include "server/registry_client.h"

#include "server/compat.h"

namespace snowflake {
namespace {

const RegistryClient *client = nullptr;

[[noreturn]] void report_not_loaded(const ErrorData &error)
{
    ereport(ERROR, (errcode(error.sqlerrcode), errmsg("could not load module \"snowflake_libpq\""),
                    errdetail_internal("%s", error.message),
                    errhint("Install snowflake_libpq" DLSUFFIX
                            " of this version of the extension, and libpq. A server "
                            "that runs while they are upgraded may need a restart.")));
    pg_unreachable();
}

void *load_function()
{
    const MemoryContext context = CurrentMemoryContext;
    void *function = nullptr;
    ErrorData *error = nullptr;
    PG_TRY();
    {
        function = reinterpret_cast<void *>(load_external_function(
            "snowflake_libpq", CppAsString2(SNOWFLAKE_REGISTRY_CLIENT), true, nullptr));
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        error = CopyErrorData();
        FlushErrorState();
        report_not_loaded(*error);
    }
    PG_END_TRY();
    return function;
}

} /* namespace */

const RegistryClient &registry_client()
{
    if (client == nullptr) {
        client = reinterpret_cast<const RegistryClient *(*)()>(load_function())();
    }
    return *client;
}

bool registry_client_is_loaded() { return client != nullptr; }

} /* namespace snowflake */
