/*
 * civil_time.h
 *     Calendar and wall clock time, and how it relates to Unix time.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception. The
 * calendar is the proleptic Gregorian one, as in ISO 8601, and knows no time
 * zones: whoever needs one shifts the Unix time before or after.
 */
#pragma once

#include <cstdint>

namespace snowflake {

struct CivilTime {
    int year;        /* 0 is 1 BC, as in ISO 8601 */
    int month;       /* 1 .. 12 */
    int day;         /* 1 .. 31 */
    int hour;        /* 0 .. 23 */
    int minute;      /* 0 .. 59 */
    int second;      /* 0 .. 59: Unix time has no leap seconds */
    int millisecond; /* 0 .. 999 */

    constexpr bool operator==(const CivilTime &other) const noexcept
    {
        return year == other.year && month == other.month && day == other.day &&
               hour == other.hour && minute == other.minute && second == other.second &&
               millisecond == other.millisecond;
    }
};

constexpr std::int64_t kMsPerSecond = 1000;
constexpr std::int64_t kMsPerMinute = 60 * kMsPerSecond;
constexpr std::int64_t kMsPerDay = 24 * 60 * kMsPerMinute;

/* Rounds towards minus infinity, so that times before the epoch keep their order. */
constexpr std::int64_t floor_div(std::int64_t value, std::int64_t by) noexcept
{
    return value / by - (value % by < 0 ? 1 : 0);
}

constexpr bool is_leap_year(int year) noexcept
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

constexpr int days_in_month(int year, int month) noexcept
{
    if (month == 2) {
        return is_leap_year(year) ? 29 : 28;
    }
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

namespace detail {

constexpr std::int64_t kDaysPerYear = 365;
constexpr std::int64_t kDaysPer4Years = 4 * kDaysPerYear + 1;
constexpr std::int64_t kDaysPerCentury = 25 * kDaysPer4Years - 1;
constexpr std::int64_t kDaysPer400Years = 4 * kDaysPerCentury + 1;

/* Days from 0001-01-01 to the first of January of a year. */
constexpr std::int64_t days_before_year(int year) noexcept
{
    const std::int64_t past = static_cast<std::int64_t>(year) - 1;
    return past * kDaysPerYear + floor_div(past, 4) - floor_div(past, 100) + floor_div(past, 400);
}

constexpr std::int64_t kUnixEpochDay = days_before_year(1970);

} /* namespace detail */

/* Civil time, in UTC, to Unix time in ms. The fields must be in range. */
constexpr std::int64_t unix_ms_of(const CivilTime &time) noexcept
{
    std::int64_t days = detail::days_before_year(time.year) - detail::kUnixEpochDay + time.day - 1;
    for (int month = 1; month < time.month; ++month) {
        days += days_in_month(time.year, month);
    }
    const std::int64_t seconds = (time.hour * 60 + time.minute) * 60 + time.second;
    return days * kMsPerDay + seconds * kMsPerSecond + time.millisecond;
}

/* Unix time in ms to civil time in UTC. */
constexpr CivilTime civil_time_of(std::int64_t unix_ms) noexcept
{
    const std::int64_t unix_day = floor_div(unix_ms, kMsPerDay);
    const std::int64_t remainder = unix_ms % kMsPerDay;
    const int ms_of_day = static_cast<int>(remainder < 0 ? remainder + kMsPerDay : remainder);

    /*
     * Take whole cycles of 400, 100, 4 and 1 years off the days since
     * 0001-01-01. The last century of a cycle, and the last year of four, is a
     * day longer than the others: hence the two caps at 3.
     */
    std::int64_t days = unix_day + detail::kUnixEpochDay;
    const std::int64_t cycles = floor_div(days, detail::kDaysPer400Years);
    days -= cycles * detail::kDaysPer400Years;
    const std::int64_t centuries =
        days / detail::kDaysPerCentury < 3 ? days / detail::kDaysPerCentury : 3;
    days -= centuries * detail::kDaysPerCentury;
    const std::int64_t fours = days / detail::kDaysPer4Years;
    days -= fours * detail::kDaysPer4Years;
    const std::int64_t years = days / detail::kDaysPerYear < 3 ? days / detail::kDaysPerYear : 3;
    days -= years * detail::kDaysPerYear;

    CivilTime time{};
    time.year = static_cast<int>(cycles * 400 + centuries * 100 + fours * 4 + years + 1);
    time.month = 1;
    time.day = static_cast<int>(days) + 1;
    while (time.day > days_in_month(time.year, time.month)) {
        time.day -= days_in_month(time.year, time.month);
        ++time.month;
    }
    time.hour = ms_of_day / 3600000;
    time.minute = ms_of_day / 60000 % 60;
    time.second = ms_of_day / 1000 % 60;
    time.millisecond = ms_of_day % 1000;
    return time;
}

static_assert(unix_ms_of({1970, 1, 1, 0, 0, 0, 0}) == 0, "the Unix epoch");
static_assert(unix_ms_of({2010, 11, 4, 1, 42, 54, 657}) == 1288834974657, "Twitter's epoch");
static_assert(civil_time_of(-1) == CivilTime{1969, 12, 31, 23, 59, 59, 999},
              "before the Unix epoch");

} /* namespace snowflake */
