/*
 * keeper.cpp
 *     Keepers of the simulated servers, and their transactions in the registry.
 *     What is renewed, claimed and published is decided by core/lease_policy.h.
 *
 * A keeper looks at its server, sends one transaction, waits for the commit and
 * publishes. It can be late at each step, die between any two, be given up while
 * its transaction is still on its way, and be followed by another.
 */
#include <algorithm>

#include "world.h"

namespace snowflake::simulate {
namespace {

constexpr std::int64_t kLaunchTimeoutUs = 2000000;
constexpr std::int64_t kPatienceUs = 2000000;
constexpr std::int64_t kBackOffUs = 1000000;
constexpr std::int64_t kRenewalEveryUs = 100000;
constexpr std::int64_t kLeastRetryUs = 100000;

/* In place of a keeper's number: what it has begun to publish is not given up. */
constexpr std::uint64_t kPublishing = 0;

} /* namespace */

std::int64_t World::message_delay_us()
{
    return happens(Strike::MessageSlow, 5) ? random_.spread(10000, 8000000)
                                           : random_.spread(50, 20000);
}

/* As a session asks without waiting. */
void World::request_and_go_on(Server *server, bool wants_more)
{
    Memory &memory = *server->memory;
    if (memory.keeper_state != KeeperState::Idle || now_us_ < memory.not_before_us) {
        return;
    }
    memory.not_before_us = now_us_ + kRenewalEveryUs;
    memory.wants_more = memory.wants_more || wants_more;
    memory.requested++;
    launch_keeper(server);
}

bool World::launch_keeper(Server *server)
{
    Memory &memory = *server->memory;
    const bool lost = memory.keeper_state == KeeperState::Launching &&
                      now_us_ - memory.launched_at_us > kLaunchTimeoutUs;
    if (memory.keeper_state != KeeperState::Idle && !lost) {
        return false;
    }
    memory.keeper_state = KeeperState::Launching;
    memory.launched_at_us = now_us_;
    if (happens(Strike::KeeperDies, 10)) {
        note("a keeper never starts", server->number);
        return true;
    }
    const std::int64_t delay_us =
        happens(Strike::KeeperLate, 8) ? random_.spread(1000, 4000000) : random_.spread(500, 20000);
    schedule(delay_us, Kind::KeeperBegins, server->number, 0, server->incarnation);
    return true;
}

void World::begin_keeper(Server *server)
{
    Memory &memory = *server->memory;
    if (memory.keeper_state == KeeperState::Working || memory.requested <= memory.served) {
        return; /* another was faster */
    }
    memory.keeper_state = KeeperState::Working;
    memory.keeper = ++keepers_;
    const std::int64_t delay_us =
        happens(Strike::KeeperLate, 8) ? random_.spread(1000, 4000000) : random_.between(10, 500);
    schedule(delay_us, Kind::KeeperLooks, server->number, 0, memory.keeper);
    schedule(kPatienceUs, Kind::KeeperGivesUp, server->number, 0, memory.keeper);
}

void World::keeper_looks(Server *server, std::uint64_t keeper)
{
    Memory &memory = *server->memory;
    if (memory.keeper_state != KeeperState::Working || memory.keeper != keeper) {
        return;
    }
    const Layout &layout = setting_.layout;
    Work work{};
    work.request = memory.requested;
    work.wants_more = memory.wants_more;
    work.now = id_time(*server);
    work.wall_us = server->clock.shows_us(now_us_);
    if (work.now < 0 || work.now > layout.timestamp.max()) {
        return end_renewal(server, work.request, false); /* the session says so itself */
    }
    std::vector<HeldLease> leases_held;
    for (const LeaseRef &ref : memory.refs) {
        const Lease &lease = memory.leases[ref.index];
        const Record &record = memory.records[ref.index];
        HeldLease held{};
        held.word = lease.word.load();
        held.horizon = lease.horizon.load();
        held.due = work.now >= lease.renew_at.load() ||
                   now_us_ - record.granted_at_us >= setting_.ttl_us / 3;
        held.used = held.word != record.word_at_grant;
        held.allowed = server->allowed.contains(record.machine_id);
        leases_held.push_back(held);
    }
    for (std::uint32_t i = 0; i < leases_held.size(); i++) {
        const RenewalDecision decision =
            decide_renewal(layout, setting_.terms, leases_held.data(),
                           static_cast<std::uint32_t>(leases_held.size()), i, work.now);
        work.leases.push_back({memory.refs[i], leases_held[i], decision, false});
    }
    for (const Record &record : memory.records) {
        if (record.status == LeaseStatus::Held ||
            (record.status == LeaseStatus::Retired && record.horizon > work.now)) {
            work.avoid.push_back(record.machine_id);
        }
    }
    work.saved.swap(memory.saved);
    for (const Renewed &renewed : work.leases) {
        Lease &lease = memory.leases[renewed.ref.index];
        if (planted_ == Fault::PublishBeforeCommit && renewed.decision == RenewalDecision::Renew) {
            lease.extend(granted_horizon(layout, setting_.terms, work.now),
                         renewal_time(setting_.terms, work.now));
        }
        if (planted_ == Fault::ResetWordAtSwitch &&
            !in_reach(layout, setting_.terms, renewed.held, work.now)) {
            lease.word.store(layout.first_tick(work.now));
        }
    }
    send(server, work, keeper);
}

void World::send(Server *server, const Work &work, std::uint64_t keeper)
{
    const Memory &memory = *server->memory;
    if (happens(Strike::KeeperDies, 10)) {
        note("keeper dies before it asks", server->number);
        tally_.keepers_died++;
        return abandon(server, 0);
    }
    const auto index = static_cast<std::uint32_t>(messages_.size());
    messages_.push_back({server->number, server->incarnation, memory.instance, keeper, work});
    note("keeper asks", server->number, work.now, static_cast<std::int64_t>(work.leases.size()));
    if (happens(Strike::MessageTwice, 8)) {
        schedule(message_delay_us(), Kind::RegistryReceives, kNone, index);
    }
    if (happens(Strike::MessageLost, 8)) {
        tally_.messages_lost++;
    } else {
        schedule(message_delay_us(), Kind::RegistryReceives, kNone, index);
    }
    if (happens(Strike::KeeperDies, 10)) {
        note("keeper dies while it waits", server->number);
        tally_.keepers_died++;
        abandon(server, 0);
    }
}

/*----------------------------------------------------------------------
 * In the registry
 *----------------------------------------------------------------------*/

void World::registry_receives(std::uint32_t index)
{
    Message &message = messages_[index];
    if (!registry_up_) {
        note("registry is away", message.server);
        return; /* the keeper will give up */
    }
    const bool again = message.answered;
    Message copy = message;
    execute(&copy);
    if (again) {
        return; /* a repeated request; its answer goes nowhere */
    }
    message.work = copy.work;
    message.answered = true;
    if (happens(Strike::MessageLost, 8)) {
        tally_.messages_lost++;
        return;
    }
    schedule(message_delay_us(), Kind::KeeperReceives, message.server, index, message.incarnation);
}

/* Goes on with a lease of the server's last run. */
bool World::resume(const Server &server, std::uint64_t instance, Work *work)
{
    while (!work->saved.empty()) {
        const SavedLease saved = work->saved.back();
        work->saved.pop_back();
        HeldLease held{};
        held.word = saved.next_tick;
        if (!server.allowed.contains(saved.machine_id) ||
            !in_reach(setting_.layout, setting_.terms, held, work->now)) {
            continue;
        }
        const std::optional<std::int64_t> granted =
            registry_.resume(saved, instance, setting_.ttl_us, work->horizon);
        if (granted) {
            work->claimed = true;
            work->machine_id = saved.machine_id;
            work->first_tick = saved.next_tick;
            work->horizon = *granted;
            tally_.resumed++;
            return true;
        }
    }
    return false;
}

bool World::claim(const Server &server, std::uint64_t instance, Work *work)
{
    const std::optional<ClaimReply> reply =
        registry_.claim({instance, server.number, setting_.ttl_us, work->now, work->horizon,
                         work->wall_us, &server.allowed, work->avoid},
                        &random_);
    if (!reply) {
        return false;
    }
    work->claimed = true;
    work->machine_id = reply->machine_id;
    work->first_tick = planted_ == Fault::StartBelowHorizon
                           ? setting_.layout.first_tick(work->now)
                           : first_tick_of_claim(setting_.layout, reply->old_horizon, work->now);
    tally_.claims++;
    return true;
}

/* A keeper's transaction, and its commit. */
void World::execute(Message *message)
{
    const Layout &layout = setting_.layout;
    Work &work = message->work;
    const Server &server = servers_[message->server];
    const std::uint64_t instance = message->instance; /* which may be gone */
    registry_.begin(now_us_, registry_clock_us());
    std::vector<HeldLease> leases_held;
    for (Renewed &renewed : work.leases) {
        if (renewed.decision == RenewalDecision::LetLapse && !renewed.held.allowed) {
            registry_.release(renewed.ref.machine_id);
        } else if (renewed.decision == RenewalDecision::Renew) {
            const std::optional<std::int64_t> granted =
                registry_.renew(renewed.ref.machine_id, instance, setting_.ttl_us,
                                granted_horizon(layout, setting_.terms, work.now));
            renewed.lost = !granted;
            renewed.held.horizon = granted.value_or(0);
            (granted ? tally_.renewals : tally_.renewals_refused)++;
        }
        leases_held.push_back(renewed.held);
    }
    const auto count = static_cast<std::uint32_t>(leases_held.size());
    const bool must = needs_another(layout, setting_.terms, leases_held.data(), count, work.now);
    const auto in_use =
        std::count_if(leases_held.begin(), leases_held.end(), [&](const HeldLease &held) {
            return work.now < held.horizon && in_reach(layout, setting_.terms, held, work.now);
        });
    if (must || (work.wants_more && in_use < most_machine_ids(layout, setting_.max_machine_ids))) {
        work.horizon = granted_horizon(layout, setting_.terms, work.now);
        if (!resume(server, instance, &work) && !claim(server, instance, &work) && must) {
            const std::optional<std::int64_t> at_us = registry_.free_at_us(server.allowed);
            work.none_free = true;
            work.retry_in_us =
                at_us ? std::max(*at_us - server.clock.shows_us(now_us_), kLeastRetryUs) : 0;
        }
    }
    for (const Change &change : registry_.commit()) {
        note(change.action == Action::Claim    ? "registry: claimed"
             : change.action == Action::Renew  ? "registry: renewed"
             : change.action == Action::Resume ? "registry: resumed"
                                               : "registry: released",
             message->server, change.machine_id, change.after.horizon);
        checker_.committed(change);
    }
}

/*----------------------------------------------------------------------
 * Publishing
 *----------------------------------------------------------------------*/

void World::keeper_receives(Server *server, std::uint32_t index)
{
    const Message &message = messages_[index];
    const Memory &memory = *server->memory;
    const bool late =
        memory.keeper_state != KeeperState::Working || memory.keeper != message.keeper;
    if (late && planted_ != Fault::PublishLateAnswer) {
        return;
    }
    if (happens(Strike::KeeperDies, 10)) {
        note("keeper dies after the commit", server->number);
        tally_.keepers_died++;
        return late ? void() : abandon(server, 0);
    }
    const std::int64_t delay_us =
        happens(Strike::KeeperLate, 5) ? random_.spread(1000, 4000000) : random_.between(1, 100);
    schedule(delay_us, Kind::KeeperInstalls, server->number, index, 0);
}

void World::retire(Server *server, std::uint32_t slot)
{
    Memory &memory = *server->memory;
    memory.leases[slot].retire();
    memory.records[slot].status = LeaseStatus::Retired;
    memory.refs.erase(std::remove_if(memory.refs.begin(), memory.refs.end(),
                                     [&](const LeaseRef &ref) { return ref.index == slot; }),
                      memory.refs.end());
    memory.change++;
}

/* What the registry has said about the leases at hand. */
void World::publish_care(Server *server, const Work &work)
{
    Memory &memory = *server->memory;
    for (const Renewed &renewed : work.leases) {
        const std::uint32_t slot = renewed.ref.index;
        if (renewed.lost || renewed.decision == RenewalDecision::LetLapse) {
            retire(server, slot);
        } else if (renewed.decision == RenewalDecision::Renew) {
            memory.leases[slot].extend(renewed.held.horizon,
                                       renewal_time(setting_.terms, work.now));
            Record &record = memory.records[slot];
            record.horizon = renewed.held.horizon;
            record.word_at_grant = renewed.held.word;
            record.granted_at_us = now_us_;
        }
    }
}

/* A slot for a new lease: an unused one, else that with the lowest remembered horizon. */
std::uint32_t World::place_for(Server *server, const Work &work)
{
    Memory &memory = *server->memory;
    if (memory.refs.size() == setting_.leases_of_pool) {
        retire(server, memory.refs[0].index);
    }
    std::uint32_t place = kNone;
    for (std::uint32_t slot = 0; slot < setting_.slots; slot++) {
        const Record &record = memory.records[slot];
        if (record.status == LeaseStatus::Free) {
            place = slot;
            break;
        }
        if (record.status == LeaseStatus::Retired &&
            (place == kNone || record.horizon < memory.records[place].horizon)) {
            place = slot;
        }
    }
    memory.records[place].machine_id = work.machine_id;
    return place;
}

void World::add_ref(Server *server, std::uint32_t slot)
{
    Memory &memory = *server->memory;
    const LeaseRef ref{slot, memory.records[slot].machine_id, memory.leases[slot].version.load()};
    const auto place =
        std::find_if(memory.refs.begin(), memory.refs.end(),
                     [&](const LeaseRef &other) { return other.machine_id > ref.machine_id; });
    memory.refs.insert(place, ref);
    memory.change++;
}

/*
 * Publishes a renewal. At times a new lease is made in the steps in which
 * Lease::install() makes it, with a pause in the middle.
 */
void World::install(Server *server, std::uint32_t index, bool by_steps)
{
    const Message &message = messages_[index];
    const Work &work = message.work;
    Memory &memory = *server->memory;
    const bool ours =
        memory.keeper_state == KeeperState::Working && memory.keeper == message.keeper;
    if (!ours && planted_ != Fault::PublishLateAnswer) {
        return;
    }
    memory.keeper = kPublishing;
    publish_care(server, work);
    memory.saved = work.saved;
    if (work.claimed) {
        const std::uint32_t slot = place_for(server, work);
        const std::int64_t horizon =
            planted_ == Fault::ForgetHorizon ? setting_.layout.timestamp.max() + 1 : work.horizon;
        memory.records[slot] = {LeaseStatus::Held, work.machine_id, work.horizon, work.first_tick,
                                now_us_};
        Lease &lease = memory.leases[slot];
        if (by_steps && happens(Strike::KeeperLate, 3)) {
            lease.retire();
            lease.word.store(work.first_tick);
            lease.clock.store(0);
            lease.machine_id.store(work.machine_id);
            lease.horizon.store(horizon);
            lease.renew_at.store(renewal_time(setting_.terms, work.now));
            messages_[index].work.machine_id = slot;
            return schedule(random_.spread(1, 3000), Kind::KeeperFinishes, server->number, index);
        }
        lease.install(work.machine_id, work.first_tick, horizon,
                      renewal_time(setting_.terms, work.now));
        messages_[index].work.machine_id = slot;
    }
    finish(server, index);
}

void World::finish(Server *server, std::uint32_t index)
{
    const Message &message = messages_[index];
    Memory &memory = *server->memory;
    if (message.work.claimed) {
        const std::uint32_t slot = message.work.machine_id; /* install() has put it there */
        if (!memory.leases[slot].held()) {
            memory.leases[slot].version.fetch_add(1);
        }
        add_ref(server, slot);
        note("publishes a lease", server->number, memory.records[slot].machine_id,
             memory.leases[slot].horizon.load());
        const std::uint32_t most = most_machine_ids(setting_.layout, setting_.max_machine_ids);
        const std::int64_t now = id_time(*server);
        const auto live = std::count_if(
            memory.refs.begin(), memory.refs.end(),
            [&](const LeaseRef &ref) { return now < memory.leases[ref.index].horizon.load(); });
        checker_.expect(server->stepped || live <= most,
                        "a server whose clock never stepped holds no more than its share", live,
                        most);
    }
    memory.retry_in_us = message.work.retry_in_us;
    end_renewal(server, message.work.request, message.work.none_free);
}

/* A renewal that came to nothing; its transaction may still commit. */
void World::abandon(Server *server, std::int64_t retry_in_us)
{
    Memory &memory = *server->memory;
    if (planted_ == Fault::StaySilentAfterDeath) {
        return;
    }
    memory.retry_in_us = retry_in_us;
    end_renewal(server, memory.requested, true);
}

/* Wakes who waits; goes on where there are new requests. */
void World::end_renewal(Server *server, std::uint64_t request, bool failed)
{
    Memory &memory = *server->memory;
    memory.keeper_state = KeeperState::Idle;
    memory.keeper = kPublishing;
    memory.served = std::max(memory.served, request);
    memory.failed = failed;
    memory.wants_more = false;
    if (failed) {
        memory.not_before_us = now_us_ + kBackOffUs;
    }
    for (std::uint32_t i = 0; i < server->sessions.size(); i++) {
        if (server->sessions[i]->phase == Phase::AwaitingLease) {
            wake(server, i, random_.between(1, 50));
        }
    }
    if (memory.requested > memory.served) {
        launch_keeper(server);
    }
}

} /* namespace snowflake::simulate */
