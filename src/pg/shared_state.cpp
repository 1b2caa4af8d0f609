/*
 * shared_state.cpp
 *     Making, finding and sharing the instance's memory; see shared_state.h.
 */
#include "pg/shared_state.h"

#include <cstring>
#include <new>

#include "pg/clock.h"
#include "pg/saved_leases.h"
#include "pg/settings.h"

extern "C" {
#include "common/hashfn.h"
#include "storage/dsm.h"
#include "storage/shmem.h"
}

namespace snowflake {

SharedState *attached_state = nullptr;

namespace {

/*
 * The number is that of the memory's layout. A library of another layout (after
 * an upgrade of the package under a running server) finds no memory under its
 * name and becomes an instance of its own, with machine IDs of its own.
 */
constexpr char kAnchorName[] = "snowflake anchor 1";
constexpr char kStateName[] = "snowflake state 1";

/* What a library that was not preloaded keeps in the main segment. */
struct Anchor {
    dsm_handle segment;
    bool made;
};

int tranche = 0;

std::size_t state_size(std::uint32_t backends)
{
    return sizeof(SharedState) + backends * (sizeof(GeneratorState) + sizeof(BackendActivity));
}

void initialize(void *memory, std::uint32_t backends, int tranche_id)
{
    std::memset(memory, 0, state_size(backends));
    auto *state = new (memory) SharedState;
    LWLockInitialize(&state->lock, tranche_id);
    if (!pg_strong_random(&state->instance, sizeof(state->instance))) {
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("could not generate a random number for the instance")));
    }
    state->instance &= PG_INT64_MAX;
    state->backends = backends;
    state->reset_at = timestamptz_of(wall_clock_us());
    for (Lease &lease : state->leases) {
        lease.clear();
    }
    for (Pool &pool : state->pools) {
        ConditionVariableInit(&pool.served_cv);
        pool.private_to = -1;
    }
    for (std::uint32_t i = 0; i < backends; i++) {
        new (state->generator_state(i)) GeneratorState;
        new (state->activity(i)) BackendActivity;
        state->generator_state(i)->clear();
    }
}

SharedState *make_or_attach_segment(Anchor *anchor)
{
    if (anchor->made) {
        dsm_segment *segment = dsm_attach(anchor->segment);
        if (segment == nullptr) {
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                            errmsg("could not attach to snowflake's shared memory")));
        }
        dsm_pin_mapping(segment);
        return static_cast<SharedState *>(dsm_segment_address(segment));
    }
    const auto backends = static_cast<std::uint32_t>(MaxBackends);
    dsm_segment *segment = dsm_create(state_size(backends), 0);
    void *memory = dsm_segment_address(segment);
    initialize(memory, backends, LWLockNewTrancheId());
    dsm_pin_mapping(segment);
    dsm_pin_segment(segment);
    anchor->segment = dsm_segment_handle(segment);
    anchor->made = true;
    return static_cast<SharedState *>(memory);
}

/* A preloaded library's memory; nullptr where it was not preloaded. */
SharedState *preloaded = nullptr;
shmem_request_hook_type previous_shmem_request_hook = nullptr;
shmem_startup_hook_type previous_shmem_startup_hook = nullptr;

void on_shmem_request()
{
    if (previous_shmem_request_hook != nullptr) {
        previous_shmem_request_hook();
    }
    RequestAddinShmemSpace(state_size(static_cast<std::uint32_t>(MaxBackends)));
}

void on_server_end(int code, Datum arg)
{
    if (code == 0) {
        save_leases(preloaded);
    }
}

void on_shmem_startup()
{
    if (previous_shmem_startup_hook != nullptr) {
        previous_shmem_startup_hook();
    }
    const auto backends = static_cast<std::uint32_t>(MaxBackends);
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    void *memory = ShmemInitStruct(kStateName, state_size(backends), &found);
    if (!found) {
        initialize(memory, backends, LWLockNewTrancheId());
    }
    LWLockRelease(AddinShmemInitLock);
    preloaded = static_cast<SharedState *>(memory);
    if (!found && !IsUnderPostmaster) {
        load_saved_leases(preloaded);
        on_shmem_exit(on_server_end, Datum{0});
    }
}

bool is_visible(const Pool &pool)
{
    return pool.private_to == -1 || pool.private_to == leader_proc_number();
}

/* A place for a new pool: an empty one, else that of the pool unused for longest. */
std::uint32_t place_for_pool(SharedState *state)
{
    const std::int64_t idle_since = monotonic_ms() - lease_ttl_ms;
    std::uint32_t oldest = kNone;
    for (std::uint32_t i = 0; i < kMaxPools; i++) {
        const Pool &pool = state->pools[i];
        if (!pool.in_use) {
            return i;
        }
        if (pool.private_to == -1 && pool.service == Service::Idle &&
            pool.used_at_ms < idle_since &&
            (oldest == kNone || pool.used_at_ms < state->pools[oldest].used_at_ms)) {
            oldest = i;
        }
    }
    if (oldest != kNone) {
        drop_pool(oldest);
    }
    return oldest;
}

} /* namespace */

bool same_key(const PoolKey &a, const PoolKey &b)
{
    return a.database == b.database && a.extension == b.extension && a.layout == b.layout &&
           std::strcmp(NameStr(a.generator), NameStr(b.generator)) == 0;
}

GeneratorState *SharedState::generator_state(std::uint32_t backend) noexcept
{
    return reinterpret_cast<GeneratorState *>(reinterpret_cast<char *>(this) +
                                              sizeof(SharedState)) +
           backend;
}

BackendActivity *SharedState::activity(std::uint32_t backend) noexcept
{
    return reinterpret_cast<BackendActivity *>(generator_state(backends)) + backend;
}

static_assert(sizeof(SharedState) % kCacheLine == 0, "what follows is aligned to cache lines");

void request_shared_state()
{
    previous_shmem_request_hook = shmem_request_hook;
    shmem_request_hook = on_shmem_request;
    previous_shmem_startup_hook = shmem_startup_hook;
    shmem_startup_hook = on_shmem_startup;
}

SharedState *attach_state()
{
    SharedState *state = preloaded;
    if (state == nullptr) {
        bool found = false;
        LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
        auto *anchor = static_cast<Anchor *>(ShmemInitStruct(kAnchorName, sizeof(Anchor), &found));
        if (!found) {
            *anchor = Anchor{};
        }
        state = make_or_attach_segment(anchor);
        LWLockRelease(AddinShmemInitLock);
    }
    tranche = state->lock.tranche;
    LWLockRegisterTranche(tranche, "snowflake");
    attached_state = state;
    return state;
}

std::uint32_t find_pool(const PoolKey &key)
{
    SharedState *state = shared_state();
    std::uint32_t found = kNone;
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; i++) {
        const Pool &pool = state->pools[i];
        if (pool.in_use && is_visible(pool) && same_key(pool.key, key)) {
            if (pool.private_to != -1) {
                return i;
            }
            found = i;
        }
    }
    return found;
}

std::uint32_t make_pool(const PoolKey &key, int private_to)
{
    SharedState *state = shared_state();
    const std::uint32_t index = place_for_pool(state);
    if (index == kNone) {
        return kNone;
    }
    Pool &pool = state->pools[index];
    pool.key = key;
    pool.private_to = private_to;
    pool.claimed_in = InvalidSubTransactionId;
    pool.generation++;
    pool.used_at_ms = monotonic_ms();
    pool.count = 0;
    pool.requested = 0;
    pool.served = 0;
    pool.wants_more = false;
    pool.service = Service::Idle;
    pool.keeper_pid = 0;
    pool.launched_at_ms = 0;
    pool.not_before_ms = 0;
    pool.failure = Failure{};
    pool.counts = LeaseCounts{};
    pool.issued.store(0, std::memory_order_relaxed);
    pool.in_use = true;
    pool.change.fetch_add(1, std::memory_order_release);
    if (index >= state->pools_used.load(std::memory_order_relaxed)) {
        state->pools_used.store(index + 1, std::memory_order_relaxed);
    }
    return index;
}

void add_lease(Pool *pool, std::uint32_t index, std::uint64_t first_tick, std::int64_t horizon,
               std::int64_t renew_at)
{
    SharedState *state = shared_state();
    Lease &lease = state->leases[index];
    LeaseRecord &record = state->records[index];
    lease.install(record.machine_id, first_tick, horizon, renew_at);
    /* If the first tick is in the future, the clock was there and has stepped back. */
    lease.clock.store(pool->key.layout.tick_time(first_tick), std::memory_order_relaxed);
    record.tenure = Tenure::Held;
    record.horizon = horizon;
    record.word_at_grant = first_tick;
    record.granted_at_ms = monotonic_ms();

    Assert(pool->count < kMaxLeasesOfPool);
    std::uint32_t place = pool->count;
    while (place > 0 && pool->refs[place - 1].machine_id > record.machine_id) {
        pool->refs[place] = pool->refs[place - 1];
        place--;
    }
    pool->refs[place] = {index, record.machine_id, lease.version.load(std::memory_order_relaxed)};
    pool->count++;
    pool->change.fetch_add(1, std::memory_order_release);
}

void retire_lease(std::uint32_t index)
{
    SharedState *state = shared_state();
    LeaseRecord &record = state->records[index];
    state->leases[index].retire();
    if (record.tenure == Tenure::Held) {
        Pool &pool = state->pools[record.pool];
        std::uint32_t kept = 0;
        for (std::uint32_t i = 0; i < pool.count; i++) {
            if (pool.refs[i].index != index) {
                pool.refs[kept++] = pool.refs[i];
            }
        }
        pool.count = kept;
        pool.change.fetch_add(1, std::memory_order_release);
    }
    record.tenure = Tenure::Retired;
}

std::uint32_t reserve_lease(std::uint32_t pool, std::uint32_t machine_id, std::int64_t horizon)
{
    SharedState *state = shared_state();
    std::uint32_t place = kNone;
    for (std::uint32_t i = 0; i < kMaxLeases; i++) {
        const LeaseRecord &record = state->records[i];
        if (record.tenure == Tenure::Free) {
            place = i;
            break;
        }
        if (record.tenure == Tenure::Retired &&
            (place == kNone || record.horizon < state->records[place].horizon)) {
            place = i;
        }
    }
    if (place != kNone) {
        const PoolKey &key = state->pools[pool].key;
        state->records[place] = {
            Tenure::Claiming, pool, key.database, generator_hash(key), machine_id, horizon, 0, 0};
    }
    return place;
}

bool take_saved_lease(const PoolKey &key, SavedLease *saved)
{
    SharedState *state = shared_state();
    for (std::uint32_t i = 0; i < state->saved_count; i++) {
        if (same_key(state->saved[i].key, key)) {
            *saved = state->saved[i];
            state->saved[i] = state->saved[--state->saved_count];
            return true;
        }
    }
    return false;
}

void drop_pool(std::uint32_t index)
{
    SharedState *state = shared_state();
    Pool &pool = state->pools[index];
    while (pool.count > 0) {
        retire_lease(pool.refs[0].index);
    }
    pool.in_use = false;
    pool.private_to = -1;
    pool.generation++;
    pool.change.fetch_add(1, std::memory_order_release);
}

std::uint32_t generator_hash(const PoolKey &key)
{
    return string_hash(NameStr(key.generator), NAMEDATALEN);
}

} /* namespace snowflake */
