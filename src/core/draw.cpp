/*
 * draw.cpp
 *     One attempt to draw an ID; see draw.h.
 */
#include "core/draw.h"

namespace snowflake {
namespace {

/* What the session's leases can give, found by looking without taking. */
struct Best {
    const LeaseRef *ref = nullptr;
    std::int64_t time = 0;
    bool any_ahead = false;
    bool any_end_of_time = false;
};

/*
 * The soonest time at which a tick of this machine ID gives an ID above the
 * session's last one: now, or the unit after the last ID's.
 */
std::int64_t soonest_in_order(const Layout &layout, std::int64_t last_id, std::uint32_t machine,
                              std::uint64_t tick) noexcept
{
    const std::int64_t time = layout.tick_time(tick);
    if (layout.compose_tick(tick, machine) > last_id) {
        return time;
    }
    return layout.decompose(last_id).timestamp + 1;
}

/*
 * The session's last ID, or -1 where its order does not bind: there is none, or
 * it is further in the future than anyone would wait for.
 */
std::int64_t binding_last_id(const GeneratorState &state, const Layout &layout,
                             std::int64_t latest) noexcept
{
    const std::int64_t last_id = state.last_id.get();
    return last_id >= 0 && layout.decompose(last_id).timestamp <= latest ? last_id : -1;
}

/* The lease that can serve soonest; of equals the one with the lowest machine ID. */
Best look(const Source &source, std::int64_t last_id, std::int64_t now,
          std::int64_t latest) noexcept
{
    Best best;
    for (std::uint32_t i = 0; i < source.count; i++) {
        const LeaseRef &ref = source.refs[i];
        const Lease &lease = source.leases[ref.index];
        const TakePlan plan =
            plan_take(*source.layout, lease.word.load(std::memory_order_acquire), now,
                      lease.horizon.load(std::memory_order_acquire), latest, 1);
        if (lease.version.load(std::memory_order_acquire) != ref.version) {
            continue;
        }
        if (plan.outcome == TakeOutcome::Ahead) {
            best.any_ahead = true;
        } else if (plan.outcome == TakeOutcome::EndOfTime) {
            best.any_end_of_time = true;
        } else if (plan.outcome == TakeOutcome::Taken) {
            const std::int64_t time =
                soonest_in_order(*source.layout, last_id, ref.machine_id, plan.first);
            if (best.ref == nullptr || time < best.time) {
                best.ref = &ref;
                best.time = time;
            }
        }
        if (best.ref != nullptr && best.time == now) {
            break;
        }
    }
    return best;
}

Draw just(Verdict verdict) noexcept { return {verdict, -1, 0, false, false}; }

Draw wait_until(std::int64_t time, bool saturated) noexcept
{
    return {Verdict::Wait, -1, time, false, saturated};
}

void adopt(GeneratorState &state, const LeaseRef &ref, const TakePlan &plan) noexcept
{
    state.next.set(plan.first);
    state.end.set(plan.first + plan.count);
    state.lease_index.set(ref.index);
    state.lease_version.set(ref.version);
    state.machine_id.set(ref.machine_id);
    state.run_length.set(plan.count);
}

} /* namespace */

Draw draw(GeneratorState &state, const Source &source, std::int64_t now,
          std::uint32_t hint) noexcept
{
    const Layout &layout = *source.layout;
    if (now < 0) {
        return just(Verdict::BeforeEpoch);
    }
    if (now > layout.timestamp.max()) {
        return just(Verdict::EndOfTime);
    }
    const std::int64_t latest = now + source.max_wait;

    if (state.has_run()) {
        const Lease &lease = source.leases[state.lease_index.get()];
        const std::int64_t time = layout.tick_time(state.next.get());
        const bool current =
            lease.version.load(std::memory_order_acquire) == state.lease_version.get();
        if (current && time == now) {
            return detail::issue(state, layout,
                                 now >= lease.renew_at.load(std::memory_order_relaxed));
        }
        if (current && time > now && time <= latest) {
            return wait_until(time, false);
        }
        state.drop_run();
    }

    const std::uint32_t want = detail::next_run_length(state, layout, now, hint);
    for (;;) {
        const std::int64_t last_id = binding_last_id(state, layout, latest);
        const Best best = look(source, last_id, now, latest);
        if (best.ref == nullptr) {
            /*
             * A lease in the future serves again by itself, one at its horizon
             * after a renewal; only if all are in the future is another needed.
             */
            return just(best.any_ahead         ? Verdict::ClockBehind
                        : best.any_end_of_time ? Verdict::EndOfTime
                                               : Verdict::NeedLease);
        }
        Lease &lease = source.leases[best.ref->index];
        const std::int64_t time = layout.tick_time(lease.word.load(std::memory_order_acquire));
        if (best.time > now && best.time > time) {
            /* held up by the session's own order alone: nothing to take yet */
            return wait_until(best.time, false);
        }
        const bool stepped_back = lease.clock.load(std::memory_order_relaxed) > now;
        const std::int64_t ahead = most_ahead(source.max_wait);
        if (best.time > now + ahead) {
            return wait_until(best.time - ahead, !stepped_back);
        }
        /* A tick of a later unit is taken now and waited for: so waiters are served in turn. */
        const TakePlan plan =
            lease.take(layout, *best.ref, now, latest, best.time == now ? want : hint);
        if (plan.outcome != TakeOutcome::Taken) {
            continue; /* another session was faster, or the lease has changed: look again */
        }
        if (layout.compose_tick(plan.first, best.ref->machine_id) <= last_id) {
            continue; /* the word moved meanwhile */
        }
        adopt(state, *best.ref, plan);
        const std::int64_t taken_for = layout.tick_time(plan.first);
        if (taken_for > now) {
            return wait_until(taken_for, !stepped_back);
        }
        return detail::issue(state, layout, now >= lease.renew_at.load(std::memory_order_relaxed));
    }
}

} /* namespace snowflake */
