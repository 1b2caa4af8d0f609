/*
 * module.cpp
 *     The shared library as PostgreSQL sees it: its magic and its start.
 */
#include "pg/compat.h"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

void _PG_init(void) {}
