/*
 * time_predicates.h
 *     Comparisons of snowflake_timestamp(id) with times, as ranges of IDs.
 */
#pragma once

namespace snowflake {

void install_planner_hooks();

} /* namespace snowflake */
