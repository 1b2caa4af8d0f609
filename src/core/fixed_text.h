/*
 * fixed_text.h
 *     A short text of bounded length, by value.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 * Trivially destructible, so it may be alive across a call that does not return.
 */
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace snowflake {

/* Holds up to `capacity` characters, and a 0 byte after them. */
template <std::size_t capacity>
class FixedText {
  public:
    constexpr std::string_view view() const noexcept { return {bytes_, size_}; }
    constexpr const char *c_str() const noexcept { return bytes_; }
    constexpr std::size_t size() const noexcept { return size_; }

    constexpr void append(char c) noexcept
    {
        assert(size_ < capacity);
        bytes_[size_++] = c;
    }

    constexpr void append(std::string_view text) noexcept
    {
        for (const char c : text) {
            append(c);
        }
    }

    /* Decimal, with leading zeros up to `width` digits. */
    constexpr void append_number(std::uint64_t value, int width = 1) noexcept
    {
        char reversed[20]{}; /* of 2^64 - 1 */
        int digits = 0;
        for (; value > 0; value /= 10) {
            reversed[digits++] = static_cast<char>('0' + value % 10);
        }
        for (int i = digits; i < width; ++i) {
            append('0');
        }
        while (digits > 0) {
            append(reversed[--digits]);
        }
    }

  private:
    char bytes_[capacity + 1]{};
    std::size_t size_ = 0;
};

} /* namespace snowflake */
