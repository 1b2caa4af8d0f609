/*
 * random.h
 *     The simulation's only source of chance. One seed gives the same numbers on
 *     every machine and compiler, which <random>'s distributions do not promise.
 *
 * xoshiro256** by Blackman and Vigna, seeded by splitmix64 (https://prng.di.unimi.it).
 */
#pragma once

#include <cstdint>

namespace snowflake::simulate {

constexpr std::uint64_t splitmix64(std::uint64_t *state) noexcept
{
    std::uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

class Random {
  public:
    explicit Random(std::uint64_t seed) noexcept
    {
        for (std::uint64_t &word : state_) {
            word = splitmix64(&seed);
        }
    }

    std::uint64_t next() noexcept
    {
        const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
        const std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = rotate(state_[3], 45);
        return result;
    }

    /* 0 .. count - 1; the slight bias of a remainder does no harm here. */
    std::uint64_t below(std::uint64_t count) noexcept { return next() % count; }

    /* low .. high */
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept
    {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }

    /* low .. high, every order of magnitude alike; low must be positive. */
    std::int64_t spread(std::int64_t low, std::int64_t high) noexcept
    {
        std::uint64_t doublings = 0;
        while (low << (doublings + 1) <= high) {
            doublings++;
        }
        const std::int64_t from = low << below(doublings + 1);
        return between(from, from * 2 < high ? from * 2 : high);
    }

    bool one_in(std::uint64_t count) noexcept { return below(count) == 0; }

    template <typename T, std::size_t count>
    const T &pick(const T (&of)[count]) noexcept
    {
        return of[below(count)];
    }

  private:
    static constexpr std::uint64_t rotate(std::uint64_t value, int by) noexcept
    {
        return (value << by) | (value >> (64 - by));
    }

    std::uint64_t state_[4] = {};
};

} /* namespace snowflake::simulate */
