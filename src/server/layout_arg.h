/*
 * layout_arg.h
 *     Layouts as arguments of SQL functions, and as users see them in messages.
 */
#pragma once

#include <string_view>

#include "core/layout.h"
#include "server/compat.h"

namespace snowflake {

/* A preset's name or a spec in, its layout out. Anything else is reported as an error. */
Layout layout_from_text(std::string_view text);

/* The same without an error: false if the text is anything else. */
bool try_layout_from_text(std::string_view text, Layout *layout);

/*
 * The layout that a function's argument names, looked up again only when it
 * changes; the built-in one where the call has no such argument.
 */
Layout layout_argument(FunctionCallInfo fcinfo, int argno);

/* A layout as messages call it: its preset's name or else its spec. Allocated. */
char *layout_label(const Layout &layout);

} /* namespace snowflake */
