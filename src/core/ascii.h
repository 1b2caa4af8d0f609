/*
 * ascii.h
 *     Classes of characters, whatever the locale says.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 */
#pragma once

namespace snowflake {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

constexpr bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

} /* namespace snowflake */
