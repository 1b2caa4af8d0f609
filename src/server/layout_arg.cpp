/*
 * layout_arg.cpp
 *     See layout_arg.h.
 */
#include "server/layout_arg.h"

#include "core/layout_spec.h"
#include "server/argument_cache.h"

extern "C" {
#include "mb/pg_wchar.h"
}

namespace snowflake {
namespace {

constexpr const char *kHint =
    "A layout is a name from the view snowflake_layouts, or three words such as "
    "\"epoch=2024-01-01T00:00:00Z unit=ms fields=t41,m10,s12\".";

[[noreturn]] void report_unknown_name(std::string_view name)
{
    ereport(ERROR,
            (errcode(ERRCODE_UNDEFINED_OBJECT),
             errmsg("layout \"%.*s\" does not exist", static_cast<int>(name.size()), name.data()),
             errhint("%s", kHint)));
}

[[noreturn]] void report_bad_spec(std::string_view spec, const ParsedSpec &parsed)
{
    const int position = static_cast<int>(parsed.where.data() - spec.data());
    const bool at_end = parsed.where.empty();
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid layout \"%.*s\"", static_cast<int>(spec.size()), spec.data()),
                    at_end ? errdetail("%s", explain(parsed.problem))
                           : errdetail("Error at \"%.*s\", character %d: %s",
                                       static_cast<int>(parsed.where.size()), parsed.where.data(),
                                       pg_mbstrlen_with_len(spec.data(), position) + 1,
                                       explain(parsed.problem)),
                    errhint("%s", kHint)));
}

} /* namespace */

Layout layout_from_text(std::string_view text)
{
    const Preset *preset = find_preset(text);
    if (preset != nullptr) {
        return preset->layout;
    }
    if (text.find('=') == std::string_view::npos) {
        report_unknown_name(text);
    }
    const ParsedSpec parsed = parse_layout(text);
    if (!parsed.ok()) {
        report_bad_spec(text, parsed);
    }
    return parsed.layout;
}

bool try_layout_from_text(std::string_view text, Layout *layout)
{
    const Preset *preset = find_preset(text);
    if (preset != nullptr) {
        *layout = preset->layout;
        return true;
    }
    const ParsedSpec parsed = parse_layout(text);
    *layout = parsed.layout;
    return parsed.ok();
}

Layout layout_argument(FunctionCallInfo fcinfo, int argno)
{
    if (PG_NARGS() <= argno) {
        return kDefaultLayout;
    }
    ArgumentCache &cache = argument_cache(fcinfo);
    const std::string_view given = view_of(PG_GETARG_TEXT_PP(argno));
    if (!is_remembered(cache.layout_text, given)) {
        cache.layout = layout_from_text(given);
        remember(fcinfo, cache.layout_text, given);
    }
    return cache.layout;
}

char *layout_label(const Layout &layout)
{
    const Preset *preset = find_preset(layout);
    const SpecText spec = format_layout(layout);
    const std::string_view label = preset != nullptr ? preset->name : spec.view();
    return pnstrdup(label.data(), label.size());
}

} /* namespace snowflake */
