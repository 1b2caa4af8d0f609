/*
 * lease_policy.h
 *     The rules by which a keeper looks after the leases of one generator: which
 *     to renew, when another is needed, where a lease starts and how far it goes.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception, and
 * time is passed in. The keeper does what these rules say, in a transaction of
 * the registry, and changes the leases in memory after that has committed.
 */
#pragma once

#include <cstdint>

#include "core/layout.h"
#include "core/lease.h"

namespace snowflake {

/* What a lease is granted for, all in ID time. */
struct Terms {
    std::int64_t ttl; /* at least 1 */
    /* at least 2: how far in the future a lease's word may be to be of use */
    std::int64_t max_wait;
};

/*
 * The exclusive horizon of a lease that is claimed or renewed now: a ttl away, and
 * past every time that a word in reach can stand at, or a short ttl would leave
 * sessions that wait in turn at a horizon that no renewal raises. But never past
 * the layout's last time.
 */
constexpr std::int64_t granted_horizon(const Layout &layout, const Terms &terms,
                                       std::int64_t now) noexcept
{
    const std::int64_t end = layout.timestamp.max() + 1;
    const std::int64_t reach = terms.max_wait + 1;
    const std::int64_t length = terms.ttl > reach ? terms.ttl : reach;
    return now < end - length ? now + length : end;
}

/* When a lease granted now asks for renewal: past a third of it. */
constexpr std::int64_t renewal_time(const Terms &terms, std::int64_t now) noexcept
{
    return now + terms.ttl / 3;
}

/*
 * Where a new holder of a machine ID starts: at the old horizon or above it, so
 * that no tick that an earlier holder may have issued comes again.
 */
constexpr std::uint64_t first_tick_of_claim(const Layout &layout, std::int64_t old_horizon,
                                            std::int64_t now) noexcept
{
    return layout.first_tick(old_horizon > now ? old_horizon : now);
}

/* A lease as its keeper sees it. */
struct HeldLease {
    std::uint64_t word;
    std::int64_t horizon;
    bool due;     /* past a third of its time, by whichever clock says so first */
    bool used;    /* IDs were drawn on it since it was granted */
    bool allowed; /* snowflake.machine_ids allows its machine ID */
};

/* Whether a lease could give an ID soon: its word is not too far in the future. */
constexpr bool in_reach(const Layout &layout, const Terms &terms, const HeldLease &held,
                        std::int64_t now) noexcept
{
    return layout.tick_time(held.word) - now <= terms.max_wait;
}

enum class RenewalDecision {
    NotDue,   /* nothing to do yet */
    Renew,    /* raise its horizon */
    LetLapse, /* forget it: its machine ID is not wanted any longer */
};

/*
 * In: the leases of a generator, and which of them is asked about.
 * Out: what to do with it.
 *
 * A lease is renewed when that is due and it was used. One that nobody draws on
 * (after a burst, or behind a clock that stepped back) is left to lapse, but the
 * first that is in reach is renewed in any case, so that an idle generator keeps
 * its machine ID for as long as anybody asks.
 */
inline RenewalDecision decide_renewal(const Layout &layout, const Terms &terms,
                                      const HeldLease *leases_held, std::uint32_t count,
                                      std::uint32_t which, std::int64_t now) noexcept
{
    const HeldLease &held = leases_held[which];
    if (!held.allowed) {
        return RenewalDecision::LetLapse;
    }
    const bool expired = now >= held.horizon;
    if (!in_reach(layout, terms, held, now)) {
        return expired ? RenewalDecision::LetLapse : RenewalDecision::NotDue;
    }
    if (!held.due && !expired) {
        return RenewalDecision::NotDue;
    }
    std::uint32_t first = 0;
    while (first < count &&
           !(leases_held[first].allowed && in_reach(layout, terms, leases_held[first], now))) {
        first++;
    }
    if (held.used || which == first) {
        return RenewalDecision::Renew;
    }
    return expired ? RenewalDecision::LetLapse : RenewalDecision::NotDue;
}

/*
 * Whether the generator needs one more machine ID, after its leases were cared
 * for (a renewed one with its new horizon): none of them can give an ID soon.
 */
inline bool needs_another(const Layout &layout, const Terms &terms, const HeldLease *leases_held,
                          std::uint32_t count, std::int64_t now) noexcept
{
    for (std::uint32_t i = 0; i < count; i++) {
        if (leases_held[i].allowed && now < leases_held[i].horizon &&
            in_reach(layout, terms, leases_held[i], now)) {
            return false;
        }
    }
    return true;
}

/*
 * How many machine IDs an instance may hold for one generator: what the setting
 * says, but never more than an eighth of all, and at least one.
 */
constexpr std::uint32_t most_machine_ids(const Layout &layout, std::uint32_t setting) noexcept
{
    const std::uint64_t eighth = (layout.machine_id.mask() + 1) / 8;
    const std::uint64_t most = eighth < 1 ? 1 : eighth;
    return setting < most ? setting : static_cast<std::uint32_t>(most);
}

} /* namespace snowflake */
