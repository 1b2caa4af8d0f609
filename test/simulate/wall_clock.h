/*
 * wall_clock.h
 *     A server's wall clock, which is wrong in all the ways in which they are.
 *
 * True time is the world's, in us; what a clock shows is Unix time in us.
 */
#pragma once

#include <cstdint>

#include "core/layout.h"

namespace snowflake::simulate {

class WallClock {
  public:
    std::int64_t shows_us(std::int64_t true_us) const noexcept
    {
        if (frozen_) {
            return shown_;
        }
        const std::int64_t elapsed = true_us - since_;
        return shown_ + elapsed + elapsed / 1000 * drift_per_mille_;
    }

    std::int64_t shows(const Layout &layout, std::int64_t true_us) const noexcept
    {
        return layout.from_unix_ms(floor_div(shows_us(true_us), 1000));
    }

    void set(std::int64_t true_us, std::int64_t unix_us) noexcept
    {
        shown_ = unix_us;
        since_ = true_us;
    }

    void step(std::int64_t true_us, std::int64_t by_us) noexcept
    {
        set(true_us, shows_us(true_us) + by_us);
    }

    void drift(std::int64_t true_us, std::int64_t per_mille) noexcept
    {
        set(true_us, shows_us(true_us));
        drift_per_mille_ = per_mille;
    }

    void freeze(std::int64_t true_us) noexcept
    {
        set(true_us, shows_us(true_us));
        frozen_ = true;
    }

    /* Goes on from where it stands. */
    void thaw(std::int64_t true_us) noexcept
    {
        set(true_us, shows_us(true_us));
        frozen_ = false;
    }

  private:
    std::int64_t shown_ = 0;
    std::int64_t since_ = 0;
    std::int64_t drift_per_mille_ = 0;
    bool frozen_ = false;
};

} /* namespace snowflake::simulate */
