/*
 * shared_state.cpp
 *     Making, finding and sharing the instance's memory; see shared_state.h.
 */
#include "lease/shared_state.h"

#include <cstring>
#include <new>

#include "server/clock.h"

extern "C" {
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
constexpr char kLockName[] = "snowflake";

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
    initialize(memory, backends, new_lock_tranche(kLockName));
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
void (*call_when_made)(SharedState *) = nullptr;
void (*call_at_end)(SharedState *) = nullptr;

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
        call_at_end(preloaded);
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
        initialize(memory, backends, new_lock_tranche(kLockName));
    }
    LWLockRelease(AddinShmemInitLock);
    preloaded = static_cast<SharedState *>(memory);
    if (!found && !IsUnderPostmaster) {
        call_when_made(preloaded);
        on_shmem_exit(on_server_end, Datum{0});
    }
}

} /* namespace */

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

void request_shared_state(void (*on_made)(SharedState *), void (*on_end)(SharedState *))
{
    call_when_made = on_made;
    call_at_end = on_end;
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
    name_lock_tranche(tranche, kLockName);
    attached_state = state;
    return state;
}

} /* namespace snowflake */
