/*
 * conninfo.cpp
 *     See conninfo.h.
 */
#include "server/conninfo.h"

#include <cstring>

#include "libpq-fe.h"

namespace snowflake {

char *conninfo_problem(const char *conninfo)
{
    char *problem = nullptr;
    PQconninfoOption *options = PQconninfoParse(conninfo, &problem);
    if (options != nullptr) {
        PQconninfoFree(options);
        return nullptr;
    }
    return problem == nullptr ? strdup("out of memory") : problem;
}

} /* namespace snowflake */
