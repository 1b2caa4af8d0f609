/*
 * core_bench.cpp
 *     The core without a server: what an ID costs, by threads, on one lease and on
 *     leases of their own.
 *
 * The layout has a sequence so wide that no unit is ever used up (t37,m5,s21): so it is
 * the cost of the core that shows, and not the 4096 IDs a millisecond of the usual
 * layout, which CapOfOneMachineId measures by itself.
 */
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "core/draw.h"

namespace snowflake {
namespace {

constexpr int kMostThreads = 64;
constexpr std::int64_t kForever = std::int64_t{1} << 36;
constexpr Layout kWide = make_layout(kDefaultEpochMs, Unit::Millisecond, 37, 5, 21);

std::int64_t unix_ms()
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

/* An instance's leases, one for each machine ID. */
struct Leases {
    std::unique_ptr<Lease[]> leases{new Lease[kMostThreads]};
    std::vector<LeaseRef> refs;

    Leases(const Layout &layout, std::uint32_t count)
    {
        const std::int64_t now = layout.from_unix_ms(unix_ms());
        for (std::uint32_t i = 0; i < count; i++) {
            Lease &lease = leases[i];
            lease.clear();
            lease.install(i % 32, layout.first_tick(now), kForever, kForever);
            refs.push_back({i, i % 32, lease.version.load()});
        }
    }
};

/* What a session does for each ID, waits included. */
std::int64_t next_id(GeneratorState &state, const Source &source)
{
    const Layout &layout = *source.layout;
    for (;;) {
        const std::int64_t now = layout.from_unix_ms(unix_ms());
        const std::int64_t id =
            draw_from_run(state, layout, source.leases[state.lease_index.get()], now);
        if (id >= 0) {
            return id;
        }
        const Draw drawn = draw(state, source, now, 1);
        if (drawn.verdict == Verdict::Issued) {
            return drawn.id;
        }
        if (drawn.verdict != Verdict::Wait) {
            std::abort(); /* the leases above last forever */
        }
    }
}

void draw_ids(benchmark::State &bench, const Layout &layout, Lease *leases, const LeaseRef *refs)
{
    GeneratorState state{};
    state.clear();
    const Source source{&layout, leases, refs, 1, 1000};
    while (bench.KeepRunning()) {
        benchmark::DoNotOptimize(next_id(state, source));
    }
    bench.SetItemsProcessed(bench.iterations());
}

/* The yardsticks: the clock that every ID reads, and with it one shared atomic step an ID. */
void ClockAlone(benchmark::State &bench)
{
    while (bench.KeepRunning()) {
        benchmark::DoNotOptimize(unix_ms());
    }
    bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK(ClockAlone)->ThreadRange(1, kMostThreads)->UseRealTime();

void ClockAndSharedCounter(benchmark::State &bench)
{
    alignas(kCacheLine) static std::atomic<std::uint64_t> counter{0};
    while (bench.KeepRunning()) {
        benchmark::DoNotOptimize(unix_ms());
        benchmark::DoNotOptimize(counter.fetch_add(1));
    }
    bench.SetItemsProcessed(bench.iterations());
}
BENCHMARK(ClockAndSharedCounter)->ThreadRange(1, kMostThreads)->UseRealTime();

void OneWord(benchmark::State &bench)
{
    static Leases shared(kWide, 1);
    draw_ids(bench, kWide, shared.leases.get(), shared.refs.data());
}
BENCHMARK(OneWord)->ThreadRange(1, kMostThreads)->UseRealTime();

void SeparateWords(benchmark::State &bench)
{
    static Leases separate(kWide, kMostThreads);
    draw_ids(bench, kWide, separate.leases.get(), &separate.refs[bench.thread_index()]);
}
BENCHMARK(SeparateWords)->ThreadRange(1, kMostThreads)->UseRealTime();

void CapOfOneMachineId(benchmark::State &bench)
{
    static Leases shared(kDefaultLayout, 1);
    draw_ids(bench, kDefaultLayout, shared.leases.get(), shared.refs.data());
    bench.counters["of_cap"] = benchmark::Counter(
        static_cast<double>(bench.iterations()) / 4096000.0, benchmark::Counter::kIsRate);
}
BENCHMARK(CapOfOneMachineId)->ThreadRange(1, kMostThreads)->UseRealTime();

} /* namespace */
} /* namespace snowflake */

BENCHMARK_MAIN();
