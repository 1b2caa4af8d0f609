/*
 * friendly_fuzz.cpp
 *     Feeds any bytes to the parser of the friendly form (libFuzzer). The first
 *     byte chooses the layout.
 *
 * What it accepts must be what the formatter writes.
 */
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/layout_spec.h"
#include "core/text_format.h"

using namespace snowflake;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    if (size == 0) {
        return 0;
    }
    const Layout &layout = presets().first[data[0] % presets().count].layout;
    const std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
    const ParsedFriendly parsed = parse_friendly(text, layout);
    if (!parsed.ok()) {
        CHECK(parsed.where.data() >= text.data());
        CHECK(parsed.where.data() + parsed.where.size() <= text.data() + text.size());
        return 0;
    }
    const Friendly &friendly = parsed.friendly;
    CHECK(friendly.machine_id >= 0 && friendly.machine_id <= layout.machine_id.max());
    CHECK(friendly.sequence >= 0 && friendly.sequence <= layout.sequence.max());
    CHECK(format_friendly(friendly, layout.unit).view() == text);
    return 0;
}
