/*
 * conninfo.h
 *     Connection strings.
 */
#pragma once

namespace snowflake {

/* What is wrong with a conninfo, malloc'ed by libpq; nullptr if nothing is. */
char *conninfo_problem(const char *conninfo);

} /* namespace snowflake */
