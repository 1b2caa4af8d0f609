/*
 * lease_request.cpp
 *     Asking for leases; see lease_request.h.
 *
 * A session that needs a lease numbers its request in the pool and starts a
 * keeper if none is at it. The keeper serves all requests made before it began,
 * says so in the pool, and wakes who waits.
 */
#include "lease/lease_request.h"

#include <algorithm>
#include <cstring>

#include "lease/claim_in_transaction.h"
#include "lease/generators.h"
#include "lease/keeper.h"
#include "server/clock.h"
#include "server/definer_call.h"
#include "server/settings.h"

extern "C" {
#include "postmaster/bgworker.h"
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

enum class Launch : std::uint8_t { NotNeeded, Started, NoSlot };

struct Request {
    std::uint32_t pool;
    std::uint64_t generation;
    std::uint64_t number;
};

/* The session's pool, made if it is not there, and a new request in it. */
Request make_request(const PoolView &view, bool wants_more)
{
    lock_state(LW_EXCLUSIVE);
    std::uint32_t index = find_pool(view.key);
    if (index == kNone) {
        index = make_pool(view.key, -1);
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
    const bool lost = pool->keeper_state == KeeperState::Launching &&
                      now - pool->launched_at_ms > kLaunchTimeoutMs;
    if (pool->keeper_state != KeeperState::Idle && !lost) {
        return false;
    }
    pool->keeper_state = KeeperState::Launching;
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
    if (pool.generation == request.generation && pool.keeper_state == KeeperState::Launching) {
        pool.keeper_state = KeeperState::Idle;
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
    progress.idle = pool.keeper_state == KeeperState::Idle ||
                    (pool.keeper_state == KeeperState::Launching &&
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
    if (pool.generation == request.generation && pool.keeper_state == KeeperState::Launching) {
        pool.keeper_state = KeeperState::Idle;
    }
    unlock_state();
}

[[noreturn]] void report_failure(const PoolView &view, const Failure &failure)
{
    ereport(ERROR,
            (errcode(failure.sqlerrcode),
             errmsg("could not get a lease for generator \"%s\"", NameStr(view.key.generator)),
             errdetail("%s.", failure.message),
             failure.hint[0] == '\0' ? 0 : errhint("%s", failure.hint)));
    pg_unreachable();
}

[[noreturn]] void report_no_slot(const PoolView &view)
{
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("could not get a lease for generator \"%s\"", NameStr(view.key.generator)),
             errdetail("No background worker slot was free for %d ms.", acquire_timeout_ms),
             errhint("Raise max_worker_processes, which needs a restart, or end other background "
                     "workers.")));
    pg_unreachable();
}

/* In: how the last renewal failed, if it did. */
[[noreturn]] void report_timeout(const PoolView &view, const Failure &last)
{
    ereport(ERROR,
            (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
             errmsg("could not get a lease for generator \"%s\"", NameStr(view.key.generator)),
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

void wait_for_keeper(const PoolView &view, std::int64_t deadline_us)
{
    Request request = make_request(view, false);
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
                report_failure(view, progress.failure);
            }
        }
        const std::int64_t now_us = monotonic_us();
        if (now_us >= deadline_us) {
            ConditionVariableCancelSleep();
            if (no_slot) {
                report_no_slot(view);
            }
            report_timeout(view, progress.failure);
        }
        std::int64_t wake_us = deadline_us;
        if (retry_at_us > 0 && now_us < retry_at_us) {
            wake_us = std::min(wake_us, retry_at_us);
        } else {
            if (retry_at_us > 0) {
                request = make_request(view, false);
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
bool must_claim_itself(const PoolView &view)
{
    if (registry_is_shared()) {
        return false;
    }
    return !IsUnderPostmaster || extension_is_new(view.key.extension) ||
           find_generator(view.key.extension, NameStr(view.key.generator)).is_new;
}

/* Asks without waiting; what goes wrong is tried again by a later call. */
void request_and_go_on(const PoolView &view, bool wants_more)
{
    if (view.pool == kNone) {
        return;
    }
    Pool &pool = shared_state()->pools[view.pool];
    const std::int64_t now = monotonic_ms();
    /* a glance without the lock: most calls find that somebody is at it */
    if (pool.keeper_state != KeeperState::Idle || now < pool.not_before_ms) {
        return;
    }
    lock_state(LW_EXCLUSIVE);
    const bool ask = pool.in_use && pool.generation == view.pool_generation &&
                     pool.private_to == -1 && pool.keeper_state == KeeperState::Idle &&
                     now >= pool.not_before_ms;
    if (ask) {
        pool.not_before_ms = now + kPauseBetweenRequestsMs;
    }
    unlock_state();
    if (ask) {
        BackgroundWorkerHandle *handle = nullptr;
        launch_keeper(make_request(view, wants_more), &handle);
    }
}

} /* namespace */

void request_renewal(const PoolView &view) { request_and_go_on(view, false); }

void request_growth(const PoolView &view)
{
    const auto setting = static_cast<std::uint32_t>(max_machine_ids);
    if (view.count < most_machine_ids(view.key.layout, setting)) {
        request_and_go_on(view, true);
    }
}

void acquire_lease(const PoolView &view, std::int64_t deadline_us)
{
    if (RecoveryInProgress()) {
        ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                        errmsg("cannot draw snowflake IDs during recovery"),
                        errhint("Draw them on the primary server, or promote this one.")));
    }
    if (must_claim_itself(view)) {
        claim_in_own_transaction(view.key);
    } else {
        wait_for_keeper(view, deadline_us);
    }
}

} /* namespace snowflake */
