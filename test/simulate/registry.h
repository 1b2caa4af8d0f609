/*
 * registry.h
 *     A model of the registry: the lease table and the rules of the SQL functions
 *     that claim, renew and release leases. One transaction is one step, as the
 *     row locks and the primary key make it in PostgreSQL.
 */
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/layout.h"
#include "core/machine_ids.h"
#include "planted_fault.h"
#include "random.h"

namespace snowflake::simulate {

constexpr std::uint64_t kNobody = 0;

struct Row {
    std::int64_t horizon;
    std::uint64_t instance; /* kNobody: released */
    std::uint32_t server;   /* what people would read as the holder; no rule looks at it */
    std::int64_t expires_us;
};

struct ClaimRequest {
    std::uint64_t instance;
    std::uint32_t server;
    std::int64_t ttl_us;
    std::int64_t id_time;
    std::int64_t horizon;
    std::int64_t wall_us; /* the claimer's; only a planted fault looks at it */
    const MachineIdSet *allowed;
    std::vector<std::uint32_t> avoid;
};

struct ClaimReply {
    std::uint32_t machine_id;
    std::int64_t old_horizon;
};

/* What a server that is shut down leaves for its next start. */
struct SavedLease {
    std::uint32_t machine_id;
    std::uint64_t instance;
    std::uint64_t next_tick;
    std::int64_t horizon;
};

enum class Action { Claim, Renew, Resume, Release };

/* One row's change, committed. */
struct Change {
    Action action;
    std::uint32_t machine_id;
    std::optional<Row> before;
    Row after;
    std::int64_t registry_us; /* the registry's clock then */
    std::uint64_t instance;   /* who asked */
    std::int64_t id_time;     /* of a claim */
    std::int64_t old_horizon; /* as the claimer was told */
    SavedLease resumed;       /* of Action::Resume */
};

class Registry {
  public:
    Registry(const Layout &layout, Fault planted) : layout_(layout), planted_(planted) {}

    /* A row from before the world began; nobody needs to know. */
    void put(std::uint32_t machine_id, const Row &row) { rows_[machine_id] = row; }

    void begin(std::int64_t true_us, std::int64_t clock_us);
    std::optional<ClaimReply> claim(const ClaimRequest &request, Random *random);
    std::optional<std::int64_t> renew(std::uint32_t machine_id, std::uint64_t instance,
                                      std::int64_t ttl_us, std::int64_t horizon);
    std::optional<std::int64_t> resume(const SavedLease &saved, std::uint64_t instance,
                                       std::int64_t ttl_us, std::int64_t horizon);
    void release(std::uint32_t machine_id);

    /* What the transaction has changed; it is committed now. */
    std::vector<Change> commit();

    /*
     * Fails over to a copy that has not got the transactions committed at or
     * after a time. Returns what is lost, the latest first.
     */
    std::vector<Change> lose_since(std::int64_t true_us);

    const std::map<std::uint32_t, Row> &rows() const { return rows_; }

    /* How many machine IDs a claim could have at these times. */
    std::uint64_t count_free(const MachineIdSet &allowed, std::int64_t id_time,
                             std::int64_t clock_us) const;

    /* When, by the registry's clock, the next of them may be claimed. */
    std::optional<std::int64_t> free_at_us(const MachineIdSet &allowed) const;

  private:
    struct Commit {
        std::int64_t true_us;
        std::vector<Change> changes;
    };

    std::optional<std::uint32_t> never_used(const ClaimRequest &request, Random *random) const;
    std::optional<std::uint32_t> free_for_longest(const ClaimRequest &request,
                                                  Random *random) const;
    bool is_free(const Row &row, const ClaimRequest &request) const;
    void change(const Change &change);

    const Layout layout_;
    const Fault planted_;
    std::map<std::uint32_t, Row> rows_;
    std::vector<Commit> log_;
    Commit open_{};
    std::int64_t clock_us_ = 0;
};

} /* namespace snowflake::simulate */
