/*
 * sql_function.h
 *     How an SQL function is declared.
 *
 * The library is compiled without exceptions and links with no C++ library, so none can leave a
 * function that PostgreSQL calls, which would end the whole server. And ereport(ERROR) leaves
 * C++ frames without running destructors, so no object with a destructor is alive across a call
 * that can ereport.
 */
#pragma once

#include "server/compat.h"

/* Declares an SQL function; its body follows, with `fcinfo` as for any V1 function. */
#define SNOWFLAKE_FUNCTION(name)                                              \
    extern "C" {                                                              \
    SNOWFLAKE_EXPORT Datum name(PG_FUNCTION_ARGS);                            \
    SNOWFLAKE_EXPORT const Pg_finfo_record *CppConcat(pg_finfo_, name)(void); \
    PG_FUNCTION_INFO_V1(name);                                                \
    }                                                                         \
    Datum name([[maybe_unused]] PG_FUNCTION_ARGS)
