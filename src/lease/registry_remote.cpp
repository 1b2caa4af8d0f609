/*
 * registry_remote.cpp
 *     A registry that many servers share; see registry_remote.h.
 *
 * libpq is used without blocking, and this process waits on its latch, so that
 * shutdown ends a wait at once. Of several hosts one that hangs must not use up
 * the time of the others, so each is tried by itself.
 */
#include "lease/registry_remote.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "server/clock.h"
#include "server/settings.h"

extern "C" {
#include "storage/latch.h"
#include "utils/memutils.h"
}

namespace snowflake {
namespace {

/* No host is waited for longer than this to connect, nor a lock there. */
constexpr int kLongestPatienceMs = 2000;

/* How long one statement may take. */
std::int64_t step_limit_us() { return static_cast<std::int64_t>(acquire_timeout_ms) * 1000; }

/*
 * How long one part of what a waiting session waits for may take: so that, where
 * one does, there is time for the others, or to tell the session.
 */
int patience_ms(int parts) { return std::clamp(acquire_timeout_ms / parts, 1, kLongestPatienceMs); }

/* What libpq says, in one line. */
char *said(const char *message)
{
    char *text = pstrdup(message == nullptr ? "" : message);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '\n' ? ' ' : *c;
    }
    for (std::size_t end = std::strlen(text); end > 0 && text[end - 1] == ' '; end--) {
        text[end - 1] = '\0';
    }
    return text;
}

/*
 * Waits until the socket is ready; false when the time is over before. It has to be
 * ready: a connection that is polled too early sends, and libpq waits without a limit
 * where nobody takes what is sent.
 */
bool wait_for_socket(PGconn *connection, int events, std::int64_t deadline_us)
{
    static uint32 event = 0;
    if (event == 0) {
        event = wait_event("SnowflakeRegistry");
    }
    int woken = 0;
    while ((woken & events) == 0) {
        const std::int64_t left_us = deadline_us - monotonic_us();
        if (left_us <= 0) {
            return false;
        }
        woken =
            WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | events,
                              PQsocket(connection), static_cast<long>(left_us / 1000 + 1), event);
        if ((woken & WL_LATCH_SET) != 0) {
            ResetLatch(MyLatch);
        }
        CHECK_FOR_INTERRUPTS();
    }
    return true;
}

/* Connects to one host. In case of failure returns why, palloc'ed, and no connection. */
const char *connect_to(const char *conninfo, int limit_ms, PGconn **connection)
{
    const std::int64_t deadline_us = monotonic_us() + static_cast<std::int64_t>(limit_ms) * 1000;
    PGconn *attempt = PQconnectStart(conninfo);
    *connection = attempt;
    if (attempt == nullptr) {
        return "out of memory";
    }
    const char *problem = nullptr;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (problem == nullptr && status != PGRES_POLLING_OK) {
        if (PQstatus(attempt) == CONNECTION_BAD || status == PGRES_POLLING_FAILED) {
            problem = said(PQerrorMessage(attempt));
        } else if (!wait_for_socket(
                       attempt,
                       status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE,
                       deadline_us)) {
            problem = psprintf("connection to \"%s\", port %s timed out", PQhost(attempt),
                               PQport(attempt));
        } else {
            status = PQconnectPoll(attempt);
        }
    }
    if (problem != nullptr) {
        PQfinish(attempt);
        *connection = nullptr;
    }
    return problem;
}

/* The nth part of a list separated by commas; the only part of a list of one; else "". */
char *part_of(const char *list, int n)
{
    if (list == nullptr || list[0] == '\0') {
        return pstrdup("");
    }
    if (std::strchr(list, ',') == nullptr) {
        return pstrdup(list);
    }
    for (; n > 0 && list != nullptr; n--) {
        list = std::strchr(list, ',');
        list = list == nullptr ? nullptr : list + 1;
    }
    return list == nullptr ? pstrdup("") : pnstrdup(list, std::strcspn(list, ","));
}

int parts_in(const char *list)
{
    int count = 1;
    for (const char *c = list == nullptr ? "" : list; *c != '\0'; c++) {
        count += *c == ',' ? 1 : 0;
    }
    return count;
}

void append_option(StringInfo text, const char *keyword, const char *value)
{
    appendStringInfo(text, "%s%s='", text->len == 0 ? "" : " ", keyword);
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '\'' || *c == '\\') {
            appendStringInfoChar(text, '\\');
        }
        appendStringInfoChar(text, *c);
    }
    appendStringInfoChar(text, '\'');
}

bool is_per_host(const char *keyword)
{
    return std::strcmp(keyword, "host") == 0 || std::strcmp(keyword, "hostaddr") == 0 ||
           std::strcmp(keyword, "port") == 0;
}

/* The options of a conninfo for its nth host. */
char *conninfo_of_host(const PQconninfoOption *options, int n)
{
    StringInfoData text;
    initStringInfo(&text);
    bool named = false;
    for (const PQconninfoOption *option = options; option->keyword != nullptr; option++) {
        if (option->val == nullptr) {
            continue;
        }
        named = named || std::strcmp(option->keyword, "application_name") == 0;
        append_option(&text, option->keyword,
                      is_per_host(option->keyword) ? part_of(option->val, n) : option->val);
    }
    if (!named) {
        append_option(&text, "application_name", "snowflake keeper");
    }
    return text.data;
}

} /* namespace */

HostList hosts_of(const char *conninfo)
{
    char *problem = nullptr;
    PQconninfoOption *options = PQconninfoParse(conninfo, &problem);
    if (options == nullptr) {
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("invalid connection string in snowflake.registry: %s", said(problem))));
    }
    HostList list{1, nullptr};
    for (const PQconninfoOption *option = options; option->keyword != nullptr; option++) {
        const bool names_hosts = std::strcmp(option->keyword, "host") == 0 ||
                                 std::strcmp(option->keyword, "hostaddr") == 0;
        list.count = names_hosts ? std::max(list.count, parts_in(option->val)) : list.count;
    }
    list.conninfos =
        static_cast<const char **>(palloc(sizeof(char *) * static_cast<std::size_t>(list.count)));
    for (int n = 0; n < list.count; n++) {
        list.conninfos[n] = conninfo_of_host(options, n);
    }
    PQconninfoFree(options);
    return list;
}

void RemoteRegistry::connect(const char *conninfo)
{
    const HostList hosts = hosts_of(conninfo);
    StringInfoData problems;
    initStringInfo(&problems);
    for (int n = 0; n < hosts.count && connection_ == nullptr; n++) {
        const char *problem =
            connect_to(hosts.conninfos[n], patience_ms(hosts.count + 1), &connection_);
        if (problem != nullptr) {
            appendStringInfo(&problems, "%s%s", problems.len == 0 ? "" : "; ", problem);
        }
    }
    if (connection_ == nullptr) {
        ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                        errmsg("could not connect to the registry: %s", problems.data),
                        errhint("Look at snowflake.registry, and at the registry's server.")));
    }
    look_around();
}

/* Where the lease functions are, and what the registry's clock shows. */
void RemoteRegistry::look_around()
{
    const std::int64_t sent_us = wall_clock_us();
    run("SELECT n.nspname, (extract(epoch FROM pg_catalog.clock_timestamp()) "
        "OPERATOR(pg_catalog.*) 1000000)::pg_catalog.int8 "
        "FROM pg_catalog.pg_extension e "
        "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace "
        "WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake'",
        0, nullptr);
    const std::int64_t received_us = wall_clock_us();
    if (PQntuples(result_) != 1) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("the registry's database \"%s\" has no extension \"snowflake\"",
                               pstrdup(PQdb(connection_))),
                        errhint("Run CREATE EXTENSION snowflake there.")));
    }
    strlcpy(schema_, PQgetvalue(result_, 0, 0), sizeof(schema_));
    skew_us_ = std::strtoll(PQgetvalue(result_, 0, 1), nullptr, 10) -
               (sent_us + (received_us - sent_us) / 2);
}

void RemoteRegistry::begin()
{
    run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", 0, nullptr);
    /*
     * A statement that is no longer waited for must not stay there and keep its
     * connection, nor a transaction whose end was lost on its way and its locks.
     * (PostgreSQL lifts statement_timeout before it commits.) A horizon that is
     * used must be there after a crash and after a failover.
     */
    const char *const limits[] = {psprintf("%d", acquire_timeout_ms),
                                  psprintf("%d", patience_ms(2))};
    run("SELECT pg_catalog.set_config('statement_timeout', $1, true), "
        "pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true), "
        "pg_catalog.set_config('lock_timeout', $2, true), "
        "CASE WHEN pg_catalog.current_setting('synchronous_commit') "
        "OPERATOR(pg_catalog.=) ANY (ARRAY['off', 'local']) "
        "THEN pg_catalog.set_config('synchronous_commit', 'on', true) END",
        lengthof(limits), limits);
}

void RemoteRegistry::commit() { run("COMMIT", 0, nullptr); }

void RemoteRegistry::forget()
{
    PQclear(result_);
    result_ = nullptr;
    PQfinish(connection_);
    connection_ = nullptr;
}

/* Runs one statement; its result is in result_. */
void RemoteRegistry::run(const char *sql, int count, const char *const *values)
{
    PQclear(result_);
    result_ = nullptr;
    const std::int64_t deadline_us = monotonic_us() + step_limit_us();
    if (PQsendQueryParams(connection_, sql, count, nullptr, values, nullptr, nullptr, 0) == 0) {
        ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                        errmsg("lost the connection to the registry: %s",
                               said(PQerrorMessage(connection_)))));
    }
    for (;;) {
        while (PQisBusy(connection_) != 0) {
            if (!wait_for_socket(connection_, WL_SOCKET_READABLE, deadline_us)) {
                ereport(ERROR,
                        (errcode(ERRCODE_CONNECTION_FAILURE),
                         errmsg("the registry did not answer within %d ms", acquire_timeout_ms),
                         errhint("Look at the registry's server.")));
            }
            if (PQconsumeInput(connection_) == 0) {
                ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                                errmsg("lost the connection to the registry: %s",
                                       said(PQerrorMessage(connection_)))));
            }
        }
        PGresult *next = PQgetResult(connection_);
        if (next == nullptr) {
            break;
        }
        PQclear(result_);
        result_ = next;
    }
    const ExecStatusType status = PQresultStatus(result_);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return;
    }
    const char *code = PQresultErrorField(result_, PG_DIAG_SQLSTATE);
    const bool has_code = code != nullptr && std::strlen(code) == 5;
    const int sqlerrcode = has_code ? MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4])
                                    : ERRCODE_CONNECTION_FAILURE;
    const char *primary = PQresultErrorField(result_, PG_DIAG_MESSAGE_PRIMARY);
    ereport(ERROR, (errcode(sqlerrcode),
                    errmsg("the registry says: %s",
                           said(primary != nullptr ? primary : PQresultErrorMessage(result_))),
                    sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE
                        ? errhint("Grant its role EXECUTE on the lease functions there.")
                        : errhint("Look at the registry's server.")));
}

LeaseRow RemoteRegistry::call(const LeaseFunction &function, const char *const *arguments)
{
    run(call_text(function, schema_), function.arguments, arguments);
    LeaseRow row{};
    for (int i = 0; i < function.columns && PQntuples(result_) == 1; i++) {
        row.values[i] = PQgetisnull(result_, 0, i) != 0 ? nullptr : PQgetvalue(result_, 0, i);
    }
    return row;
}

} /* namespace snowflake */
