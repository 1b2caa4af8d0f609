/*
 * weather.cpp
 *     What goes wrong in the simulated world, and what must be right again when
 *     it is over; see world.h.
 */
#include <algorithm>
#include <iterator>

#include "world.h"

namespace snowflake::simulate {
namespace {

constexpr std::int64_t kUsPerMs = 1000;
constexpr std::int64_t kUsPerSecond = 1000 * kUsPerMs;
constexpr std::int64_t kUsPerDay = 86400 * kUsPerSecond;
constexpr std::int64_t kUsPerYear = 365 * kUsPerDay;

/*
 * How long after the last fault its traces may be felt: a keeper that was lost
 * at its start, one that waits for an answer in vain, and the pause after that.
 */
constexpr std::int64_t kSettleUs = 8 * kUsPerSecond;

/*
 * The bound on an ID in calm, besides what the clock itself makes a session wait:
 * a while for the keeper (or until the call fails, which is judged by itself), and some units in
 * which other sessions are served first.
 */
constexpr std::int64_t kBoundUs = 3 * kUsPerSecond;
constexpr std::int64_t kBoundUnits = 16;

} /* namespace */

bool World::may(Strike strike) const
{
    return !calm_ && setting_.strikes[static_cast<std::size_t>(strike)];
}

bool World::happens(Strike strike, std::uint64_t one_in)
{
    return may(strike) && random_.one_in(one_in);
}

bool World::settled() const { return calm_ && now_us_ - calm_since_us_ > kSettleUs; }

std::int64_t World::bound_us() const
{
    const std::int64_t unit_us = unit_ms(setting_.layout.unit) * kUsPerMs;
    return std::max(kBoundUs, setting_.acquire_timeout_us) + 2 * setting_.max_wait_us +
           kBoundUnits * unit_us;
}

void World::turn_weather()
{
    if (calm_ && now_us_ > 0) {
        check_calm();
    }
    calm_ = !calm_;
    note(calm_ ? "calm" : "bad weather");
    if (calm_) {
        calm_since_us_ = now_us_;
        registry_clock_.thaw(now_us_);
        registry_clock_.drift(now_us_, 0);
        for (Server &server : servers_) {
            server.clock.thaw(now_us_);
            server.clock.drift(now_us_, 0);
            if (random_.one_in(2)) {
                set_clock_right(&server);
            }
        }
    }
    schedule(calm_ ? kSettleUs + bound_us() + random_.between(0, 10 * kUsPerSecond)
                   : random_.spread(kUsPerSecond / 2, 20 * kUsPerSecond),
             Kind::WeatherTurns, kNone);
}

/* At the end of calm: nobody has been left to wait, and who asks can be served. */
void World::check_calm()
{
    for (Server &server : servers_) {
        if (!server.up()) {
            continue;
        }
        for (std::uint32_t i = 0; i < server.sessions.size(); i++) {
            const Session &session = *server.sessions[i];
            if (session.phase == Phase::Thinking) {
                continue;
            }
            const std::int64_t since = std::max(session.progress_at_us, calm_since_us_ + kSettleUs);
            checker_.expect(now_us_ - since <= bound_us(),
                            "a session gets an ID within a bound after the last fault",
                            now_us_ - since, bound_us());
        }
    }
}

/*
 * In calm a call may fail only where there is no machine ID, or no time: the last
 * units of a layout may have been used up by those who waited for them.
 */
void World::check_failed_call(const Server &server, const Session &session)
{
    const std::int64_t now = id_time(server);
    if (!settled() || session.progress_at_us < calm_since_us_ + kSettleUs || now < 0 ||
        now + setting_.terms.max_wait >= setting_.layout.timestamp.max()) {
        return;
    }
    /* what is its own is not free for it, others may be faster, and it was free all the time */
    const std::int64_t while_us = now_us_ - session.progress_at_us + kUsPerSecond;
    const std::uint64_t free = registry_.count_free(
        server.allowed, now - while_us / kUsPerMs / unit_ms(setting_.layout.unit) - 1,
        registry_clock_us() - while_us);
    /* nor is what it knows to be used further than a registry that lost commits knows */
    const auto retired = static_cast<std::uint64_t>(std::count_if(
        server.memory->records.begin(), server.memory->records.end(), [now](const Record &record) {
            return record.status == LeaseStatus::Retired && record.horizon > now;
        }));
    const std::uint64_t wanted = servers_.size() + server.memory->refs.size() + retired;
    checker_.expect(free < wanted, "an ID can be had while a machine ID is free",
                    static_cast<std::int64_t>(free), now);
}

void World::strike()
{
    if (calm_) {
        return;
    }
    const auto which = static_cast<Strike>(random_.below(kStrikesThatStrike));
    if (may(which)) {
        strike_with(which, &servers_[random_.below(servers_.size())]);
    }
}

void World::set_clock_right(Server *server)
{
    server->clock.set(now_us_, began_unix_us_ + now_us_ + random_.between(-500, 500) * kUsPerMs);
    server->stepped = true;
}

void World::strike_with(Strike strike, Server *server)
{
    /* the registry's clock is as bad as any; a local one is its server's */
    WallClock &clock =
        !setting_.local_registry && random_.one_in(6) ? registry_clock_ : server->clock;
    const std::int64_t sign = random_.one_in(2) ? 1 : -1;
    switch (strike) {
        case Strike::ClockNudge:
            clock.step(now_us_, sign * random_.spread(1, 50 * kUsPerMs));
            break;
        case Strike::ClockStep:
            clock.step(now_us_, sign * random_.spread(50 * kUsPerMs, 60 * kUsPerSecond));
            break;
        case Strike::ClockJump:
            /* rarely, or all machine IDs would soon have horizons that no clock passes again */
            if (!random_.one_in(4)) {
                return;
            }
            clock.step(now_us_, sign * random_.spread(kUsPerDay / 24, 40 * kUsPerYear));
            break;
        case Strike::ClockFreeze:
            clock.freeze(now_us_);
            break;
        case Strike::ClockDrift:
            clock.drift(now_us_, random_.between(-200, 200));
            break;
        case Strike::ClockSetRight:
            clock.thaw(now_us_);
            clock.set(now_us_, began_unix_us_ + now_us_ + random_.between(-50, 50) * kUsPerMs);
            break;
        case Strike::ServerStalls:
            server->stalled_until_us = now_us_ + random_.spread(kUsPerMs, 4 * kUsPerSecond);
            tally_.stalls++;
            return note("server stalls", server->number, server->stalled_until_us - now_us_);
        case Strike::ServerCrashes:
            return stop(server, false);
        case Strike::ServerRestarts:
            return stop(server, true);
        case Strike::RegistryRestarts:
            return stop_registry();
        case Strike::SyncFailover:
            return fail_over(false);
        case Strike::LossyFailover:
            return fail_over(true);
        case Strike::SettingsReload: {
            /* another part of the machine IDs, or all again */
            const auto most = static_cast<std::int64_t>(setting_.layout.machine_id.mask());
            server->allowed = MachineIdSet{};
            if (random_.one_in(2)) {
                const auto low = static_cast<std::uint32_t>(random_.between(0, most));
                const auto high = random_.one_in(4)
                                      ? low
                                      : static_cast<std::uint32_t>(random_.between(low, most));
                server->allowed.count = 1;
                server->allowed.ranges[0] = {low, high};
            }
            return note("settings change", server->number);
        }
        case Strike::LeaseReleased: {
            /* an administrator's mistake: the lease may be in use */
            if (!registry_up_ || registry_.rows().empty()) {
                return;
            }
            auto row = registry_.rows().begin();
            std::advance(row, random_.below(registry_.rows().size()));
            registry_.begin(now_us_, registry_clock_us());
            registry_.release(row->first);
            for (const Change &change : registry_.commit()) {
                note("released by hand", kNone, change.machine_id, change.after.horizon);
                checker_.committed(change);
            }
            return;
        }
        default:
            return;
    }
    server->stepped = server->stepped || &clock == &server->clock;
    tally_.clock_steps++;
    note("a clock is set or stopped", &clock == &server->clock ? server->number : kNone,
         id_time(*server));
}

/*
 * Nothing in memory survives, and the next start is another instance. What a clean
 * shutdown saves of its leases is tried once.
 */
void World::stop(Server *server, bool cleanly)
{
    if (!server->up()) {
        return;
    }
    note(cleanly ? "server is shut down" : "server crashes", server->number);
    (cleanly ? tally_.shutdowns : tally_.crashes)++;
    server->file.clear();
    if (cleanly) {
        const Memory &memory = *server->memory;
        for (const LeaseRef &ref : memory.refs) {
            server->file.push_back({ref.machine_id, memory.instance,
                                    memory.leases[ref.index].word.load(),
                                    memory.records[ref.index].horizon});
        }
    }
    server->memory.reset();
    server->stalled_until_us = 0;
    if (setting_.local_registry && server->number == 0) {
        registry_up_ = false;
    }
    schedule(random_.spread(10 * kUsPerMs, 3 * kUsPerSecond), Kind::ServerStarts, server->number);
}

void World::stop_registry()
{
    if (setting_.local_registry || !registry_up_) {
        return;
    }
    note("registry stops");
    tally_.registry_restarts++;
    registry_up_ = false;
    schedule(random_.spread(10 * kUsPerMs, 4 * kUsPerSecond), Kind::RegistryStarts, kNone);
}

/*
 * A copy takes over, on another host with another clock. A synchronous one has
 * all that was committed; a lossy one lacks the end.
 */
void World::fail_over(bool lossy)
{
    if (setting_.local_registry || !registry_up_) {
        return;
    }
    note(lossy ? "lossy failover" : "failover");
    tally_.failovers++;
    if (lossy) {
        tally_.lossy_failovers++;
        const std::vector<Change> lost =
            registry_.lose_since(now_us_ - random_.spread(kUsPerMs, 10 * kUsPerSecond));
        tally_.commits_lost += lost.size();
        checker_.lost(lost, registry_.rows());
    }
    registry_clock_.set(now_us_,
                        began_unix_us_ + now_us_ + random_.between(-2000, 2000) * kUsPerMs);
    registry_up_ = false;
    schedule(random_.spread(10 * kUsPerMs, 4 * kUsPerSecond), Kind::RegistryStarts, kNone);
}

} /* namespace snowflake::simulate */
