/*
 * registry_client.h
 *     The client of shared registries, which is a module of its own (snowflake_libpq).
 *
 * Only keepers of a shared registry need libpq, and what it brings along: TLS, Kerberos, LDAP.
 * Every other session would spend milliseconds to load them with the library. So the module is
 * loaded when it is first used.
 */
#pragma once

namespace snowflake {

/*
 * One connection a process. Waits end at their time limit, with an error, and at shutdown.
 * Each error is reported by ereport.
 */
struct RegistryClient {
    /* What is wrong with a connection string, palloc'ed; nullptr if nothing is. */
    const char *(*problem_of)(const char *conninfo);

    /* Tries the hosts of a connection string in their order; together they get the time given. */
    void (*connect)(const char *conninfo, int timeout_ms);

    /* Runs one statement. Its result is there until the next. */
    void (*run)(const char *sql, int count, const char *const *values, int timeout_ms);

    int (*rows)();
    const char *(*value)(int column); /* of the first row; nullptr: null */
    const char *(*database)();

    /* Also where there is no connection, or it is broken. */
    void (*disconnect)();
};

/*
 * The module's only symbol gives its functions. The number changes with the struct: one of another
 * version, after an upgrade of the package under a running server, is not found.
 */
#define SNOWFLAKE_REGISTRY_CLIENT snowflake_registry_client_1

/* Loads the module at the first call; an error that says what to install where that fails. */
const RegistryClient &registry_client();

/* True if this process has loaded it. */
bool registry_client_is_loaded();

} /* namespace snowflake */
