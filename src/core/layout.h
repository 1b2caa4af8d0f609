/*
 * layout.h
 *     How an ID's 63 bits are divided, and how ID time relates to Unix time.
 *
 * Part of the pure core: no PostgreSQL header, no allocation, no exception.
 *
 * The built-in layout, from the high bit down (Twitter's original division,
 * https://github.com/twitter-archive/snowflake, with an epoch of our own):
 *
 *     0 | timestamp: 41 bits, ms since 2026-01-01Z | machine ID: 10 | sequence: 12
 *
 * Everything below derives from a Layout's widths; no width or mask is written
 * down a second time.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/civil_time.h"

namespace snowflake {

/* How long one step of ID time lasts. */
enum class Unit : std::uint8_t { Millisecond, Centisecond, Second };

constexpr std::int64_t unit_ms(Unit unit) noexcept
{
    return unit == Unit::Millisecond ? 1 : unit == Unit::Centisecond ? 10 : 1000;
}

/* As in a layout's spec. */
constexpr std::string_view unit_name(Unit unit) noexcept
{
    return unit == Unit::Millisecond ? "ms" : unit == Unit::Centisecond ? "10ms" : "s";
}

/* One field's place in an ID. */
struct BitField {
    std::uint8_t bits;
    std::uint8_t shift;

    constexpr std::uint64_t mask() const noexcept { return (std::uint64_t{1} << bits) - 1; }
    constexpr std::int64_t max() const noexcept { return static_cast<std::int64_t>(mask()); }
    constexpr std::uint64_t place(std::uint64_t value) const noexcept { return value << shift; }
    constexpr std::uint64_t extract(std::uint64_t id) const noexcept
    {
        return (id >> shift) & mask();
    }
};

/* A field without bits has no place, so that layouts that mean the same are equal. */
constexpr BitField make_field(int bits, int shift) noexcept
{
    return {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits > 0 ? shift : 0)};
}

/* The three fields of an ID, as numbers. */
struct Parts {
    std::int64_t timestamp; /* in ID time: units since the epoch */
    std::int64_t machine_id;
    std::int64_t sequence;
};

struct Layout {
    std::int64_t epoch_ms; /* Unix time, in ms, of ID time 0 */
    Unit unit;
    BitField timestamp;
    BitField machine_id;
    BitField sequence;

    /* The number of bits an ID may use; all higher ones are 0. */
    constexpr int bits() const noexcept { return timestamp.bits + machine_id.bits + sequence.bits; }

    constexpr std::int64_t max_id() const noexcept
    {
        return static_cast<std::int64_t>((std::uint64_t{1} << bits()) - 1);
    }

    /* Does a later timestamp mean a greater ID? */
    constexpr bool sorts_by_time() const noexcept
    {
        return timestamp.shift == machine_id.bits + sequence.bits;
    }

    /*
     * An ID can be generated only where a later timestamp means a greater ID
     * and there is a machine ID to hold, of which the number fits an SQL integer.
     */
    constexpr bool can_generate() const noexcept
    {
        return machine_id.bits > 0 && machine_id.bits < 31 && sorts_by_time() &&
               timestamp.bits + sequence.bits <= 63;
    }

    constexpr bool operator==(const Layout &other) const noexcept
    {
        return epoch_ms == other.epoch_ms && unit == other.unit &&
               timestamp.bits == other.timestamp.bits && timestamp.shift == other.timestamp.shift &&
               machine_id.bits == other.machine_id.bits &&
               machine_id.shift == other.machine_id.shift && sequence.bits == other.sequence.bits &&
               sequence.shift == other.sequence.shift;
    }

    /* Can this be an ID of this layout? */
    constexpr bool contains(std::int64_t id) const noexcept { return id >= 0 && id <= max_id(); }

    /* Fields in, ID out. Each field must be in 0 .. its max(). */
    constexpr std::int64_t compose(const Parts &parts) const noexcept
    {
        return static_cast<std::int64_t>(
            timestamp.place(static_cast<std::uint64_t>(parts.timestamp)) |
            machine_id.place(static_cast<std::uint64_t>(parts.machine_id)) |
            sequence.place(static_cast<std::uint64_t>(parts.sequence)));
    }

    /* ID in, fields out. The ID must be in 0 .. max_id(). */
    constexpr Parts decompose(std::int64_t id) const noexcept
    {
        const auto bits = static_cast<std::uint64_t>(id);
        return {static_cast<std::int64_t>(timestamp.extract(bits)),
                static_cast<std::int64_t>(machine_id.extract(bits)),
                static_cast<std::int64_t>(sequence.extract(bits))};
    }

    /* A tick (timestamp << sequence bits | sequence) and a machine ID in, ID out. */
    constexpr std::int64_t compose_tick(std::uint64_t tick, std::uint64_t machine) const noexcept
    {
        return static_cast<std::int64_t>(timestamp.place(tick >> sequence.bits) |
                                         machine_id.place(machine) |
                                         sequence.place(tick & sequence.mask()));
    }

    constexpr std::int64_t tick_time(std::uint64_t tick) const noexcept
    {
        return static_cast<std::int64_t>(tick >> sequence.bits);
    }

    constexpr std::uint64_t first_tick(std::int64_t id_time) const noexcept
    {
        return static_cast<std::uint64_t>(id_time) << sequence.bits;
    }

    /*
     * Unix time in ms to ID time, rounded down. Negative before the epoch,
     * above timestamp.max() after the end of the layout's time. What would
     * overflow stays at the nearest end of int64.
     */
    constexpr std::int64_t from_unix_ms(std::int64_t unix_ms) const noexcept
    {
        std::int64_t since_epoch = 0;
        if (__builtin_sub_overflow(unix_ms, epoch_ms, &since_epoch)) {
            since_epoch = saturated(unix_ms < 0);
        }
        switch (unit) {
            case Unit::Millisecond:
                return since_epoch;
            case Unit::Centisecond:
                return floor_div(since_epoch, 10);
            case Unit::Second:
                break;
        }
        return floor_div(since_epoch, 1000);
    }

    /*
     * ID time to the Unix time, in ms, at which that unit begins. Wide timestamps
     * last longer than int64 can count ms: those stay at its end.
     */
    constexpr std::int64_t to_unix_ms(std::int64_t id_time) const noexcept
    {
        std::int64_t since_epoch = 0;
        std::int64_t unix_ms = 0;
        if (__builtin_mul_overflow(id_time, unit_ms(unit), &since_epoch) ||
            __builtin_add_overflow(since_epoch, epoch_ms, &unix_ms)) {
            return saturated(id_time < 0);
        }
        return unix_ms;
    }

  private:
    static constexpr std::int64_t saturated(bool negative) noexcept
    {
        return negative ? std::numeric_limits<std::int64_t>::min()
                        : std::numeric_limits<std::int64_t>::max();
    }
};

/* Builds a layout with the fields in the usual order: timestamp, machine ID, sequence. */
constexpr Layout make_layout(std::int64_t epoch_ms, Unit unit, int timestamp_bits, int machine_bits,
                             int sequence_bits) noexcept
{
    return {epoch_ms, unit, make_field(timestamp_bits, machine_bits + sequence_bits),
            make_field(machine_bits, sequence_bits), make_field(sequence_bits, 0)};
}

/* 2026-01-01T00:00:00Z */
constexpr std::int64_t kDefaultEpochMs = 1767225600000;

constexpr Layout kDefaultLayout = make_layout(kDefaultEpochMs, Unit::Millisecond, 41, 10, 12);

static_assert(kDefaultLayout.bits() == 63, "the sign bit of a bigint stays 0");
static_assert(kDefaultLayout.can_generate(), "the built-in generator generates");

} /* namespace snowflake */
