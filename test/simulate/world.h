/*
 * world.h
 *     The simulated world: servers, a registry, messages between them, and what
 *     goes wrong. One thread, one queue of events, one seed.
 *
 * Times of bad weather, when faults strike, alternate with calm, when only what
 * has happened goes on: then every session must get its IDs within a bound.
 */
#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <string>
#include <vector>

#include "checker.h"
#include "planted_fault.h"
#include "random.h"
#include "registry.h"
#include "server.h"

namespace snowflake::simulate {

/* What strikes in bad weather. Each world has its own choice of these. */
enum class Strike {
    ClockNudge,
    ClockStep,
    ClockJump,
    ClockFreeze,
    ClockDrift,
    ClockSetRight,
    ServerStalls,
    ServerCrashes,
    ServerRestarts,
    RegistryRestarts,
    SyncFailover,
    LossyFailover,
    SettingsReload,
    LeaseReleased,
    /* these do not strike, but may happen to every message and keeper */
    MessageSlow,
    MessageLost,
    MessageTwice,
    KeeperDies,
    KeeperLate,
    SessionPaused,
};
constexpr std::uint32_t kStrikes = 20;
constexpr std::uint32_t kStrikesThatStrike = 14;

struct Tally {
    std::uint64_t worlds;
    std::uint64_t events;
    std::uint64_t ids;
    std::uint64_t calls;
    std::uint64_t calls_failed;
    std::uint64_t calls_in_calm;
    std::uint64_t claims;
    std::uint64_t renewals;
    std::uint64_t renewals_refused;
    std::uint64_t clock_steps;
    std::uint64_t crashes;
    std::uint64_t shutdowns;
    std::uint64_t resumed;
    std::uint64_t stalls;
    std::uint64_t keepers_died;
    std::uint64_t messages_lost;
    std::uint64_t registry_restarts;
    std::uint64_t failovers;
    std::uint64_t lossy_failovers;
    std::uint64_t commits_lost;
    std::uint64_t collisions;
    std::uint64_t worlds_with_collisions;
    std::int64_t longest_calm_wait_us;

    void add(const Tally &other);
};

/* What is the same for one world's life. */
struct Setting {
    const char *spec; /* of the layout */
    Layout layout;
    Terms terms;
    std::int64_t ttl_us;
    std::int64_t max_wait_us;
    std::int64_t acquire_timeout_us;
    std::uint32_t max_machine_ids;
    std::uint32_t slots;
    std::uint32_t leases_of_pool;
    bool local_registry; /* lives on server 0, by whose clock it goes */
    std::int64_t pace_us;
    std::int64_t strike_every_us;
    std::array<bool, kStrikes> strikes;
};

class World {
  public:
    World(std::uint64_t seed, Fault planted, Watch watch);

    /* Lives through up to so many events; false if a rule was broken. */
    bool run(std::uint64_t events);

    const std::string &failure() const { return checker_.failure(); }
    const Tally &tally() const { return tally_; }
    void print_trace() const;

  private:
    enum class Kind {
        SessionWakes,
        KeeperBegins,
        KeeperLooks,
        RegistryReceives,
        KeeperReceives,
        KeeperInstalls,
        KeeperFinishes,
        KeeperGivesUp,
        ServerStarts,
        RegistryStarts,
        FaultStrikes,
        WeatherTurns,
    };

    struct Event {
        std::int64_t at;
        std::uint64_t order;
        Kind kind;
        std::uint32_t server;
        std::uint32_t index; /* of a session or a message */
        std::uint64_t token; /* incarnation, or the session's */
    };

    struct Later {
        bool operator()(const Event &a, const Event &b) const
        {
            return a.at != b.at ? a.at > b.at : a.order > b.order;
        }
    };

    struct TraceLine {
        std::int64_t at;
        const char *what;
        std::uint32_t server;
        std::int64_t a;
        std::int64_t b;
    };

    /* world.cpp */
    Setting make_setting();
    void make_servers();
    void make_history();
    void dispatch(const Event &event);
    bool concerns_nobody(const Event &event) const;
    void schedule(std::int64_t in_us, Kind kind, std::uint32_t server, std::uint32_t index = 0,
                  std::uint64_t token = 0);
    void note(const char *what, std::uint32_t server = kNone, std::int64_t a = 0,
              std::int64_t b = 0);
    std::int64_t id_time(const Server &server) const;
    std::int64_t registry_clock_us() const;
    void start_server(Server *server);

    /* weather.cpp */
    bool may(Strike strike) const;
    bool happens(Strike strike, std::uint64_t one_in);
    void turn_weather();
    void strike();
    void strike_with(Strike strike, Server *server);
    void set_clock_right(Server *server);
    void stop(Server *server, bool cleanly);
    void stop_registry();
    void fail_over(bool lossy);
    void check_calm();
    void check_failed_call(const Server &server, const Session &session);
    bool settled() const;
    std::int64_t bound_us() const;

    /* session.cpp */
    void wake(Server *server, std::uint32_t index, std::int64_t in_us);
    void step_session(Server *server, std::uint32_t index);
    void begin_call(Session *session);
    void end_call(Server *server, std::uint32_t index, bool failed);
    void look(Server *server, std::uint32_t index);
    void attempt(Server *server, std::uint32_t index);
    bool issue(Server *server, Session *session, const Draw &drawn);
    void wait_for_clock(Server *server, std::uint32_t index, const Draw &drawn);
    void await_lease(Server *server, std::uint32_t index);
    void plant_before_draw(const Server &server, Session *session);
    bool begin_take(Server *server, std::uint32_t index);
    void step_take(Server *server, std::uint32_t index);
    std::int64_t pause_us();

    /* keeper.cpp */
    void make_request(Server *server, Session *session, bool wants_more);
    void request_and_go_on(Server *server, bool wants_more);
    bool launch_keeper(Server *server);
    void begin_keeper(Server *server);
    void keeper_looks(Server *server, std::uint64_t keeper);
    void send(Server *server, const Work &work, std::uint64_t keeper);
    void registry_receives(std::uint32_t index);
    void execute(Message *message);
    bool resume(const Server &server, std::uint64_t instance, Work *work);
    bool claim(const Server &server, std::uint64_t instance, Work *work);
    void keeper_receives(Server *server, std::uint32_t index);
    void publish_care(Server *server, const Work &work);
    void install(Server *server, std::uint32_t index, bool by_steps);
    std::uint32_t place_for(Server *server, const Work &work);
    void add_ref(Server *server, std::uint32_t slot);
    void finish(Server *server, std::uint32_t index);
    void abandon(Server *server, std::int64_t retry_in_us);
    void end_renewal(Server *server, std::uint64_t request, bool failed);
    void retire(Server *server, std::uint32_t slot);
    std::int64_t message_delay_us();

    Random random_;
    const Fault planted_;
    const Setting setting_;
    Checker checker_;
    Registry registry_;
    WallClock registry_clock_;
    bool registry_up_ = true;
    std::vector<Server> servers_;
    std::vector<Message> messages_;
    std::uint64_t keepers_ = 0;

    std::int64_t now_us_ = 0;        /* true time since the world began */
    std::int64_t began_unix_us_ = 0; /* and what a right clock showed then */
    bool calm_ = true;
    std::int64_t calm_since_us_ = 0;

    std::priority_queue<Event, std::vector<Event>, Later> queue_;
    std::uint64_t order_ = 0;
    std::vector<TraceLine> trace_;
    Tally tally_{};
};

} /* namespace snowflake::simulate */
