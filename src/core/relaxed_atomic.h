/*
 * relaxed_atomic.h
 *     A number in shared memory that is watched while it changes.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 */
#pragma once

#include <atomic>

namespace snowflake {

/*
 * A value that one process writes and others may read at any time: as cheap as
 * a plain variable, never torn.
 */
template <typename T>
class RelaxedAtomic {
  public:
    T get() const noexcept { return value_.load(std::memory_order_relaxed); }
    void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
    void add(T by) noexcept { set(static_cast<T>(get() + by)); }

  private:
    std::atomic<T> value_;
};

} /* namespace snowflake */
