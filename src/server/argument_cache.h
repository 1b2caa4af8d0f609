/*
 * argument_cache.h
 *     What a call site remembers from row to row: the meaning of arguments that
 *     are costly to look up and rarely change.
 */
#pragma once

#include <string_view>

#include "core/layout.h"
#include "server/compat.h"

extern "C" {
#include "access/tupdesc.h"
#include "pgtime.h"
}

namespace snowflake {

inline std::string_view view_of(const text *value)
{
    return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
}

/* A text argument as it was when its meaning was last looked up. */
struct RememberedText {
    char *bytes; /* null: not yet */
    Size size;
};

struct ArgumentCache {
    RememberedText layout_text;
    Layout layout;
    RememberedText zone_name;
    pg_tz *zone;
    TupleDesc result; /* of a function that returns a row */
};

/* The cache of this call site; zeroed at first. */
inline ArgumentCache &argument_cache(FunctionCallInfo fcinfo)
{
    FmgrInfo *flinfo = fcinfo->flinfo;
    if (flinfo->fn_extra == nullptr) {
        flinfo->fn_extra = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(ArgumentCache));
    }
    return *static_cast<ArgumentCache *>(flinfo->fn_extra);
}

/*
 * Always compares, since not even a parameter is constant for a call site:
 * PL/pgSQL evaluates one expression again and again with other values.
 */
inline bool is_remembered(const RememberedText &remembered, std::string_view value)
{
    return remembered.bytes != nullptr &&
           value == std::string_view(remembered.bytes, remembered.size);
}

/* Call it after the look-up has succeeded: a failed one must not be remembered. */
inline void remember(FunctionCallInfo fcinfo, RememberedText &remembered, std::string_view value)
{
    char *bytes =
        static_cast<char *>(MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, value.size() + 1));
    memcpy(bytes, value.data(), value.size());
    if (remembered.bytes != nullptr) {
        pfree(remembered.bytes);
    }
    remembered = {bytes, value.size()};
}

} /* namespace snowflake */
