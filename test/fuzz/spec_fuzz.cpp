/*
 * spec_fuzz.cpp
 *     Feeds any bytes to the parser of layouts (libFuzzer).
 *
 * What it accepts must be a sound layout whose canonical spec parses to the same
 * layout; where it complains, it must point into the spec.
 */
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/layout_spec.h"

using namespace snowflake;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view spec(reinterpret_cast<const char *>(data), size);
    const ParsedSpec parsed = parse_layout(spec);
    if (!parsed.ok()) {
        CHECK(parsed.where.data() >= spec.data());
        CHECK(parsed.where.data() + parsed.where.size() <= spec.data() + spec.size());
        CHECK(*explain(parsed.problem) != '\0');
        return 0;
    }
    const Layout &layout = parsed.layout;
    CHECK(layout.bits() >= 1 && layout.bits() <= 63);
    CHECK(layout.timestamp.bits >= 1);
    CHECK(layout.machine_id.bits <= 31 && layout.sequence.bits <= 31);
    /* the fields cover the bits of an ID, each once */
    CHECK(layout.compose({layout.timestamp.max(), 0, 0}) +
              layout.compose({0, layout.machine_id.max(), 0}) +
              layout.compose({0, 0, layout.sequence.max()}) ==
          layout.max_id());

    const ParsedSpec again = parse_layout(format_layout(layout).view());
    CHECK(again.ok());
    CHECK(again.layout == layout);
    return 0;
}
