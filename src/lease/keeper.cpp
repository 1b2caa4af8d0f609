/*
 * keeper.cpp
 *     The keeper; see keeper.h.
 *
 * It lives for as long as there are unserved requests: connect, serve pool after
 * pool, each in one transaction, and exit. To a registry that servers share it
 * needs no database here, and makes one connection for all it serves. Between renewals nothing is
 * connected to a database for our sake, so databases can be dropped, renamed and copied.
 *
 * Every way it can end leaves the pool it was working on free for another keeper,
 * and a message for the sessions that wait:
 *
 *     error in a renewal     caught; the transaction is rolled back
 *     FATAL, terminated      exit callback, with the message last logged
 *     killed by SIGKILL      the postmaster restarts the server, and with it
 *                            this memory
 *     could not be started   the session that asked sees that it has stopped;
 *                            others take it for lost after a while
 */
#include "lease/keeper.h"

#include <csignal>
#include <cstring>

#include "lease/registry.h"
#include "lease/registry_remote.h"
#include "lease/renewal.h"
#include "server/clock.h"
#include "server/settings.h"

extern "C" {
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace snowflake {
namespace {

bool working = false;
RenewalWork work;
Oid my_database = InvalidOid; /* whose registry; InvalidOid: the shared one */
RemoteRegistry remote;

Failure last_error;
emit_log_hook_type previous_emit_log_hook = nullptr;

void remember_error(ErrorData *error)
{
    if (error->elevel >= ERROR) {
        last_error = failure_of(error);
    }
    if (previous_emit_log_hook != nullptr) {
        previous_emit_log_hook(error);
    }
}

void leave_no_request_behind(int code, Datum arg)
{
    if (code == 0 && !working) {
        return;
    }
    if (last_error.sqlerrcode == 0) {
        last_error.sqlerrcode = ERRCODE_ADMIN_SHUTDOWN;
        strlcpy(last_error.message, "the keeper was terminated", sizeof(last_error.message));
    }
    if (working) {
        working = false;
        abandon_renewal(&work, last_error);
    }
    while (begin_next_renewal(my_database, &work)) {
        abandon_renewal(&work, last_error);
    }
}

/*
 * The database's owner can give settings to whoever connects to it. None of them
 * may decide whether leases are renewed.
 */
void pin_settings()
{
    const struct {
        const char *name;
        const char *value;
    } settings[] = {
        {"search_path", "pg_catalog, pg_temp"},
        {"default_transaction_read_only", "off"},
        {"default_transaction_isolation", "read committed"},
        {"default_transaction_deferrable", "off"},
        {"row_security", "on"},
        {"lock_timeout", "2s"},
        {"statement_timeout", "0"},
        {"idle_in_transaction_session_timeout", "0"},
        {"jit", "off"},
    };
    for (const auto &setting : settings) {
        SetConfigOption(setting.name, setting.value, PGC_USERSET, PGC_S_SESSION);
    }
    pin_settings_of_later_versions();
}

void renew_remotely()
{
    if (!remote.connected()) {
        /* Asked for by a session that has not seen the setting change: nowhere is no registry. */
        if (!registry_is_shared()) {
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("snowflake.registry is no longer set")));
        }
        remote.connect(registry_conninfo());
        lock_state(LW_EXCLUSIVE);
        shared_state()->skew_us = remote.skew_us();
        shared_state()->skew_measured_at = timestamptz_of(wall_clock_us());
        unlock_state();
    }
    remote.begin();
    do_renewal(&remote, &work);
    remote.commit();
}

void renew_in_transaction()
{
    if (!OidIsValid(my_database)) {
        renew_remotely();
        return;
    }
    StartTransactionCommand();
    PushActiveSnapshot(GetTransactionSnapshot());
    LocalRegistry registry(work.key.extension);
    do_renewal(&registry, &work);
    registry.close();
    PopActiveSnapshot();
    CommitTransactionCommand();
}

void renew_pool()
{
    const MemoryContext context = CurrentMemoryContext;
    PG_TRY();
    {
        renew_in_transaction();
        finish_renewal(&work);
        working = false;
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        const Failure failure = failure_of(error);
        EmitErrorReport();
        FlushErrorState();
        if (OidIsValid(my_database)) {
            AbortCurrentTransaction();
        } else {
            remote.forget();
        }
        abandon_renewal(&work, failure);
        working = false;
    }
    PG_END_TRY();
}

} /* namespace */

bool start_keeper(Oid database, BackgroundWorkerHandle **handle)
{
    BackgroundWorker worker;
    std::memset(&worker, 0, sizeof(worker));
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    strlcpy(worker.bgw_library_name, "snowflake", sizeof(worker.bgw_library_name));
    strlcpy(worker.bgw_function_name, "snowflake_keeper_main", sizeof(worker.bgw_function_name));
    strlcpy(worker.bgw_name, "snowflake keeper", sizeof(worker.bgw_name));
    strlcpy(worker.bgw_type, "snowflake keeper", sizeof(worker.bgw_type));
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    return RegisterDynamicBackgroundWorker(&worker, handle);
}

} /* namespace snowflake */

void snowflake_keeper_main(Datum database)
{
    using namespace snowflake;

    my_database = DatumGetObjectId(database);
    pqsignal(SIGTERM, die);
    ignore_signal(SIGHUP);
    BackgroundWorkerUnblockSignals();

    shared_state();
    previous_emit_log_hook = emit_log_hook;
    emit_log_hook = remember_error;
    before_shmem_exit(leave_no_request_behind, Datum{0});

    if (OidIsValid(my_database)) {
        /* ALLOW_CONNECTIONS is about new ones: who is connected goes on. */
        BackgroundWorkerInitializeConnectionByOid(my_database, InvalidOid,
                                                  BGWORKER_BYPASS_ALLOWCONN);
        pin_settings();
    } else {
        /* To no database: without this, pg_stat_activity would not show what it waits for. */
        BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    }
    while ((working = begin_next_renewal(my_database, &work))) {
        CHECK_FOR_INTERRUPTS();
        renew_pool();
    }
    remote.forget();
    proc_exit(0);
}
