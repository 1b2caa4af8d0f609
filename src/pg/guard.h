/*
 * guard.h
 *     The one door between SQL and C++.
 *
 * An exception that leaves a function called by PostgreSQL ends the whole server,
 * and ereport(ERROR) leaves C++ frames without running destructors. So:
 *
 * - every SQL function is declared by SNOWFLAKE_FUNCTION, which lets no exception
 *   out but reports it as an error;
 * - the core does not throw, and no object with a destructor is alive across a
 *   call that can ereport.
 */
#pragma once

#include <cstring>
#include <exception>

#include "pg/compat.h"

namespace snowflake {

template <Datum (*body)(FunctionCallInfo)>
inline Datum guarded(FunctionCallInfo fcinfo)
{
    char what[256] = "unknown exception";
    try {
        return body(fcinfo);
    } catch (const std::exception &e) {
        strlcpy(what, e.what(), sizeof(what));
    } catch (...) {
    }
    /* out here the exception object is gone, and ereport may jump */
    ereport(ERROR,
            (errcode(ERRCODE_INTERNAL_ERROR), errmsg("snowflake: unexpected exception: %s", what)));
}

} /* namespace snowflake */

/* Declares an SQL function; its body follows, with `fcinfo` as for any V1 function. */
#define SNOWFLAKE_FUNCTION(name)                                                     \
    static Datum name##_body(FunctionCallInfo fcinfo);                               \
    extern "C" {                                                                     \
    PG_FUNCTION_INFO_V1(name);                                                       \
    }                                                                                \
    Datum name(PG_FUNCTION_ARGS) { return snowflake::guarded<name##_body>(fcinfo); } \
    static Datum name##_body([[maybe_unused]] FunctionCallInfo fcinfo)
