/*
 * server.h
 *     A model of one server: what its shared memory holds, its sessions and its
 *     keeper. Leases, draws and the rules of tenure are the real core; the rest is
 *     as small as it can be while it can still go wrong in the same ways.
 */
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/draw.h"
#include "core/lease.h"
#include "core/lease_policy.h"
#include "core/machine_ids.h"
#include "registry.h"
#include "wall_clock.h"

namespace snowflake::simulate {

constexpr std::uint32_t kMaxSlots = 8;
constexpr std::uint32_t kNone = 0xffffffff;

enum class LeaseStatus { Free, Held, Retired };

/* What a keeper knows of a lease besides its word. */
struct Record {
    LeaseStatus status = LeaseStatus::Free;
    std::uint32_t machine_id = 0;
    std::int64_t horizon = 0;
    std::uint64_t word_at_grant = 0;
    std::int64_t granted_at_us = 0; /* monotonic */
};

enum class KeeperState { Idle, Launching, Working };

/* The shared memory of one incarnation of a server. */
struct Memory {
    std::uint64_t instance = 0;
    std::array<Lease, kMaxSlots> leases;
    std::array<Record, kMaxSlots> records{};
    std::vector<LeaseRef> refs; /* ascending by machine ID */
    std::uint64_t change = 1;

    std::uint64_t requested = 0;
    std::uint64_t served = 0;
    bool wants_more = false;
    KeeperState keeper_state = KeeperState::Idle;
    std::uint64_t keeper = 0; /* that serves */
    std::int64_t launched_at_us = 0;
    std::int64_t not_before_us = 0;
    std::vector<SavedLease> saved; /* of the last run */
    bool failed = false;           /* the latest renewal */
    std::int64_t retry_in_us = 0;  /* when it may go better; 0: unknown */
};

enum class Phase {
    Thinking,
    Looking, /* about to read the clock and the leases */
    Drawing, /* has read them, was put off the CPU, and draws now */
    TakeReads,
    TakeSwaps,
    TakeChecks, /* the steps of a take, with a pause between each two */
    AwaitingLease,
};

/* A take that is under way. */
struct Taking {
    LeaseRef ref;
    std::int64_t limit;
    std::int64_t latest;
    std::uint64_t seen;
    TakePlan plan;
};

struct Session {
    GeneratorState state;
    std::vector<LeaseRef> refs; /* its copy */
    std::uint64_t change_seen = 0;

    Phase phase = Phase::Thinking;
    std::uint64_t token = 0; /* of the wake-up that counts */
    std::int64_t pace_us = 0;
    std::uint32_t left = 0; /* IDs still to draw in this call */
    std::int64_t now = 0;   /* as last read, ID time */
    std::int64_t latest_now = 0;
    std::vector<std::int64_t> readings;
    Taking taking{};
    bool tried_steps = false;

    std::int64_t progress_at_us = 0; /* true time: the call or the last ID of it */
    std::int64_t clock_deadline_us = 0;
    std::int64_t lease_deadline_us = 0;
    std::uint64_t request = 0;
    std::int64_t retry_at_us = 0;
    std::uint32_t requests = 0; /* for this ID */

    std::uint32_t run_index = 0; /* under which lease its run was taken, as the checker knows */
    std::uint64_t run_version = 0;
    std::int64_t last_id = -1;
};

/* One lease in a renewal. */
struct Renewed {
    LeaseRef ref;
    HeldLease held;
    RenewalDecision decision;
    bool lost;
};

/* One renewal: what a keeper has seen, asks for and is told. */
struct Work {
    std::uint64_t request;
    bool wants_more;
    std::int64_t now;     /* ID time */
    std::int64_t wall_us; /* the server's clock */
    std::vector<Renewed> leases;
    std::vector<std::uint32_t> avoid;
    std::vector<SavedLease> saved; /* to resume before anything is claimed */
    bool claimed;
    bool none_free;
    std::int64_t retry_in_us;
    std::uint32_t machine_id;
    std::uint64_t first_tick;
    std::int64_t horizon;
};

/* A keeper's transaction on its way to the registry, and its answer. */
struct Message {
    std::uint32_t server;
    std::uint64_t incarnation;
    std::uint64_t instance;
    std::uint64_t keeper;
    Work work;
    bool answered = false;
};

struct Server {
    std::uint32_t number = 0;
    WallClock clock;
    bool stepped = false; /* its clock was ever set or stopped */
    std::int64_t stalled_until_us = 0;
    MachineIdSet allowed{};
    std::uint64_t incarnation = 0;
    std::unique_ptr<Memory> memory; /* null: down */
    std::vector<SavedLease> file;   /* written by a clean shutdown, removed by the start */
    std::vector<std::unique_ptr<Session>> sessions;

    bool up() const { return memory != nullptr; }
};

} /* namespace snowflake::simulate */
