/*
 * world.cpp
 *     Making a world, and its loop of events; see world.h.
 */
#include "world.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/layout_spec.h"

namespace snowflake::simulate {
namespace {

constexpr std::size_t kTraceLines = 40;
constexpr std::int64_t kUsPerMs = 1000;
constexpr const char *kIssues = "issues IDs";

/* Full-size and tiny pools, all units, both orders of the low fields. */
constexpr const char *kSpecs[] = {
    "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m10,s12",
    "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m3,s12",
    "epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m3,s3",
    "epoch=2026-01-01T00:00:00Z unit=ms fields=t28,m3,s6",
    "epoch=2014-09-01T00:00:00Z unit=10ms fields=t39,s8,m16",
    "epoch=2024-01-01T00:00:00Z unit=10ms fields=t36,m3,s5",
    "epoch=2024-01-01T00:00:00Z unit=s fields=t31,m10,s22",
    "epoch=2024-01-01T00:00:00Z unit=s fields=t28,s13,m22",
    "epoch=2024-01-01T00:00:00Z unit=s fields=t32,m3,s4",
};

constexpr std::int64_t kWaitsMs[] = {1, 10, 100, 1000, 1000};
constexpr std::uint32_t kMaxMachineIds[] = {1, 1, 4};

} /* namespace */

void Tally::add(const Tally &other)
{
    worlds += other.worlds;
    events += other.events;
    ids += other.ids;
    calls += other.calls;
    calls_failed += other.calls_failed;
    calls_in_calm += other.calls_in_calm;
    claims += other.claims;
    renewals += other.renewals;
    renewals_refused += other.renewals_refused;
    clock_steps += other.clock_steps;
    crashes += other.crashes;
    shutdowns += other.shutdowns;
    resumed += other.resumed;
    stalls += other.stalls;
    keepers_died += other.keepers_died;
    messages_lost += other.messages_lost;
    registry_restarts += other.registry_restarts;
    failovers += other.failovers;
    lossy_failovers += other.lossy_failovers;
    commits_lost += other.commits_lost;
    collisions += other.collisions;
    worlds_with_collisions += other.worlds_with_collisions;
    longest_calm_wait_us = std::max(longest_calm_wait_us, other.longest_calm_wait_us);
}

Setting World::make_setting()
{
    Setting setting{};
    setting.spec = random_.pick(kSpecs);
    setting.layout = parse_layout(setting.spec).layout;
    const std::int64_t unit = unit_ms(setting.layout.unit);
    const std::int64_t ttl_ms = random_.spread(1000, 10000);
    const std::int64_t wait_ms = random_.pick(kWaitsMs);
    /* in units, rounded up, as the settings are */
    setting.terms = {(ttl_ms + unit - 1) / unit,
                     std::max<std::int64_t>((wait_ms + unit - 1) / unit, 2)};
    setting.ttl_us = ttl_ms * kUsPerMs;
    setting.max_wait_us = wait_ms * kUsPerMs;
    setting.acquire_timeout_us = random_.spread(1000, 5000) * kUsPerMs;
    setting.slots = static_cast<std::uint32_t>(random_.between(3, kMaxSlots));
    setting.leases_of_pool = setting.slots - 1;
    setting.max_machine_ids = std::min(random_.pick(kMaxMachineIds), setting.leases_of_pool);
    setting.local_registry = random_.one_in(4);
    setting.pace_us = random_.spread(20 * kUsPerMs, 4000 * kUsPerMs);
    setting.strike_every_us = random_.spread(20 * kUsPerMs, 500 * kUsPerMs);
    for (bool &enabled : setting.strikes) {
        enabled = random_.one_in(2);
    }
    return setting;
}

World::World(std::uint64_t seed, Fault planted, Watch watch)
    : random_(seed),
      planted_(planted),
      setting_(make_setting()),
      checker_(setting_.layout, watch),
      registry_(setting_.layout, planted)
{
    trace_.reserve(kTraceLines);
    /* Mostly somewhere in the layout's life; at times near its beginning or its end. */
    const Layout &layout = setting_.layout;
    const std::int64_t last = layout.timestamp.max();
    const std::int64_t begin = random_.one_in(12)   ? last - random_.spread(1, 100000)
                               : random_.one_in(12) ? random_.spread(1, 100000)
                                                    : random_.between(last / 8, last / 2);
    began_unix_us_ = layout.to_unix_ms(begin) * kUsPerMs;
    registry_clock_.set(0, began_unix_us_ + random_.between(-2000, 2000) * kUsPerMs);
    make_servers();
    make_history();
    calm_ = random_.one_in(2);
    turn_weather();
    schedule(random_.spread(1, setting_.strike_every_us), Kind::FaultStrikes, kNone);
    tally_.worlds = 1;
}

void World::make_servers()
{
    servers_.resize(setting_.local_registry ? static_cast<std::uint64_t>(random_.between(1, 2))
                                            : static_cast<std::uint64_t>(random_.between(1, 6)));
    for (Server &server : servers_) {
        server.number = static_cast<std::uint32_t>(&server - servers_.data());
        server.clock.set(0, began_unix_us_ + random_.between(-500, 500) * kUsPerMs);
        server.sessions.resize(random_.below(5) + 1);
        start_server(&server);
    }
}

/* Rows of servers that are long gone, so that machine IDs are used again. */
void World::make_history()
{
    const std::uint64_t size = setting_.layout.machine_id.mask() + 1;
    if (size > 1024 || random_.one_in(2)) {
        return;
    }
    const std::int64_t now = setting_.layout.from_unix_ms(began_unix_us_ / kUsPerMs);
    for (std::uint64_t id = 0; id < size; id++) {
        if (size <= 8 && random_.one_in(2)) {
            continue;
        }
        /* a few were left behind by a clock that was wrong */
        const std::int64_t away = random_.spread(1, 100000);
        const std::int64_t horizon = std::clamp<std::int64_t>(
            random_.one_in(16) ? now + away : now - away, 0, setting_.layout.timestamp.max());
        const Row row{horizon, random_.next() | 1, kNone,
                      began_unix_us_ - random_.spread(1, 1 << 30)};
        registry_.put(static_cast<std::uint32_t>(id), row);
        checker_.start_with(static_cast<std::uint32_t>(id), row);
    }
}

void World::start_server(Server *server)
{
    server->incarnation++;
    server->memory = std::make_unique<Memory>();
    server->memory->instance = random_.next() >> 1 | 1;
    server->memory->saved.swap(server->file);
    for (Lease &lease : server->memory->leases) {
        lease.clear();
    }
    for (std::uint32_t i = 0; i < server->sessions.size(); i++) {
        server->sessions[i] = std::make_unique<Session>();
        Session &session = *server->sessions[i];
        session.state.clear();
        session.pace_us =
            random_.spread(std::max<std::int64_t>(setting_.pace_us / 8, 1), setting_.pace_us * 2);
        wake(server, i, random_.spread(1, session.pace_us));
    }
    if (setting_.local_registry && server->number == 0) {
        registry_up_ = true;
    }
    note("server starts", server->number);
}

std::int64_t World::id_time(const Server &server) const
{
    return server.clock.shows(setting_.layout, now_us_);
}

std::int64_t World::registry_clock_us() const
{
    const WallClock &clock = setting_.local_registry ? servers_[0].clock : registry_clock_;
    return clock.shows_us(now_us_);
}

void World::schedule(std::int64_t in_us, Kind kind, std::uint32_t server, std::uint32_t index,
                     std::uint64_t token)
{
    queue_.push({now_us_ + in_us, order_++, kind, server, index, token});
}

void World::note(const char *what, std::uint32_t server, std::int64_t a, std::int64_t b)
{
    const TraceLine line{now_us_, what, server, a, b};
    if (std::strcmp(what, kIssues) == 0 && !trace_.empty() && trace_.back().what == what &&
        trace_.back().server == server) {
        trace_.back().b = b; /* a row of IDs is one line: the first, and the last */
        return;
    }
    if (trace_.size() < kTraceLines) {
        trace_.push_back(line);
    } else {
        std::move(trace_.begin() + 1, trace_.end(), trace_.begin());
        trace_.back() = line;
    }
}

void World::print_trace() const
{
    std::printf("  layout %s\n", setting_.spec);
    std::printf("  %zu servers, ttl %" PRId64 " ms, max_wait %" PRId64
                " ms, max_machine_ids %u, %s registry; in units: ttl %" PRId64 ", wait %" PRId64
                "\n",
                servers_.size(), setting_.ttl_us / kUsPerMs, setting_.max_wait_us / kUsPerMs,
                setting_.max_machine_ids, setting_.local_registry ? "local" : "shared",
                setting_.terms.ttl, setting_.terms.max_wait);
    for (const TraceLine &line : trace_) {
        std::printf("  %12.6f s  ", static_cast<double>(line.at) / 1e6);
        if (line.server == kNone) {
            std::printf("          ");
        } else {
            std::printf("server %u  ", line.server);
        }
        std::printf("%-28s %20" PRId64 " %20" PRId64 "\n", line.what, line.a, line.b);
    }
}

/* Events for who has died since, or has been woken by another. */
bool World::concerns_nobody(const Event &event) const
{
    if (event.server == kNone) {
        return false;
    }
    const Server &server = servers_[event.server];
    switch (event.kind) {
        case Kind::ServerStarts:
            return false;
        case Kind::SessionWakes:
            return !server.up() || server.sessions[event.index]->token != event.token;
        case Kind::KeeperReceives:
        case Kind::KeeperInstalls:
        case Kind::KeeperFinishes:
            return !server.up() || messages_[event.index].incarnation != server.incarnation;
        default:
            return !server.up();
    }
}

bool World::run(std::uint64_t events)
{
    while (!checker_.failed() && tally_.events < events) {
        Event event = queue_.top();
        queue_.pop();
        now_us_ = event.at;
        if (concerns_nobody(event)) {
            continue;
        }
        if (event.server != kNone && servers_[event.server].stalled_until_us > now_us_) {
            event.at = servers_[event.server].stalled_until_us;
            queue_.push(event);
            continue;
        }
        tally_.events++;
        dispatch(event);
    }
    tally_.ids = checker_.ids();
    tally_.collisions = checker_.collisions();
    tally_.worlds_with_collisions = checker_.collisions() > 0 ? 1 : 0;
    return !checker_.failed();
}

void World::dispatch(const Event &event)
{
    Server *server = event.server == kNone ? nullptr : &servers_[event.server];
    switch (event.kind) {
        case Kind::SessionWakes:
            return step_session(server, event.index);
        case Kind::KeeperBegins:
            return begin_keeper(server);
        case Kind::KeeperLooks:
            return keeper_looks(server, event.token);
        case Kind::RegistryReceives:
            return registry_receives(event.index);
        case Kind::KeeperReceives:
            return keeper_receives(server, event.index);
        case Kind::KeeperInstalls:
            return install(server, event.index, true);
        case Kind::KeeperFinishes:
            return finish(server, event.index);
        case Kind::KeeperGivesUp:
            if (server->memory->keeper_state == KeeperState::Working &&
                server->memory->keeper == event.token) {
                note("keeper gives up", server->number);
                abandon(server, 0);
            }
            return;
        case Kind::ServerStarts:
            return start_server(server);
        case Kind::RegistryStarts:
            registry_up_ = true;
            return note("registry is up");
        case Kind::FaultStrikes:
            strike();
            return schedule(
                random_.spread(setting_.strike_every_us / 4 + 1, setting_.strike_every_us * 2),
                Kind::FaultStrikes, kNone);
        case Kind::WeatherTurns:
            return turn_weather();
    }
}

} /* namespace snowflake::simulate */
