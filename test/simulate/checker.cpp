/*
 * checker.cpp
 *     What must hold; see checker.h.
 */
#include "checker.h"

#include <algorithm>

namespace snowflake::simulate {
namespace {

constexpr std::int64_t kEmpty = -1;

} /* namespace */

IdSet::IdSet() : places_(1024, kEmpty) {}

std::size_t IdSet::place_of(std::int64_t id) const
{
    const std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15;
    std::size_t place = (mixed ^ (mixed >> 32)) & (places_.size() - 1);
    while (places_[place] != kEmpty && places_[place] != id) {
        place = (place + 1) & (places_.size() - 1);
    }
    return place;
}

void IdSet::grow()
{
    std::vector<std::int64_t> old(places_.size() * 2, kEmpty);
    old.swap(places_);
    for (const std::int64_t id : old) {
        if (id != kEmpty) {
            places_[place_of(id)] = id;
        }
    }
}

bool IdSet::insert(std::int64_t id)
{
    const std::size_t place = place_of(id);
    if (places_[place] == id) {
        return false;
    }
    places_[place] = id;
    if (++size_ * 2 > places_.size()) {
        grow();
    }
    return true;
}

void Checker::fail(const char *rule, std::int64_t a, std::int64_t b)
{
    if (failure_.empty()) {
        failure_ = std::string(rule) + " (" + std::to_string(a) + ", " + std::to_string(b) + ")";
    }
}

void Checker::expect(bool holds, const char *rule, std::int64_t a, std::int64_t b)
{
    if (!holds && watch_ == Watch::Everything) {
        fail(rule, a, b);
    }
}

void Checker::start_with(std::uint32_t machine_id, const Row &row)
{
    machines_[machine_id].floor = row.horizon;
    machines_[machine_id].holder = row.instance;
}

void Checker::committed(const Change &change)
{
    Machine &machine = machines_[change.machine_id];
    const Row &after = change.after;
    expect(after.horizon >= machine.floor, "a horizon never goes down", after.horizon,
           machine.floor);
    switch (change.action) {
        case Action::Claim:
            if (change.before) {
                expect(change.before->expires_us <= change.registry_us,
                       "a machine ID has one holder: a lease is claimed after it has expired",
                       change.machine_id, change.before->expires_us - change.registry_us);
                expect(machine.floor <= change.id_time,
                       "a claimer's clock has passed the old horizon", change.id_time,
                       machine.floor);
            }
            expect(change.old_horizon >= machine.floor,
                   "a new holder starts at the old horizon or above it", change.old_horizon,
                   machine.floor);
            machine.spans.push_back({change.instance, change.old_horizon, after.horizon});
            break;
        case Action::Renew: {
            expect(machine.holder == change.instance, "a lease is renewed by its holder alone",
                   change.machine_id, 0);
            const auto own =
                std::find_if(machine.spans.rbegin(), machine.spans.rend(),
                             [&](const Span &span) { return span.instance == change.instance; });
            if (own != machine.spans.rend()) {
                own->to = std::max(own->to, after.horizon);
            }
            break;
        }
        case Action::Resume:
            expect(machine.holder == change.resumed.instance &&
                       machine.floor == change.resumed.horizon,
                   "a lease is resumed only if it is as it was left", change.machine_id,
                   machine.floor);
            machine.spans.push_back(
                {change.instance, layout_.tick_time(change.resumed.next_tick), after.horizon});
            break;
        case Action::Release:
            break;
    }
    machine.holder = after.instance;
    machine.floor = std::max(machine.floor, after.horizon);
}

void Checker::lost(const std::vector<Change> &changes, const std::map<std::uint32_t, Row> &rows)
{
    for (const Change &change : changes) {
        Machine &machine = machines_[change.machine_id];
        const auto row = rows.find(change.machine_id);
        const std::int64_t kept = row == rows.end() ? 0 : row->second.horizon;
        machine.risks.push_back({kept, std::max(machine.floor, change.after.horizon)});
        machine.floor = kept;
        machine.holder = row == rows.end() ? kNobody : row->second.instance;
    }
}

bool Checker::granted(const Machine &machine, std::uint64_t instance, std::int64_t time)
{
    return std::any_of(machine.spans.rbegin(), machine.spans.rend(), [&](const Span &span) {
        return span.instance == instance && time >= span.from && time < span.to;
    });
}

bool Checker::at_risk(const Machine &machine, std::int64_t time)
{
    return std::any_of(machine.risks.begin(), machine.risks.end(),
                       [&](const Risk &risk) { return time >= risk.from && time < risk.to; });
}

void Checker::issued(const IssuedId &issued)
{
    const Parts parts = layout_.decompose(issued.id);
    const std::int64_t time = parts.timestamp;
    const Machine &machine = machines_[static_cast<std::uint32_t>(parts.machine_id)];

    if (!ids_.insert(issued.id)) {
        if (at_risk(machine, time)) {
            collisions_++;
        } else {
            fail("no ID comes twice", issued.id, parts.machine_id);
        }
    }
    expect(granted(machine, issued.instance, time),
           "an ID lies in the times that the registry has granted durably", issued.id,
           parts.machine_id);
    expect(!issued.lease_ended, "a tick of a lease that has ended is dropped", issued.id,
           parts.machine_id);

    const std::vector<std::int64_t> &readings = *issued.clock_readings;
    if (std::find(readings.rbegin(), readings.rend(), time) == readings.rend()) {
        fail("an ID's timestamp is a time that the clock showed during the call", issued.id, time);
    }
    if (issued.previous >= issued.id) {
        const std::int64_t before = layout_.decompose(issued.previous).timestamp;
        const bool stepped_back =
            std::any_of(readings.begin(), readings.end(),
                        [&](std::int64_t reading) { return before > reading + issued.max_wait; });
        if (!stepped_back) {
            fail("the IDs of a session increase", issued.id, issued.previous);
        }
    }
}

} /* namespace snowflake::simulate */
