/*
 * draw.h
 *     One attempt to draw an ID: the rules by which a session uses its run of
 *     ticks and the leases of its generator.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception, and
 * time is passed in. The caller reads the clock, calls draw(), and does what the
 * verdict says: return the ID, wait, or ask the keeper for a lease.
 *
 * What draw() keeps true
 * ----------------------
 * - An ID's timestamp is a time that the clock showed during the call: a tick is
 *   issued only when the clock shows exactly its time.
 * - In one session IDs increase, also where it draws on several leases. The one
 *   exception: the session's last ID is further in the future than anyone would
 *   wait for (the clock stepped back). Then a machine ID whose word is not in the
 *   future serves, and order begins anew.
 */
#pragma once

#include <atomic>
#include <cstdint>

#include "core/layout.h"
#include "core/lease.h"
#include "core/relaxed_atomic.h"

namespace snowflake {

/*
 * A backend's generator state: one cache line of shared memory, written by that
 * backend alone. A run is one tick long when a unit of time begins and doubles
 * while the backend uses it up within that unit; what is left when the unit ends
 * is dropped. So the usual call touches nothing that another backend writes.
 */
struct alignas(kCacheLine) GeneratorState {
    RelaxedAtomic<std::uint64_t> next;          /* the run's next tick */
    RelaxedAtomic<std::uint64_t> end;           /* one past its last tick */
    RelaxedAtomic<std::uint64_t> lease_version; /* the run's lease ... */
    RelaxedAtomic<std::uint32_t> lease_index;
    RelaxedAtomic<std::uint32_t> machine_id;
    RelaxedAtomic<std::int64_t> last_id;     /* of the session; -1: none yet */
    RelaxedAtomic<std::uint64_t> issued;     /* IDs, ever */
    RelaxedAtomic<std::uint32_t> run_length; /* of the latest run */

    void clear() noexcept
    {
        begin_session();
        issued.set(0);
    }

    /* A new session: it goes on with the lease, but owes its order to nobody. */
    void begin_session() noexcept
    {
        drop_run();
        lease_version.set(0);
        lease_index.set(0);
        machine_id.set(0);
        last_id.set(-1);
        run_length.set(0);
    }

    void drop_run() noexcept
    {
        next.set(0);
        end.set(0);
    }

    bool has_run() const noexcept { return next.get() < end.get(); }
};

static_assert(sizeof(GeneratorState) == kCacheLine, "one cache line per backend");

/*
 * The longest run a session doubles up to. What a session that is put off the
 * CPU leaves unused is at most this share (1/64) of a unit's sequences; and one
 * atomic step for 64 IDs already costs next to nothing per ID.
 */
constexpr std::uint32_t longest_run(const Layout &layout) noexcept
{
    const std::uint64_t share = (layout.sequence.mask() + 1) / 64;
    return share < 1 ? 1 : share > 65536 ? 65536 : static_cast<std::uint32_t>(share);
}

enum class Verdict {
    Issued,      /* Draw::id is the next ID */
    Wait,        /* call again when the clock shows Draw::until */
    NeedLease,   /* no lease, or its horizon is reached: ask the keeper */
    ClockBehind, /* every lease is further in the future than max_wait: ask for another */
    BeforeEpoch, /* the clock shows a time before the layout's epoch */
    EndOfTime,   /* the clock shows a time after the layout's last */
};

struct Draw {
    Verdict verdict;
    std::int64_t id;
    std::int64_t until;  /* ID time */
    bool renewal_is_due; /* of the lease drawn on; no reason to wait */
    bool saturated;      /* the wait is for a used-up sequence, not for a clock that stepped back */
};

/* What draw() draws on. `leases` is the instance's table; `refs` point into it. */
struct Source {
    const Layout *layout;
    Lease *leases;
    const LeaseRef *refs; /* ascending by machine ID */
    std::uint32_t count;
    std::int64_t max_wait; /* in ID time, at least 2: how far in the future a tick may be */
};

/*
 * How far ahead of the clock ticks are taken when sequences are used up: so that
 * waiters are served in turn, but never so far that a word is ahead by more than
 * max_wait unless the clock itself stepped back.
 */
constexpr std::int64_t most_ahead(std::int64_t max_wait) noexcept
{
    const std::int64_t half = max_wait / 2;
    return half < 1 ? 1 : half > 64 ? 64 : half;
}

namespace detail {

inline Draw issue(GeneratorState &state, const Layout &layout, bool renewal_is_due) noexcept
{
    const std::uint64_t tick = state.next.get();
    state.next.set(tick + 1);
    const std::int64_t id = layout.compose_tick(tick, state.machine_id.get());
    state.last_id.set(id);
    state.issued.add(1);
    return {Verdict::Issued, id, 0, renewal_is_due, false};
}

/*
 * How long the next run should be: doubled if the last one was used up in this
 * unit of time (or in one the session had to wait for), else 1.
 */
inline std::uint32_t next_run_length(const GeneratorState &state, const Layout &layout,
                                     std::int64_t now, std::uint32_t hint) noexcept
{
    const std::uint32_t longest = longest_run(layout);
    const bool used_up = state.end.get() > 0 && state.next.get() == state.end.get() &&
                         layout.tick_time(state.end.get() - 1) == now;
    const std::uint32_t doubled = used_up ? state.run_length.get() * 2 : 1;
    const std::uint32_t length = doubled < longest ? doubled : longest;
    return length > hint ? length : hint;
}

} /* namespace detail */

/*
 * The usual case by itself, to be inlined: the session's run has a tick for now.
 * Returns -1 where it has not, and draw() must look further.
 */
inline std::int64_t draw_from_run(GeneratorState &state, const Layout &layout, const Lease &lease,
                                  std::int64_t now) noexcept
{
    if (state.has_run() && layout.tick_time(state.next.get()) == now &&
        lease.version.load(std::memory_order_acquire) == state.lease_version.get()) {
        return detail::issue(state, layout, false).id;
    }
    return -1;
}

/*
 * In: the session's state, its source, the time (ID time) and how many IDs the
 * caller is about to draw (at least 1).
 * Out: see Verdict. A run taken for a time in the future stays in the state, and
 * the next call goes on with it.
 */
Draw draw(GeneratorState &state, const Source &source, std::int64_t now,
          std::uint32_t hint) noexcept;

} /* namespace snowflake */
