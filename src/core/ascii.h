/*
 * ascii.h
 *     Classes of characters, whatever the locale says, and parts of a text.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 */
#pragma once

#include <cstddef>
#include <string_view>

namespace snowflake {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* What follows the first `count` characters, of which the text has at least that many. */
constexpr std::string_view after(std::string_view text, std::size_t count) noexcept
{
    text.remove_prefix(count);
    return text;
}

} /* namespace snowflake */
