/*
 * module.cpp
 *     The shared library as PostgreSQL sees it: its magic and its start.
 */
#include "pg/compat.h"
#include "pg/copy_default.h"
#include "pg/lease_request.h"
#include "pg/session.h"
#include "pg/settings.h"
#include "pg/shared_state.h"
#include "pg/time_predicates.h"

extern "C" {
SNOWFLAKE_MODULE_MAGIC;
SNOWFLAKE_EXPORT void _PG_init(void);
}

void _PG_init(void)
{
    snowflake::define_settings();
    snowflake::install_session_hooks();
    snowflake::install_transaction_hooks();
    snowflake::install_planner_hooks();
    snowflake::install_copy_hooks();
    if (process_shared_preload_libraries_in_progress) {
        snowflake::request_shared_state();
    }
}
