/*
 * shared_state.h
 *     What the backends of one server share: generator states, pools of leases,
 *     and the leases themselves.
 *
 * An instance is this memory: its number is made with it, and a server that
 * starts anew, after a crash too, is another instance.
 *
 * The memory is there without preloading: the first backend that needs it makes
 * a dynamic segment and leaves its handle in a few bytes of the main segment. A
 * preloaded library asks for the whole in the main segment instead.
 */
#pragma once

#include <atomic>
#include <cstdint>

#include "core/draw.h"
#include "core/layout.h"
#include "core/lease.h"
#include "server/compat.h"

extern "C" {
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
}

namespace snowflake {

constexpr std::uint32_t kMaxPools = 2048;
constexpr std::uint32_t kMaxLeases = 4096;
constexpr std::uint32_t kMaxLeasesOfPool = 16;
constexpr std::uint32_t kNone = 0xffffffff;

/* Why sessions have waited; the counters of each cause are kept apart. */
enum class WaitCause : std::uint8_t { Clock, Sequence, Lease };
constexpr int kWaitCauses = 3;

/* What a backend shows besides its generator state; written by that backend alone. */
struct alignas(kCacheLine) BackendActivity {
    RelaxedAtomic<std::int32_t> pid; /* 0: the slot is empty */
    RelaxedAtomic<std::uint32_t> database;
    RelaxedAtomic<std::uint32_t> pool;
    RelaxedAtomic<std::uint64_t> counted; /* of the IDs issued: already in a pool's count */
    RelaxedAtomic<std::uint64_t> waits[kWaitCauses];
    RelaxedAtomic<std::uint64_t> waited_us[kWaitCauses];
    RelaxedAtomic<std::uint64_t> clock_steps;
    RelaxedAtomic<std::int64_t> largest_step_ms;
    RelaxedAtomic<std::int64_t> last_step_ms;
    RelaxedAtomic<std::int64_t> last_step_at; /* TimestampTz; 0: never */
};

/* Which generator a pool of leases belongs to. */
struct PoolKey {
    Oid database;  /* whose registry; InvalidOid: one shared with other servers */
    Oid extension; /* a re-created extension has a registry of its own */
    Layout layout;
    NameData generator;
};

enum class KeeperState : std::uint8_t {
    Idle,
    Launching, /* a keeper has been asked for */
    Working,   /* a keeper (or a session, in its own transaction) is at it */
};

/* Why a renewal ended without what was asked for; shown to the sessions that wait. */
struct Failure {
    int sqlerrcode; /* 0: it did not fail */
    char message[256];
    char hint[160];
    std::int64_t retry_at_us; /* wall clock: when it may go better; 0: unknown */
};

/* What keepers have done. */
struct LeaseCounts {
    std::uint64_t claims;
    std::uint64_t renewals;
    std::uint64_t failures;
    std::uint64_t switches; /* to another machine ID, since the clock stepped back */
    std::uint64_t lost;     /* leases that the registry had given to another */
};

/* The sums that snowflake_stats shows. */
struct Totals {
    std::uint64_t issued;
    std::uint64_t waits[kWaitCauses];
    std::uint64_t waited_us[kWaitCauses];
    std::uint64_t clock_steps;
    LeaseCounts leases;
};

/* The leases that this instance holds for one generator. Guarded by SharedState::lock. */
struct Pool {
    bool in_use;
    PoolKey key;
    int private_to; /* proc number of the only user until its transaction ends; -1: all */
    SubTransactionId claimed_in; /* of a private pool */
    std::uint64_t generation;    /* changes whenever the slot gets another pool */
    std::int64_t used_at_ms;     /* monotonic: when last asked for anything */

    /* Sessions compare `change` with what they saw, without the lock. */
    std::atomic<std::uint64_t> change;
    std::uint32_t count;
    LeaseRef refs[kMaxLeasesOfPool]; /* ascending by machine ID */

    /* Requests are numbered; a session waits until its own is served. */
    std::uint64_t requested;
    std::uint64_t served;
    bool wants_more; /* ticks run out faster than the clock */
    std::atomic<KeeperState> keeper_state;
    pid_t keeper_pid;
    std::int64_t launched_at_ms;             /* monotonic */
    std::atomic<std::int64_t> not_before_ms; /* monotonic: what failed is not repeated at once */
    Failure failure;
    ConditionVariable served_cv;

    LeaseCounts counts;
    std::atomic<std::uint64_t> issued; /* by sessions that draw on it no longer */
};

enum class LeaseStatus : std::uint8_t {
    Free,
    Claiming, /* the registry's transaction is under way */
    Held,
    Retired, /* no longer ours; remembered while its horizon lies ahead */
};

/* What the keeper knows of a lease besides its word; guarded by SharedState::lock. */
struct LeaseRecord {
    LeaseStatus status;
    std::uint32_t pool;
    Oid database;
    std::uint32_t generator_hash;
    std::uint32_t machine_id;
    std::int64_t horizon;
    std::uint64_t word_at_grant;
    std::int64_t granted_at_ms; /* monotonic */
};

constexpr std::uint32_t kMaxSavedLeases = 256;

/* A lease of the server's last run, which was shut down cleanly; see saved_leases.h. */
struct SavedLease {
    PoolKey key;
    std::uint32_t machine_id;
    std::uint64_t instance;
    std::uint64_t next_tick;
    std::int64_t horizon;
};

struct SharedState {
    LWLock lock;
    std::uint64_t instance;
    Lease leases[kMaxLeases];
    LeaseRecord records[kMaxLeases];
    Pool pools[kMaxPools];
    SavedLease saved[kMaxSavedLeases];
    std::uint32_t saved_count;
    std::atomic<std::uint32_t> pools_used; /* none in use at or above */
    std::uint32_t backends;
    LeaseCounts counts;           /* of all pools, dropped ones too */
    Totals subtracted;            /* what the totals were when they were last reset */
    TimestampTz reset_at;         /* or when this memory was made */
    std::int64_t skew_us;         /* the shared registry's clock less this server's */
    TimestampTz skew_measured_at; /* 0: never */
    /* GeneratorState[backends] and BackendActivity[backends] follow */

    GeneratorState *generator_state(std::uint32_t backend) noexcept;
    BackendActivity *activity(std::uint32_t backend) noexcept;
};

/* What this backend is attached to; null before its first call. */
extern SharedState *attached_state;

/* Attaches this backend to the shared state, or makes it. */
SharedState *attach_state();

inline SharedState *shared_state()
{
    return attached_state != nullptr ? attached_state : attach_state();
}

/*
 * Asks for memory in the main segment; for a preloaded library. The postmaster calls `on_made`
 * once it has made the memory, and `on_end` when it ends cleanly, after all others.
 */
void request_shared_state(void (*on_made)(SharedState *), void (*on_end)(SharedState *));

/* A lock that is released at the end of a block; an error releases it too. */
inline void lock_state(LWLockMode mode) { LWLockAcquire(&shared_state()->lock, mode); }
inline void unlock_state() { LWLockRelease(&shared_state()->lock); }

} /* namespace snowflake */
