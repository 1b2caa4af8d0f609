/*
 * settings.h
 *     The settings of the extension (snowflake.*), as C++ variables.
 */
#pragma once

#include "core/layout.h"
#include "core/lease_policy.h"
#include "core/machine_ids.h"

namespace snowflake {

extern int lease_ttl_ms;
extern int acquire_timeout_ms;
extern int max_clock_wait_ms;
extern int max_machine_ids;

/* The parsed snowflake.machine_ids. */
const MachineIdSet &machine_ids();

/* The shared registry's conninfo; empty: each database is its own. */
const char *registry_conninfo();
bool registry_is_shared();

/* Calls `listener` at each change of snowflake.registry. */
void on_registry_change(void (*listener)());

/* Changes whenever snowflake.machine_ids does. */
std::uint32_t machine_ids_version();

/* The settings as the rules of a generator see them: in its unit of ID time, rounded up. */
Terms terms_for(const Layout &layout);

/*
 * Reports an error where definitions would come too late for values that are set: in a parallel
 * operation PostgreSQL leaves what is defined at its built-in value, and says so in a warning. IDs
 * would be drawn from the wrong registry.
 */
void check_settings_apply();

void define_settings();

} /* namespace snowflake */
