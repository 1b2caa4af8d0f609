/*
 * registry.cpp
 *     The model of the registry; see registry.h.
 */
#include "registry.h"

#include <algorithm>
#include <utility>

namespace snowflake::simulate {
namespace {

bool is_in(const std::vector<std::uint32_t> &ids, std::uint32_t machine_id)
{
    return std::find(ids.begin(), ids.end(), machine_id) != ids.end();
}

} /* namespace */

void Registry::begin(std::int64_t true_us, std::int64_t clock_us)
{
    open_ = Commit{true_us, {}};
    clock_us_ = clock_us;
}

void Registry::change(const Change &change)
{
    const auto found = rows_.find(change.machine_id);
    open_.changes.push_back(change);
    open_.changes.back().before =
        found == rows_.end() ? std::nullopt : std::optional<Row>(found->second);
    open_.changes.back().registry_us = clock_us_;
    rows_[change.machine_id] = change.after;
}

/* The first one at or after a random place, in a circle. */
std::optional<std::uint32_t> Registry::never_used(const ClaimRequest &request, Random *random) const
{
    const std::uint64_t size = layout_.machine_id.mask() + 1;
    const std::uint64_t start = random->below(size);
    if (planted_ != Fault::NoPrimaryKey && rows_.size() == size) {
        return std::nullopt;
    }
    for (std::uint64_t i = 0; i < size; i++) {
        const auto id = static_cast<std::uint32_t>((start + i) % size);
        const bool used = planted_ != Fault::NoPrimaryKey && rows_.count(id) > 0;
        if (!used && request.allowed->contains(id) && !is_in(request.avoid, id)) {
            return id;
        }
    }
    return std::nullopt;
}

bool Registry::is_free(const Row &row, const ClaimRequest &request) const
{
    switch (planted_) {
        case Fault::ExpiryByClaimersClock:
            return row.expires_us <= request.wall_us;
        case Fault::StartBelowHorizon:
            return row.expires_us <= clock_us_;
        case Fault::ClaimUnexpired:
            return row.horizon <= request.id_time;
        default:
            return row.expires_us <= clock_us_ && row.horizon <= request.id_time;
    }
}

/* At random, one of that half of the free ones that expired first. */
std::optional<std::uint32_t> Registry::free_for_longest(const ClaimRequest &request,
                                                        Random *random) const
{
    std::vector<std::pair<std::int64_t, std::uint32_t>> free;
    for (const auto &[id, row] : rows_) {
        if (is_free(row, request) && request.allowed->contains(id) && !is_in(request.avoid, id)) {
            free.emplace_back(row.expires_us, id);
        }
    }
    if (free.empty()) {
        return std::nullopt;
    }
    std::sort(free.begin(), free.end());
    return free[random->below((free.size() + 1) / 2)].second;
}

std::optional<ClaimReply> Registry::claim(const ClaimRequest &request, Random *random)
{
    std::int64_t old_horizon = request.id_time;
    std::optional<std::uint32_t> id;
    if (planted_ == Fault::AdoptOwnRow) {
        for (const auto &[own, row] : rows_) {
            if (row.server == request.server && !is_in(request.avoid, own)) {
                id = own;
                break;
            }
        }
    }
    if (!id) {
        id = never_used(request, random);
    }
    if (!id) {
        id = free_for_longest(request, random);
        if (!id) {
            return std::nullopt;
        }
        if (planted_ != Fault::StartBelowHorizon && planted_ != Fault::ExpiryByClaimersClock) {
            old_horizon = rows_.at(*id).horizon;
        }
    }
    const auto found = rows_.find(*id);
    const std::int64_t horizon =
        found == rows_.end() ? request.horizon : std::max(found->second.horizon, request.horizon);
    const Row after{horizon, request.instance, request.server, clock_us_ + request.ttl_us};
    change({Action::Claim, *id, {}, after, 0, request.instance, request.id_time, old_horizon, {}});
    return ClaimReply{*id, old_horizon};
}

std::optional<std::int64_t> Registry::renew(std::uint32_t machine_id, std::uint64_t instance,
                                            std::int64_t ttl_us, std::int64_t horizon)
{
    const auto found = rows_.find(machine_id);
    if (found == rows_.end() ||
        (found->second.instance != instance && planted_ != Fault::RenewWithoutOwnership)) {
        return std::nullopt;
    }
    Row after = found->second;
    after.horizon = planted_ == Fault::HorizonGoesDown ? horizon : std::max(after.horizon, horizon);
    after.expires_us = std::max(after.expires_us, clock_us_ + ttl_us);
    change({Action::Renew, machine_id, {}, after, 0, instance, 0, 0, {}});
    return after.horizon;
}

std::optional<std::int64_t> Registry::resume(const SavedLease &saved, std::uint64_t instance,
                                             std::int64_t ttl_us, std::int64_t horizon)
{
    const auto found = rows_.find(saved.machine_id);
    const bool as_left = found != rows_.end() && found->second.instance == saved.instance &&
                         found->second.horizon == saved.horizon;
    if (!as_left && (found == rows_.end() || planted_ != Fault::ResumeUnchecked)) {
        return std::nullopt;
    }
    Row after = found->second;
    after.instance = instance;
    after.horizon = std::max(after.horizon, horizon);
    after.expires_us = std::max(after.expires_us, clock_us_ + ttl_us);
    change({Action::Resume, saved.machine_id, {}, after, 0, instance, 0, 0, saved});
    return after.horizon;
}

void Registry::release(std::uint32_t machine_id)
{
    const auto found = rows_.find(machine_id);
    if (found == rows_.end() || found->second.instance == kNobody) {
        return;
    }
    Row after = found->second;
    after.instance = kNobody;
    after.expires_us = std::min(after.expires_us, clock_us_);
    change({Action::Release, machine_id, {}, after, 0, kNobody, 0, 0, {}});
}

std::vector<Change> Registry::commit()
{
    log_.push_back(open_);
    return std::move(open_.changes);
}

std::vector<Change> Registry::lose_since(std::int64_t true_us)
{
    std::vector<Change> lost;
    while (!log_.empty() && log_.back().true_us >= true_us) {
        std::vector<Change> &changes = log_.back().changes;
        for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
            if (change->before) {
                rows_[change->machine_id] = *change->before;
            } else {
                rows_.erase(change->machine_id);
            }
            lost.push_back(*change);
        }
        log_.pop_back();
    }
    return lost;
}

std::uint64_t Registry::count_free(const MachineIdSet &allowed, std::int64_t id_time,
                                   std::int64_t clock_us) const
{
    std::uint64_t count = allowed.all() ? layout_.machine_id.mask() + 1 : 0;
    for (std::uint32_t i = 0; i < allowed.count; i++) {
        count += allowed.ranges[i].high - allowed.ranges[i].low + 1;
    }
    for (const auto &[id, row] : rows_) {
        const bool free = row.expires_us <= clock_us && row.horizon <= id_time;
        count -= allowed.contains(id) && !free ? 1 : 0;
    }
    return count;
}

std::optional<std::int64_t> Registry::free_at_us(const MachineIdSet &allowed) const
{
    std::optional<std::int64_t> soonest;
    for (const auto &[id, row] : rows_) {
        if (allowed.contains(id)) {
            const std::int64_t at =
                std::max(row.expires_us, layout_.to_unix_ms(row.horizon) * 1000);
            soonest = soonest ? std::min(*soonest, at) : at;
        }
    }
    return soonest;
}

} /* namespace snowflake::simulate */
