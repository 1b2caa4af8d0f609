/*
 * session.cpp
 *     Sessions of the simulated servers: they draw with the real draw(), and do
 *     what its verdict says as the SQL function does.
 *
 * A session may be put off the CPU between any two of: copying the pool's leases,
 * reading the clock, drawing. And, since a take is not one step on a machine with
 * many CPUs, now and then a session's take is done here in the steps in which
 * Lease::take() does it, with pauses in which others take, renew and claim.
 */
#include <algorithm>

#include "world.h"

namespace snowflake::simulate {
namespace {

constexpr std::int64_t kLongestSliceUs = 50000;
constexpr std::int64_t kLongestSleepUs = 1000000;
constexpr std::uint32_t kIdsPerEvent = 16;
constexpr std::uint32_t kMostRequests = 100;

} /* namespace */

void World::wake(Server *server, std::uint32_t index, std::int64_t in_us)
{
    Session &session = *server->sessions[index];
    schedule(in_us, Kind::SessionWakes, server->number, index, ++session.token);
}

/* How long a session is put off the CPU, where it could be. */
std::int64_t World::pause_us()
{
    if (!may(Strike::SessionPaused) || !random_.one_in(4)) {
        return random_.between(1, 20);
    }
    return random_.one_in(4) ? random_.spread(1000, 3000000) : random_.spread(1, 2000);
}

void World::step_session(Server *server, std::uint32_t index)
{
    Session &session = *server->sessions[index];
    switch (session.phase) {
        case Phase::Thinking:
            begin_call(&session);
            return look(server, index);
        case Phase::Looking:
            return look(server, index);
        case Phase::Drawing:
            return attempt(server, index);
        case Phase::TakeReads:
        case Phase::TakeSwaps:
        case Phase::TakeChecks:
            return step_take(server, index);
        case Phase::AwaitingLease:
            return await_lease(server, index);
    }
}

void World::begin_call(Session *session)
{
    const auto sequences = static_cast<std::int64_t>(setting_.layout.sequence.mask() + 1);
    const bool batch = random_.one_in(30);
    session->left = batch ? static_cast<std::uint32_t>(
                                random_.spread(2, std::min<std::int64_t>(1000, sequences * 4)))
                          : 1;
    session->readings.clear();
    session->tried_steps = false;
    session->progress_at_us = now_us_;
    session->clock_deadline_us = 0;
    session->lease_deadline_us = 0;
    session->requests = 0;
    tally_.calls++;
    tally_.calls_in_calm += settled() ? 1 : 0;
}

void World::end_call(Server *server, std::uint32_t index, bool failed)
{
    Session &session = *server->sessions[index];
    if (failed) {
        tally_.calls_failed++;
        note("a call fails", server->number, index);
        check_failed_call(*server, session);
    }
    session.phase = Phase::Thinking;
    wake(server, index, random_.spread(1, session.pace_us));
}

void World::look(Server *server, std::uint32_t index)
{
    Session &session = *server->sessions[index];
    const Memory &memory = *server->memory;
    if (session.change_seen != memory.change) {
        session.change_seen = memory.change;
        session.refs = memory.refs;
    }
    session.now = id_time(*server);
    session.readings.push_back(session.now);
    session.phase = Phase::Drawing;
    if (may(Strike::SessionPaused) && random_.one_in(3)) {
        return wake(server, index, pause_us());
    }
    attempt(server, index);
}

/* Does to what the session is about to draw with what a faulty core would have done. */
void World::plant_before_draw(const Server &server, Session *session)
{
    GeneratorState &state = session->state;
    Memory &memory = *server.memory;
    const Lease &lease = memory.leases[state.lease_index.get()];
    const std::uint64_t version = lease.version.load();
    switch (planted_) {
        case Fault::MoveWordPastHorizon:
            for (const LeaseRef &ref : session->refs) {
                Lease &past = memory.leases[ref.index];
                if (session->now > setting_.layout.tick_time(past.word.load()) &&
                    session->now <= setting_.layout.timestamp.max()) {
                    past.word.store(setting_.layout.first_tick(session->now));
                }
            }
            break;
        case Fault::IgnoreVersion:
            for (LeaseRef &ref : session->refs) {
                ref.version = memory.leases[ref.index].version.load();
            }
            break;
        case Fault::ReuseRunAcrossLeases:
            if (state.has_run() && version != state.lease_version.get() && !session->refs.empty()) {
                const LeaseRef &ref = session->refs[0];
                state.lease_index.set(ref.index);
                state.lease_version.set(ref.version);
                state.machine_id.set(ref.machine_id);
            }
            break;
        case Fault::KeepTicksOfRetiredLease:
            state.lease_version.set(version);
            break;
        case Fault::ForgetOrder:
            state.last_id.set(-1);
            break;
        case Fault::DoNotWait:
            if (state.has_run()) {
                session->now = setting_.layout.tick_time(state.next.get());
            }
            break;
        default:
            break;
    }
}

void World::attempt(Server *server, std::uint32_t index)
{
    Session &session = *server->sessions[index];
    GeneratorState &state = session.state;
    Memory &memory = *server->memory;
    for (std::uint32_t i = 0; i < kIdsPerEvent; i++) {
        const std::uint64_t next = state.next.get();
        const std::uint64_t end = state.end.get();
        plant_before_draw(*server, &session);
        if (begin_take(server, index)) {
            return;
        }
        const std::uint32_t slot = state.lease_index.get();
        const std::uint64_t version = state.lease_version.get();
        const Source source{&setting_.layout, memory.leases.data(), session.refs.data(),
                            static_cast<std::uint32_t>(session.refs.size()),
                            setting_.terms.max_wait};
        const Draw drawn = draw(state, source, session.now, session.left);

        const bool same_run = next < end && state.end.get() == end &&
                              state.lease_index.get() == slot &&
                              state.lease_version.get() == version &&
                              (state.next.get() == next || state.next.get() == next + 1);
        if (!same_run) {
            session.run_index = state.lease_index.get();
            session.run_version = state.lease_version.get();
        }
        for (const LeaseRef &ref : session.refs) {
            const Lease &lease = memory.leases[ref.index];
            checker_.expect(setting_.layout.tick_time(lease.word.load()) <= lease.horizon.load(),
                            "a word is never moved past its horizon",
                            setting_.layout.tick_time(lease.word.load()), lease.horizon.load());
        }
        switch (drawn.verdict) {
            case Verdict::Issued:
                if (!issue(server, &session, drawn)) {
                    return end_call(server, index, false);
                }
                break;
            case Verdict::Wait:
                return wait_for_clock(server, index, drawn);
            case Verdict::NeedLease:
            case Verdict::ClockBehind:
                note(drawn.verdict == Verdict::NeedLease ? "needs a lease" : "clock is behind",
                     server->number, index, session.now);
                make_request(server, &session, false);
                if (session.lease_deadline_us == 0) {
                    session.lease_deadline_us = now_us_ + setting_.acquire_timeout_us;
                }
                session.retry_at_us = 0;
                session.phase = Phase::AwaitingLease;
                return await_lease(server, index);
            case Verdict::BeforeEpoch:
            case Verdict::EndOfTime:
                return end_call(server, index, true);
        }
    }
    session.phase = Phase::Looking;
    wake(server, index, random_.between(1, 10));
}

/* An ID is there. False if it was the call's last. */
bool World::issue(Server *server, Session *session, const Draw &drawn)
{
    note("issues IDs", server->number, drawn.id, drawn.id);
    const Lease &lease = server->memory->leases[session->run_index];
    const bool ended = !lease.held() || lease.version.load() != session->run_version;
    checker_.issued({drawn.id, session->last_id, server->memory->instance, ended,
                     &session->readings, setting_.terms.max_wait});
    if (settled()) {
        const std::int64_t since = std::max(session->progress_at_us, calm_since_us_);
        tally_.longest_calm_wait_us = std::max(tally_.longest_calm_wait_us, now_us_ - since);
    }
    session->last_id = drawn.id;
    session->readings.assign(1, session->now);
    session->progress_at_us = now_us_;
    session->clock_deadline_us = 0;
    session->lease_deadline_us = 0;
    session->requests = 0;
    session->tried_steps = false;
    if (drawn.renewal_is_due) {
        request_and_go_on(server, false);
    }
    return --session->left > 0;
}

void World::wait_for_clock(Server *server, std::uint32_t index, const Draw &drawn)
{
    Session &session = *server->sessions[index];
    const std::int64_t unit_us = unit_ms(setting_.layout.unit) * 1000;
    /* A clock that goes on is not stuck, however many others are served before. */
    if (session.clock_deadline_us == 0 || session.now > session.latest_now) {
        session.latest_now = session.now;
        session.clock_deadline_us = now_us_ + (setting_.max_wait_us + unit_us) * 2 + 100000;
    }
    if (now_us_ > session.clock_deadline_us) {
        checker_.expect(!settled() || session.progress_at_us < calm_since_us_,
                        "a clock that runs is not taken for stuck", session.now, drawn.until);
        return end_call(server, index, true);
    }
    if (drawn.saturated && setting_.max_machine_ids > 1) {
        request_and_go_on(server, true);
    }
    session.lease_deadline_us = 0; /* time spent on the clock is not the keeper's fault */
    session.phase = Phase::Looking;
    const std::int64_t left_us =
        setting_.layout.to_unix_ms(drawn.until) * 1000 - server->clock.shows_us(now_us_);
    const std::int64_t late_us = may(Strike::SessionPaused) && random_.one_in(4)
                                     ? random_.spread(1, 5000)
                                     : random_.between(0, 60);
    wake(server, index, std::clamp<std::int64_t>(left_us, 1, kLongestSliceUs) + late_us);
}

void World::await_lease(Server *server, std::uint32_t index)
{
    Session &session = *server->sessions[index];
    const Memory &memory = *server->memory;
    const bool served = memory.served >= session.request;
    if (served && !memory.failed) {
        session.phase = Phase::Looking;
        return wake(server, index, random_.between(1, 50));
    }
    if (served && session.retry_at_us == 0) {
        if (memory.retry_in_us <= 0 || now_us_ + memory.retry_in_us >= session.lease_deadline_us) {
            return end_call(server, index, true);
        }
        session.retry_at_us = now_us_ + memory.retry_in_us;
    }
    if (now_us_ >= session.lease_deadline_us) {
        return end_call(server, index, true);
    }
    std::int64_t sleep_us = std::min(session.lease_deadline_us - now_us_, kLongestSleepUs);
    if (session.retry_at_us > now_us_) {
        sleep_us = std::min(sleep_us, session.retry_at_us - now_us_);
    } else {
        if (session.retry_at_us > 0) {
            make_request(server, &session, false);
            session.retry_at_us = 0;
        }
        launch_keeper(server);
    }
    wake(server, index, sleep_us);
}

void World::make_request(Server *server, Session *session, bool wants_more)
{
    Memory &memory = *server->memory;
    memory.wants_more = memory.wants_more || wants_more;
    session->request = ++memory.requested;
    session->requests++;
    checker_.expect(
        !settled() || session->progress_at_us < calm_since_us_ || session->requests < kMostRequests,
        "a session does not start keeper after keeper", session->requests, 0);
}

/*----------------------------------------------------------------------
 * A take, step by step
 *----------------------------------------------------------------------*/

/* Begins one in place of a draw, at times. */
bool World::begin_take(Server *server, std::uint32_t index)
{
    Session &session = *server->sessions[index];
    const std::int64_t now = session.now;
    if (session.tried_steps || session.state.has_run() || session.refs.empty() || now < 0 ||
        now > setting_.layout.timestamp.max() || !may(Strike::SessionPaused) ||
        !random_.one_in(4)) {
        return false;
    }
    session.tried_steps = true;
    const LeaseRef &ref = session.refs[random_.below(session.refs.size())];
    const Lease &lease = server->memory->leases[ref.index];
    if (lease.version.load() != ref.version) {
        return false;
    }
    session.taking = {ref, lease.horizon.load(), now + setting_.terms.max_wait, 0, {}};
    session.phase = Phase::TakeReads;
    note("begins a take by steps", server->number, index, ref.machine_id);
    wake(server, index, pause_us());
    return true;
}

void World::step_take(Server *server, std::uint32_t index)
{
    Session &session = *server->sessions[index];
    GeneratorState &state = session.state;
    Taking &taking = session.taking;
    Lease &lease = server->memory->leases[taking.ref.index];
    const std::int64_t furthest = session.now + most_ahead(setting_.terms.max_wait);
    switch (session.phase) {
        case Phase::TakeReads:
            taking.seen = lease.word.load();
            taking.plan = plan_take(setting_.layout, taking.seen, session.now, taking.limit,
                                    taking.latest, session.left);
            session.phase = taking.plan.outcome == TakeOutcome::Taken &&
                                    setting_.layout.tick_time(taking.plan.first) <= furthest
                                ? Phase::TakeSwaps
                                : Phase::Looking;
            break;
        case Phase::TakeSwaps: {
            const std::uint64_t after = taking.plan.first + taking.plan.count;
            if (planted_ == Fault::StoreInsteadOfSwap) {
                lease.word.store(after);
                session.phase = Phase::TakeChecks;
            } else {
                session.phase = lease.word.compare_exchange_strong(taking.seen, after)
                                    ? Phase::TakeChecks
                                    : Phase::TakeReads;
            }
            break;
        }
        default: {
            session.phase = Phase::Looking;
            const bool in_order = setting_.layout.compose_tick(
                                      taking.plan.first, taking.ref.machine_id) > session.last_id;
            const bool current = lease.version.load() == taking.ref.version;
            if ((current || planted_ == Fault::IgnoreVersion) && in_order) {
                state.next.set(taking.plan.first);
                state.end.set(taking.plan.first + taking.plan.count);
                state.lease_index.set(taking.ref.index);
                state.lease_version.set(taking.ref.version);
                state.machine_id.set(taking.ref.machine_id);
                state.run_length.set(taking.plan.count);
                session.run_index = taking.ref.index;
                session.run_version = taking.ref.version;
                note("takes by steps", server->number, static_cast<std::int64_t>(taking.plan.first),
                     taking.ref.machine_id);
            }
            break;
        }
    }
    wake(server, index, pause_us());
}

} /* namespace snowflake::simulate */
