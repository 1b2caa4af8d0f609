/*
 * describe.cpp
 *     IDs and layouts for people to read.
 */
#include "core/layout_spec.h"
#include "core/text_format.h"
#include "read/id_time.h"
#include "read/text_format.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

extern "C" {
#include "lib/stringinfo.h"
}

namespace snowflake {
namespace {

struct NamedField {
    const char *name;
    BitField field;
    int64 value;
};

/* The bits of a field, under their place in the ID. */
void draw_bits(StringInfo out, const char *label, int indent, int bits, uint64 value)
{
    appendStringInfo(out, "%-11s %*s", label, indent, "");
    for (int bit = bits - 1; bit >= 0; --bit) {
        appendStringInfoChar(out, (value >> bit) & 1 ? '1' : '0');
    }
    appendStringInfoChar(out, '\n');
}

TimestampTz whole_seconds(TimestampTz timestamp)
{
    return floor_div(timestamp, USECS_PER_SEC) * USECS_PER_SEC;
}

/* How long ago a time was, as PostgreSQL's age() says it, to the second. */
const char *age_of(TimestampTz timestamp)
{
    const TimestampTz now = whole_seconds(GetCurrentTransactionStartTimestamp());
    const TimestampTz then = whole_seconds(timestamp);
    const bool past = then <= now;
    const Datum age = DirectFunctionCall2(timestamptz_age, TimestampTzGetDatum(past ? now : then),
                                          TimestampTzGetDatum(past ? then : now));
    const char *text = DatumGetCString(DirectFunctionCall1(interval_out, age));
    return psprintf("%s %s", text, past ? "ago" : "from now");
}

text *describe(const Layout &layout, int64 id)
{
    const Parts parts = layout.decompose(id);
    const TimestampTz timestamp = timestamp_of_id(layout, id);
    NamedField fields[] = {
        {"timestamp", layout.timestamp, parts.timestamp},
        {"machine ID", layout.machine_id, parts.machine_id},
        {"sequence", layout.sequence, parts.sequence},
    };

    StringInfoData out;
    initStringInfo(&out);
    appendStringInfo(&out, "%-11s " INT64_FORMAT "\n", "ID", id);
    const SpecText spec = format_layout(layout);
    const char *label = layout_label(layout);
    if (spec.view() == label) {
        appendStringInfo(&out, "%-11s %s\n", "layout", spec.c_str());
    } else {
        appendStringInfo(&out, "%-11s %s: %s\n", "layout", label, spec.c_str());
    }

    constexpr int kIdBits = 64;
    draw_bits(&out, "bits", 0, kIdBits, static_cast<uint64>(id));
    /* from the high bits down */
    for (int shift = kIdBits - 1; shift >= 0; --shift) {
        for (const NamedField &each : fields) {
            if (each.field.bits > 0 && each.field.shift == shift) {
                draw_bits(&out, each.name, kIdBits - shift - each.field.bits, each.field.bits,
                          static_cast<uint64>(each.value));
            }
        }
    }

    appendStringInfo(&out, "%-11s %s (%s)\n", "timestamp", timestamptz_to_str(timestamp),
                     age_of(timestamp));
    appendStringInfo(&out, "%-11s " INT64_FORMAT "\n", "machine ID", parts.machine_id);
    appendStringInfo(&out, "%-11s " INT64_FORMAT "\n", "sequence", parts.sequence);
    appendStringInfo(&out, "%-11s %s\n", "friendly", friendly_id(layout, id, nullptr).c_str());
    appendStringInfo(&out, "%-11s %s\n", "base 62", format_radix(id, Radix::Base62).c_str());
    appendStringInfo(&out, "%-11s %s", "base 36", format_radix(id, Radix::Base36).c_str());
    return cstring_to_text_with_len(out.data, out.len);
}

Datum text_datum(std::string_view value)
{
    return PointerGetDatum(cstring_to_text_with_len(value.data(), static_cast<int>(value.size())));
}

/* A limit of a layout's time; infinity where timestamptz ends before. */
Datum limit_datum(const Layout &layout, int64 id_time)
{
    TimestampTz timestamp = 0;
    bool past_end = false;
    if (!timestamp_of_id_time(layout, id_time, &timestamp, &past_end)) {
        TIMESTAMP_NOEND(timestamp);
    }
    return TimestampTzGetDatum(timestamp);
}

} /* namespace */
} /* namespace snowflake */

using namespace snowflake;

/* snowflake_describe(id bigint [, layout text]): STABLE, as it tells the ID's age */
SNOWFLAKE_FUNCTION(snowflake_describe)
{
    const Layout layout = layout_argument(fcinfo, 1);
    const int64 id = checked_id(layout, PG_GETARG_INT64(0));
    PG_RETURN_TEXT_P(describe(layout, id));
}

/* snowflake_layouts(): the presets, in the order of the columns of the view of that name */
SNOWFLAKE_FUNCTION(snowflake_layouts)
{
    InitMaterializedSRF(fcinfo, 0);
    const auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    for (const Preset &preset : presets()) {
        const Layout &layout = preset.layout;
        Datum values[] = {
            text_datum(preset.name),
            text_datum(format_layout(layout).view()),
            limit_datum(layout, 0),
            limit_datum(layout, layout.timestamp.max()),
            text_datum(unit_name(layout.unit)),
            Int32GetDatum(layout.timestamp.bits),
            Int32GetDatum(layout.machine_id.bits),
            Int32GetDatum(layout.sequence.bits),
            Int64GetDatum(layout.max_id()),
            BoolGetDatum(layout.can_generate()),
            text_datum(preset.source),
        };
        bool nulls[lengthof(values)] = {};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return static_cast<Datum>(0);
}
