/*
 * lease_request.cpp
 *     Asking for leases; see lease_request.h.
 *
 * A session that needs a lease numbers its request in the pool and starts a
 * keeper if none is at it. The keeper serves all requests made before it began,
 * says so in the pool, and wakes who waits.
 *
 * Where the transaction under way has itself made the extension, no keeper can
 * see the registry yet. Then the session claims in its own transaction, into a
 * pool that only this session sees, which becomes everybody's at commit and is
 * dropped at rollback.
 */
#include "pg/lease_request.h"

#include <algorithm>
#include <cstring>

#include "pg/clock.h"
#include "pg/keeper.h"
#include "pg/registry.h"
#include "pg/service.h"
#include "pg/settings.h"

extern "C" {
#include "access/parallel.h"
#include "postmaster/bgworker.h"
#include "utils/snapmgr.h"
}

namespace snowflake {
namespace {

/* How often the start of a keeper is tried while no worker slot is free. */
constexpr std::int64_t kRetrySlotMs = 50;

/* How soon what is asked for without waiting is asked for again. */
constexpr std::int64_t kPauseBetweenRequestsMs = 100;

/* How soon a claim that found nothing free is repeated at the earliest. */
constexpr std::int64_t kShortestRetryUs = 100000;

/* A keeper that has not begun by then is taken for lost, and another is started. */
constexpr std::int64_t kLaunchTimeoutMs = 2000;

/* A session looks itself at least this often whether it is still worth waiting. */
constexpr std::int64_t kLongestSleepMs = 1000;

bool private_pools = false; /* this backend has made one in the transaction under way */

enum class Launch : std::uint8_t { NotNeeded, Started, NoSlot };

struct Request {
    std::uint32_t pool;
    std::uint64_t generation;
    std::uint64_t number;
};

[[noreturn]] void report_too_many_pools()
{
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("this server already draws IDs for %u databases and generators", kMaxPools)));
    pg_unreachable();
}

/* The session's pool, made if it is not there, and a new request in it. */
Request make_request(Session *session, bool wants_more)
{
    lock_state(LW_EXCLUSIVE);
    std::uint32_t index = find_pool(session->key);
    if (index == kNone) {
        index = make_pool(session->key, -1);
    }
    if (index == kNone) {
        unlock_state();
        report_too_many_pools();
    }
    Pool &pool = shared_state()->pools[index];
    pool.used_at_ms = monotonic_ms();
    pool.wants_more = pool.wants_more || wants_more;
    const Request request{index, pool.generation, ++pool.requested};
    unlock_state();
    return request;
}

/* Takes the right to launch a keeper for the pool, unless somebody is at it. */
bool may_launch(Pool *pool)
{
    const std::int64_t now = monotonic_ms();
    const bool lost =
        pool->service == Service::Launching && now - pool->launched_at_ms > kLaunchTimeoutMs;
    if (pool->service != Service::Idle && !lost) {
        return false;
    }
    pool->service = Service::Launching;
    pool->launched_at_ms = now;
    return true;
}

Launch launch_keeper(const Request &request, BackgroundWorkerHandle **handle)
{
    Pool &pool = shared_state()->pools[request.pool];
    lock_state(LW_EXCLUSIVE);
    const bool launch = pool.generation == request.generation && may_launch(&pool);
    const Oid database = pool.key.database;
    unlock_state();
    if (!launch) {
        return Launch::NotNeeded;
    }
    if (start_keeper(database, handle)) {
        return Launch::Started;
    }
    lock_state(LW_EXCLUSIVE);
    if (pool.generation == request.generation && pool.service == Service::Launching) {
        pool.service = Service::Idle;
    }
    unlock_state();
    return Launch::NoSlot;
}

struct Progress {
    bool served;
    bool gone;
    bool idle;
    Failure failure;
};

Progress progress_of(const Request &request)
{
    Progress progress{};
    lock_state(LW_SHARED);
    const Pool &pool = shared_state()->pools[request.pool];
    progress.gone = pool.generation != request.generation;
    progress.served = !progress.gone && pool.served >= request.number;
    progress.idle =
        pool.service == Service::Idle || (pool.service == Service::Launching &&
                                          monotonic_ms() - pool.launched_at_ms > kLaunchTimeoutMs);
    progress.failure = pool.failure;
    unlock_state();
    return progress;
}

/* A keeper that this session started has ended without serving: it could not start. */
void note_dead_keeper(const Request &request, BackgroundWorkerHandle *handle)
{
    pid_t pid = 0;
    if (handle == nullptr || GetBackgroundWorkerPid(handle, &pid) != BGWH_STOPPED) {
        return;
    }
    lock_state(LW_EXCLUSIVE);
    Pool &pool = shared_state()->pools[request.pool];
    if (pool.generation == request.generation && pool.service == Service::Launching) {
        pool.service = Service::Idle;
    }
    unlock_state();
}

[[noreturn]] void report_failure(const Session &session, const Failure &failure)
{
    ereport(ERROR,
            (errcode(failure.sqlerrcode),
             errmsg("could not get a lease for generator \"%s\"", NameStr(session.key.generator)),
             errdetail("%s.", failure.message),
             failure.hint[0] == '\0' ? 0 : errhint("%s", failure.hint)));
    pg_unreachable();
}

[[noreturn]] void report_no_slot(const Session &session)
{
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("could not get a lease for generator \"%s\"", NameStr(session.key.generator)),
             errdetail("No background worker slot was free for %d ms.", acquire_timeout_ms),
             errhint("Raise max_worker_processes, which needs a restart, or end other background "
                     "workers.")));
    pg_unreachable();
}

/* In: how the last service failed, if it did. */
[[noreturn]] void report_timeout(const Session &session, const Failure &last)
{
    ereport(ERROR,
            (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
             errmsg("could not get a lease for generator \"%s\"", NameStr(session.key.generator)),
             last.sqlerrcode == 0
                 ? errdetail("The registry did not answer within %d ms.", acquire_timeout_ms)
                 : errdetail("The registry did not answer within %d ms. Before that: %s.",
                             acquire_timeout_ms, last.message),
             errhint("Look for the keeper's messages in the server log; snowflake.acquire_timeout "
                     "sets how long to wait.")));
    pg_unreachable();
}

/* Sleeps until the pool is served or there is something to look at. */
void sleep_on(const Request &request, std::int64_t until_us)
{
    static uint32 event = 0;
    if (event == 0) {
        event = wait_event("SnowflakeLease");
    }
    const std::int64_t ms =
        std::clamp<std::int64_t>((until_us - monotonic_us()) / 1000, 1, kLongestSleepMs);
    ConditionVariableTimedSleep(&shared_state()->pools[request.pool].served_cv,
                                static_cast<long>(ms), event);
}

/*
 * A failure that time mends (all machine IDs are leased) is waited out if that
 * is soon enough; any other is reported at once.
 */
std::int64_t when_to_retry(const Failure &failure, std::int64_t deadline_us)
{
    if (failure.retry_at_us <= 0) {
        return -1;
    }
    const std::int64_t wait_us = std::max(failure.retry_at_us - wall_clock_us(), kShortestRetryUs);
    const std::int64_t left_us = deadline_us - monotonic_us();
    return wait_us < left_us ? monotonic_us() + wait_us : -1;
}

void wait_for_keeper(Session *session, std::int64_t deadline_us)
{
    Request request = make_request(session, false);
    BackgroundWorkerHandle *handle = nullptr;
    bool no_slot = false;
    std::int64_t retry_at_us = 0;
    ConditionVariablePrepareToSleep(&shared_state()->pools[request.pool].served_cv);
    for (;;) {
        const Progress progress = progress_of(request);
        if (progress.gone || (progress.served && progress.failure.sqlerrcode == 0)) {
            break;
        }
        if (progress.served && retry_at_us == 0) {
            retry_at_us = when_to_retry(progress.failure, deadline_us);
            if (retry_at_us < 0) {
                ConditionVariableCancelSleep();
                report_failure(*session, progress.failure);
            }
        }
        const std::int64_t now_us = monotonic_us();
        if (now_us >= deadline_us) {
            ConditionVariableCancelSleep();
            if (no_slot) {
                report_no_slot(*session);
            }
            report_timeout(*session, progress.failure);
        }
        std::int64_t wake_us = deadline_us;
        if (retry_at_us > 0 && now_us < retry_at_us) {
            wake_us = std::min(wake_us, retry_at_us);
        } else {
            if (retry_at_us > 0) {
                request = make_request(session, false);
                retry_at_us = 0;
            }
            if (progress.idle || progress.served) {
                no_slot = launch_keeper(request, &handle) == Launch::NoSlot;
            }
            if (no_slot) {
                wake_us = std::min(wake_us, now_us + kRetrySlotMs * 1000);
            }
        }
        sleep_on(request, wake_us);
        note_dead_keeper(request, handle);
    }
    ConditionVariableCancelSleep();
}

/* True where no keeper can see the registry, or there is no postmaster to start one. */
bool must_claim_itself(const Session &session)
{
    if (registry_is_shared()) {
        return false;
    }
    return !IsUnderPostmaster || extension_is_new(session.extension) || generator_is_new(session);
}

void claim_in_own_transaction(Session *session)
{
    if (IsInParallelMode() || IsParallelWorker()) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_STATE),
                        errmsg("cannot claim a machine ID during a parallel operation"),
                        errdetail("The extension was made in this transaction, so its first lease "
                                  "has to be claimed here too."),
                        errhint("Draw an ID before the parallel statement.")));
    }
    lock_state(LW_EXCLUSIVE);
    std::uint32_t index = find_pool(session->key);
    SharedState *state = shared_state();
    if (index == kNone || state->pools[index].private_to == -1) {
        index = make_pool(session->key, my_proc_number());
    }
    unlock_state();
    if (index == kNone) {
        report_too_many_pools();
    }
    private_pools = true;
    state->pools[index].claimed_in = GetCurrentSubTransactionId();

    ServiceWork work;
    begin_service(index, &work);
    PG_TRY();
    {
        PushActiveSnapshot(GetTransactionSnapshot());
        LocalRegistry registry(session->key.extension);
        do_service(&registry, &work);
        registry.close();
        PopActiveSnapshot();
    }
    PG_CATCH();
    {
        abandon_service(&work, Failure{});
        PG_RE_THROW();
    }
    PG_END_TRY();
    finish_service(&work);
}

template <typename Condition, typename Action>
void for_each_private_pool(Condition condition, Action action)
{
    SharedState *state = shared_state();
    bool left = false;
    lock_state(LW_EXCLUSIVE);
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; i++) {
        Pool &pool = state->pools[i];
        if (!pool.in_use || pool.private_to != my_proc_number()) {
            continue;
        }
        if (condition(pool)) {
            action(i, &pool);
        }
        left = left || (pool.in_use && pool.private_to != -1);
    }
    unlock_state();
    private_pools = left;
}

void on_transaction_end(XactEvent event, void *arg)
{
    if (!private_pools) {
        return;
    }
    const auto all = [](const Pool &) { return true; };
    switch (event) {
        case XACT_EVENT_COMMIT:
            for_each_private_pool(all, [](std::uint32_t index, Pool *pool) {
                pool->private_to = -1;
                pool->change.fetch_add(1, std::memory_order_release);
            });
            break;
        case XACT_EVENT_ABORT:
            for_each_private_pool(all, [](std::uint32_t index, Pool *pool) { drop_pool(index); });
            break;
        case XACT_EVENT_PRE_PREPARE:
            ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                            errmsg("cannot PREPARE a transaction that has made the extension "
                                   "snowflake and drawn IDs")));
            break;
        default:
            break;
    }
}

void on_subtransaction_end(SubXactEvent event, SubTransactionId id, SubTransactionId parent,
                           void *arg)
{
    if (!private_pools) {
        return;
    }
    const auto claimed_here = [id](const Pool &pool) { return pool.claimed_in == id; };
    if (event == SUBXACT_EVENT_ABORT_SUB) {
        for_each_private_pool(claimed_here,
                              [](std::uint32_t index, Pool *pool) { drop_pool(index); });
    } else if (event == SUBXACT_EVENT_COMMIT_SUB) {
        for_each_private_pool(
            claimed_here, [parent](std::uint32_t index, Pool *pool) { pool->claimed_in = parent; });
    }
}

/* Asks without waiting; what goes wrong is tried again by a later call. */
void request_and_go_on(Session *session, bool wants_more)
{
    if (session->pool == kNone) {
        return;
    }
    Pool &pool = shared_state()->pools[session->pool];
    const std::int64_t now = monotonic_ms();
    /* a glance without the lock: most calls find that somebody is at it */
    if (pool.service != Service::Idle || now < pool.not_before_ms) {
        return;
    }
    lock_state(LW_EXCLUSIVE);
    const bool ask = pool.in_use && pool.generation == session->pool_generation &&
                     pool.private_to == -1 && pool.service == Service::Idle &&
                     now >= pool.not_before_ms;
    if (ask) {
        pool.not_before_ms = now + kPauseBetweenRequestsMs;
    }
    unlock_state();
    if (ask) {
        BackgroundWorkerHandle *handle = nullptr;
        launch_keeper(make_request(session, wants_more), &handle);
    }
}

} /* namespace */

void request_renewal(Session *session) { request_and_go_on(session, false); }

void request_growth(Session *session)
{
    const auto setting = static_cast<std::uint32_t>(max_machine_ids);
    if (session->count < most_machine_ids(session->key.layout, setting)) {
        request_and_go_on(session, true);
    }
}

void acquire_lease(Session *session, std::int64_t deadline_us)
{
    if (RecoveryInProgress()) {
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot draw snowflake IDs during recovery"),
                        errhint("Draw them on the primary server, or promote this one.")));
    }
    if (must_claim_itself(*session)) {
        claim_in_own_transaction(session);
    } else {
        wait_for_keeper(session, deadline_us);
    }
}

void install_transaction_hooks()
{
    RegisterXactCallback(on_transaction_end, nullptr);
    RegisterSubXactCallback(on_subtransaction_end, nullptr);
}

} /* namespace snowflake */
