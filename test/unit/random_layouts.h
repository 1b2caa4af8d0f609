/*
 * random_layouts.h
 *     Random layouts and numbers for property tests. Each run has another seed,
 *     which a failure prints; SNOWFLAKE_SEED=n repeats a run.
 */
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>

#include "core/layout.h"

namespace snowflake {

class Random {
  public:
    Random() : seed_(chosen_seed()), engine_(seed_) {}

    /* For SCOPED_TRACE. */
    std::string seed() const { return "SNOWFLAKE_SEED=" + std::to_string(seed_); }

    std::int64_t in(std::int64_t min, std::int64_t max)
    {
        return std::uniform_int_distribution<std::int64_t>(min, max)(engine_);
    }

    /* A number of any size: as many of few bits as of many. */
    std::int64_t up_to(std::int64_t max) { return in(0, max) >> in(0, 62); }

    /* Any layout that a spec can say. */
    Layout layout()
    {
        const int timestamp_bits = static_cast<int>(in(1, 63));
        const int left = 63 - timestamp_bits;
        const int machine_bits = static_cast<int>(in(0, left < 31 ? left : 31));
        const int still_left = left - machine_bits;
        const int sequence_bits = static_cast<int>(in(0, still_left < 31 ? still_left : 31));

        Layout layout{};
        layout.unit = static_cast<Unit>(in(0, 2));
        const std::int64_t unit = unit_ms(layout.unit);
        /* 0001-01-01 to 9999-12-31, a whole number of units */
        layout.epoch_ms = in(-62135596800000 / unit, 253402300799999 / unit) * unit;

        std::pair<BitField *, int> fields[] = {{&layout.timestamp, timestamp_bits},
                                               {&layout.machine_id, machine_bits},
                                               {&layout.sequence, sequence_bits}};
        std::shuffle(std::begin(fields), std::end(fields), engine_);
        int shift = timestamp_bits + machine_bits + sequence_bits;
        for (const auto &[field, bits] : fields) {
            shift -= bits;
            *field = make_field(bits, shift);
        }
        return layout;
    }

    Parts parts(const Layout &layout)
    {
        return {up_to(layout.timestamp.max()), up_to(layout.machine_id.max()),
                up_to(layout.sequence.max())};
    }

  private:
    static std::uint64_t chosen_seed()
    {
        /* nobody changes the environment meanwhile */
        const char *given = std::getenv("SNOWFLAKE_SEED");  // NOLINT(concurrency-mt-unsafe)
        return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    }

    std::uint64_t seed_;
    std::mt19937_64 engine_;
};

} /* namespace snowflake */
