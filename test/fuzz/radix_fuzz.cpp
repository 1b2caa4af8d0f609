/*
 * radix_fuzz.cpp
 *     Feeds any bytes to the parsers of base 62 and base 36 (libFuzzer).
 *
 * What they accept must be what the formatter writes, but for leading zeros.
 */
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "core/text_format.h"

using namespace snowflake;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    for (const Radix radix : {Radix::Base36, Radix::Base62}) {
        const ParsedRadix parsed = parse_radix(text, radix);
        if (!parsed.ok()) {
            CHECK(parsed.position < size || size == 0);
            continue;
        }
        CHECK(parsed.id >= 0);
        const RadixText full = format_radix(parsed.id, radix);
        CHECK(full.size() == radix_width(radix));
        CHECK(full.view().substr(full.size() - size) == text);
        CHECK(full.view().find_first_not_of('0') >= full.size() - size);
    }
    return 0;
}
