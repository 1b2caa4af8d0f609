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

#include "server/compat.h"

namespace snowflake {

/* The message of the latest exception: not on the stack, which every call would pay for. */
inline char exception_message[256];

[[noreturn]] __attribute__((cold)) inline void report_exception()
{
    ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                    errmsg("snowflake: unexpected exception: %s", exception_message)));
    pg_unreachable();
}

template <Datum (*body)(FunctionCallInfo)>
inline Datum guarded(FunctionCallInfo fcinfo)
{
    try {
        return body(fcinfo);
    } catch (const std::exception &e) {
        strlcpy(exception_message, e.what(), sizeof(exception_message));
    } catch (...) {
        strlcpy(exception_message, "unknown exception", sizeof(exception_message));
    }
    report_exception(); /* out here the exception object is gone, and ereport may jump */
}

} /* namespace snowflake */

/* Declares an SQL function; its body follows, with `fcinfo` as for any V1 function. */
#define SNOWFLAKE_FUNCTION(name)                                                     \
    static Datum name##_body(FunctionCallInfo fcinfo);                               \
    extern "C" {                                                                     \
    SNOWFLAKE_EXPORT Datum name(PG_FUNCTION_ARGS);                                   \
    SNOWFLAKE_EXPORT const Pg_finfo_record *CppConcat(pg_finfo_, name)(void);        \
    PG_FUNCTION_INFO_V1(name);                                                       \
    }                                                                                \
    Datum name(PG_FUNCTION_ARGS) { return snowflake::guarded<name##_body>(fcinfo); } \
    static Datum name##_body([[maybe_unused]] FunctionCallInfo fcinfo)
