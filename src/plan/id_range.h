/*
 * id_range.h
 *     A comparison of an ID's time with another, as comparisons of the ID itself.
 */
#pragma once

#include "plan/time_of_id.h"

namespace snowflake {

/*
 * The clauses that together mean the same as a comparison of an ID's time, which is
 * one of an AND's; none if it is no such comparison, or they cannot be had.
 */
List *range_of(const Target &target, Node *clause, List *clauses);

} /* namespace snowflake */
