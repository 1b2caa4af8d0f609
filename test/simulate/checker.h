/*
 * checker.h
 *     What must hold, whatever happens. Sees every commit of the registry and
 *     every ID, and shares no code with what it checks.
 *
 * What can be promised when the registry loses commits
 * ----------------------------------------------------
 * A machine ID whose row was set back from horizon H2 to H1 may be in use by a
 * holder of whom the registry no longer knows, below H2; and another may be given
 * it from H1 on. So IDs of that machine ID with times in H1 .. H2 may come twice:
 * repeats there are counted as collisions, not as failures. Everything else holds
 * as ever: the forgotten holder cannot renew, so at and past H2, and for every
 * other machine ID, no ID repeats.
 */
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/layout.h"
#include "registry.h"

namespace snowflake::simulate {

/* Every ID seen, by open addressing: there are many, and looked at once each. */
class IdSet {
  public:
    IdSet();

    /* False if it was there. */
    bool insert(std::int64_t id);
    std::uint64_t size() const { return size_; }

  private:
    std::size_t place_of(std::int64_t id) const;
    void grow();

    std::vector<std::int64_t> places_;
    std::uint64_t size_ = 0;
};

/* A session's ID, and what the session saw while it drew it. */
struct IssuedId {
    std::int64_t id;
    std::int64_t previous; /* of the session; -1: none */
    std::uint64_t instance;
    bool lease_ended; /* the lease it was drawn on had ended before */
    const std::vector<std::int64_t> *clock_readings; /* since the call, or the last ID, began */
    std::int64_t max_wait;
};

/* Which rules to check; a planted fault is looked for by all, and by the IDs alone. */
enum class Watch { Everything, IdsAlone };

class Checker {
  public:
    Checker(const Layout &layout, Watch watch) : layout_(layout), watch_(watch) {}

    void start_with(std::uint32_t machine_id, const Row &row);
    void committed(const Change &change);
    void lost(const std::vector<Change> &changes, const std::map<std::uint32_t, Row> &rows);
    void issued(const IssuedId &issued);

    /* For rules that only the world can look at. */
    void expect(bool holds, const char *rule, std::int64_t a, std::int64_t b);

    bool failed() const { return !failure_.empty(); }
    const std::string &failure() const { return failure_; }
    std::uint64_t ids() const { return ids_.size(); }
    std::uint64_t collisions() const { return collisions_; }

  private:
    /* Times that the registry granted to an instance with a machine ID. */
    struct Span {
        std::uint64_t instance;
        std::int64_t from;
        std::int64_t to;
    };

    /* Times for which a lossy failover has left two holders possible. */
    struct Risk {
        std::int64_t from;
        std::int64_t to;
    };

    struct Machine {
        std::int64_t floor = 0; /* the highest horizon of this history */
        std::uint64_t holder = kNobody;
        std::vector<Span> spans;
        std::vector<Risk> risks;
    };

    void fail(const char *rule, std::int64_t a, std::int64_t b);
    static bool granted(const Machine &machine, std::uint64_t instance, std::int64_t time);
    static bool at_risk(const Machine &machine, std::int64_t time);

    const Layout layout_;
    const Watch watch_;
    std::map<std::uint32_t, Machine> machines_;
    IdSet ids_;
    std::uint64_t collisions_ = 0;
    std::string failure_;
};

} /* namespace snowflake::simulate */
