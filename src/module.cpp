/*
 * module.cpp
 *     The shared library as PostgreSQL sees it: its magic and its start.
 */
#include "draw/session.h"
#include "draw/utility_hook.h"
#include "lease/claim_in_transaction.h"
#include "lease/saved_leases.h"
#include "lease/shared_state.h"
#include "plan/time_predicates.h"
#include "server/compat.h"
#include "server/settings.h"

extern "C" {
SNOWFLAKE_MODULE_MAGIC("snowflake");
SNOWFLAKE_EXPORT void _PG_init(void);
}

void _PG_init(void)
{
    snowflake::check_settings_apply();
    snowflake::define_settings();
    snowflake::on_registry_change(snowflake::forget_generators);
    snowflake::install_utility_hook();
    snowflake::install_transaction_hooks();
    snowflake::install_planner_hooks();
    if (process_shared_preload_libraries_in_progress) {
        snowflake::request_shared_state(snowflake::load_saved_leases, snowflake::save_leases);
    }
}
