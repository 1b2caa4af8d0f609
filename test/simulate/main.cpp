/*
 * main.cpp
 *     Simulates many servers that draw IDs while everything goes wrong.
 *
 * What is simulated, and what of it is real
 * -----------------------------------------
 * The real core draws the IDs (draw.*, lease.h) and decides about leases (lease_policy.h).
 * Around it are models: servers with sessions and keepers, wall clocks that are
 * skewed, drift, stop and step by anything from a millisecond to 40 years, messages
 * that are slow, lost and repeated, crashes, stalls, and a registry that restarts
 * and fails over. Each world has its own layout, settings, and choice of faults, all
 * of them from its seed; the same seed is the same world on every machine.
 *
 * What is checked, at every step
 * ------------------------------
 * - No ID comes twice.
 * - An ID lies in times that the registry has durably granted to its instance with
 *   its machine ID; a horizon never goes down, a new holder starts at or above the
 *   old one, and a lease is claimed after it has expired and renewed by its holder.
 * - An ID's timestamp is a time that the server's clock showed during the call.
 * - The IDs of a session increase, unless the clock is further behind the last one
 *   than anyone would wait for.
 * - In calm, after the last fault, a session gets its IDs within a bound, and a call
 *   fails only where the clock is out of the layout's range or no machine ID is free.
 *
 * The promise is for a registry that keeps what it committed. A failover that loses
 * commits may let IDs of those very leases come twice, within the lost horizon;
 * such collisions are counted and shown. Any other is a failure: see checker.h.
 */
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>

#include "world.h"

namespace snowflake::simulate {
namespace {

constexpr std::uint64_t kEventsPerWorld = 25000;
constexpr std::uint64_t kDefaultEvents = 1000000;
constexpr std::uint64_t kMutantWorlds = 400;
constexpr std::uint64_t kMutantWorldsByIds = 20;

struct Options {
    std::uint64_t seeds = 0;
    std::uint64_t events = 0;
    std::uint64_t seed = 0;
    bool has_seed = false;
    bool mutants = false;
    const char *old_seeds = nullptr;
};

struct Score {
    std::uint64_t passed = 0;
    std::uint64_t failed = 0;
};

/* Runs one world and says how it failed, if it did. */
void run_world(std::uint64_t seed, std::uint64_t events, Tally *tally, Score *score)
{
    World world(seed, Fault::None, Watch::Everything);
    const bool good = world.run(events);
    tally->add(world.tally());
    (good ? score->passed : score->failed)++;
    if (good) {
        return;
    }
    std::printf("\nseed %" PRIu64 " failed after %" PRIu64 " events: %s\n", seed,
                world.tally().events, world.failure().c_str());
    world.print_trace();
    std::printf("  replay: make simulate SEED=%" PRIu64 " EVENTS=%" PRIu64 "\n\n", seed,
                world.tally().events);
}

/* Lines of the file: a seed, how many events, and what it once found. */
bool run_old_seeds(const char *path, Tally *tally, Score *score)
{
    std::ifstream file(path);
    if (!file) {
        std::cerr << "simulate: could not open \"" << path << "\"\n";
        return false;
    }
    std::uint64_t count = 0;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::uint64_t seed = 0;
        std::uint64_t events = 0;
        if (line[0] != '#' && words >> seed >> events) {
            run_world(seed, events, tally, score);
            count++;
        }
    }
    std::printf("%" PRIu64 " seeds that once failed\n", count);
    return count > 0;
}

void print_tally(const Tally &tally)
{
    const struct {
        const char *what;
        std::uint64_t count;
    } lines[] = {
        {"events", tally.events},
        {"IDs checked", tally.ids},
        {"calls", tally.calls},
        {"  of them failed, in bad weather or for want of a machine ID", tally.calls_failed},
        {"  of them in calm, each served within its bound", tally.calls_in_calm},
        {"claims", tally.claims},
        {"renewals", tally.renewals},
        {"  and refused, the lease being another's", tally.renewals_refused},
        {"clocks set or stopped", tally.clock_steps},
        {"servers crashed", tally.crashes},
        {"servers shut down and started", tally.shutdowns},
        {"  and went on with a machine ID", tally.resumed},
        {"servers stalled", tally.stalls},
        {"keepers died", tally.keepers_died},
        {"messages lost", tally.messages_lost},
        {"registry restarts", tally.registry_restarts},
        {"registry failovers", tally.failovers},
        {"  of them with commits lost", tally.lossy_failovers},
        {"  commits lost in these", tally.commits_lost},
        {"  IDs that came twice within a lost horizon", tally.collisions},
        {"  in so many of the worlds", tally.worlds_with_collisions},
    };
    for (const auto &line : lines) {
        std::printf("%12" PRIu64 "  %s\n", line.count, line.what);
    }
    std::printf("%9" PRId64 " ms  longest time to an ID in calm\n",
                tally.longest_calm_wait_us / 1000);
}

/* How many events it takes to find a planted fault, over the seeds 1, 2, ...; 0: not found. */
std::uint64_t events_to_find(Fault fault, Watch watch, std::uint64_t worlds, std::string *how)
{
    std::uint64_t events = 0;
    for (std::uint64_t seed = 1; seed <= worlds; seed++) {
        World world(seed, fault, watch);
        const bool good = world.run(kEventsPerWorld);
        events += world.tally().events;
        if (!good) {
            *how = world.failure();
            return events;
        }
    }
    return 0;
}

Score run_mutants()
{
    Score score;
    std::printf("%-28s %10s %12s   %s\n", "planted fault", "found after", "by IDs alone",
                "what was broken");
    for (const FaultInfo &info : kFaults) {
        std::string how = "NOT FOUND";
        std::string by_ids;
        const std::uint64_t all =
            events_to_find(info.fault, Watch::Everything, kMutantWorlds, &how);
        const std::uint64_t ids =
            events_to_find(info.fault, Watch::IdsAlone, kMutantWorldsByIds, &by_ids);
        (all > 0 ? score.passed : score.failed)++;
        std::printf("%-28s %11" PRIu64 " %12s   %s\n", std::string(info.name).c_str(), all,
                    ids > 0 ? std::to_string(ids).c_str() : "-",
                    how.substr(0, how.find(" (")).c_str());
    }
    return score;
}

Score run_worlds(const Options &options)
{
    Score score;
    Tally tally{};
    const bool replay = options.has_seed && options.seeds == 0;
    const std::uint64_t events = options.events > 0  ? options.events
                                 : replay            ? kEventsPerWorld
                                 : options.seeds > 0 ? options.seeds * kEventsPerWorld
                                                     : kDefaultEvents;
    const std::uint64_t seeds = replay ? 1
                                : options.seeds > 0
                                    ? options.seeds
                                    : std::max<std::uint64_t>(events / kEventsPerWorld, 1);
    const std::uint64_t first = options.has_seed ? options.seed : std::random_device{}();
    const std::uint64_t events_per_world = (events + seeds - 1) / seeds;
    if (options.old_seeds != nullptr && !replay &&
        !run_old_seeds(options.old_seeds, &tally, &score)) {
        score.failed++;
    }
    std::printf("seeds %" PRIu64 " to %" PRIu64 ", up to %" PRIu64 " events each\n", first,
                first + seeds - 1, events_per_world);
    for (std::uint64_t seed = first; seed < first + seeds; seed++) {
        run_world(seed, events_per_world, &tally, &score);
    }
    print_tally(tally);
    return score;
}

bool parse(int argc, char **argv, Options *options)
{
    for (int i = 1; i < argc; i++) {
        const std::string_view argument = argv[i];
        const std::string_view name = argument.substr(0, argument.find('='));
        const char *value = name.size() < argument.size() ? argv[i] + name.size() + 1 : "";
        if (name == "--seeds") {
            options->seeds = std::strtoull(value, nullptr, 10);
        } else if (name == "--events") {
            options->events = std::strtoull(value, nullptr, 10);
        } else if (name == "--seed") {
            options->has_seed = *value != '\0';
            options->seed = std::strtoull(value, nullptr, 10);
        } else if (name == "--old-seeds") {
            options->old_seeds = value;
        } else if (name == "--mutants") {
            options->mutants = true;
        } else {
            std::cerr << "usage: " << argv[0]
                      << " [--seeds=N] [--events=N] [--seed=X] [--old-seeds=FILE] [--mutants]\n";
            return false;
        }
    }
    return true;
}

} /* namespace */
} /* namespace snowflake::simulate */

int main(int argc, char **argv)
{
    using namespace snowflake::simulate;
    Options options;
    if (!parse(argc, argv, &options)) {
        return 2;
    }
    const Score score = options.mutants ? run_mutants() : run_worlds(options);
    std::printf("%" PRIu64 " passed, %" PRIu64 " failed\n", score.passed, score.failed);
    return score.failed == 0 ? 0 : 1;
}
