/*
 * registry_remote.cpp
 *     A registry that many servers share; see registry_remote.h.
 */
#include "lease/registry_remote.h"

#include <algorithm>
#include <cstdlib>

#include "server/clock.h"
#include "server/registry_client.h"
#include "server/settings.h"

namespace snowflake {
namespace {

/* No lock there is waited for longer than this. */
constexpr int kLongestLockWaitMs = 2000;

/* Each statement may take as long as a session waits for a lease. */
void run(const char *sql, int count, const char *const *values)
{
    registry_client().run(sql, count, values, acquire_timeout_ms);
}

} /* namespace */

void RemoteRegistry::connect(const char *conninfo)
{
    registry_client().connect(conninfo, acquire_timeout_ms);
    connected_ = true;
    look_around();
}

/* Where the lease functions are, and what the registry's clock shows. */
void RemoteRegistry::look_around()
{
    const std::int64_t sent_us = wall_clock_us();
    run("SELECT n.nspname, (extract(epoch FROM pg_catalog.clock_timestamp()) "
        "OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 "
        "FROM pg_catalog.pg_extension e "
        "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace "
        "WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake'",
        0, nullptr);
    const std::int64_t received_us = wall_clock_us();
    const RegistryClient &client = registry_client();
    if (client.rows() != 1) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("the registry's database \"%s\" has no extension \"snowflake\"",
                               client.database()),
                        errhint("Run CREATE EXTENSION snowflake there.")));
    }
    strlcpy(schema_, client.value(0), sizeof(schema_));
    skew_us_ = std::strtoll(client.value(1), nullptr, 10) - (sent_us + (received_us - sent_us) / 2);
}

void RemoteRegistry::begin()
{
    run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", 0, nullptr);
    /*
     * A statement that is no longer waited for must not stay there and keep its
     * connection, nor a transaction whose end was lost on its way and its locks.
     * (PostgreSQL lifts statement_timeout before it commits.) A horizon that is
     * used must be there after a crash and after a failover.
     */
    const char *const limits[] = {
        psprintf("%d", acquire_timeout_ms),
        psprintf("%d", std::clamp(acquire_timeout_ms / 2, 1, kLongestLockWaitMs))};
    run("SELECT pg_catalog.set_config('statement_timeout', $1, true), "
        "pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true), "
        "pg_catalog.set_config('lock_timeout', $2, true), "
        "CASE WHEN pg_catalog.current_setting('synchronous_commit') "
        "OPERATOR(pg_catalog.=) ANY (ARRAY['off', 'local']) "
        "THEN pg_catalog.set_config('synchronous_commit', 'on', true) END",
        lengthof(limits), limits);
}

void RemoteRegistry::commit() { run("COMMIT", 0, nullptr); }

void RemoteRegistry::forget()
{
    if (registry_client_is_loaded()) {
        registry_client().disconnect();
    }
    connected_ = false;
}

LeaseRow RemoteRegistry::call(const LeaseFunction &function, const char *const *arguments)
{
    run(call_text(function, schema_), function.arguments, arguments);
    const RegistryClient &client = registry_client();
    LeaseRow row{};
    for (int i = 0; i < function.columns && client.rows() == 1; i++) {
        row.values[i] = client.value(i);
    }
    return row;
}

} /* namespace snowflake */
