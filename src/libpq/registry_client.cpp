/*
 * registry_client.cpp
 *     The client of shared registries; see server/registry_client.h.
 *
 * libpq is used without blocking, and this process waits on its latch, so that
 * shutdown ends a wait at once. Of several hosts one that hangs must not use up
 * the time of the others, so each is tried by itself.
 */
#include "server/registry_client.h"

#include <algorithm>
#include <cstring>

#include "server/clock.h"
#include "server/compat.h"

extern "C" {
#include "libpq-fe.h"
#include "storage/latch.h"
}

extern "C" {
SNOWFLAKE_MODULE_MAGIC("snowflake_libpq");
SNOWFLAKE_EXPORT const snowflake::RegistryClient *SNOWFLAKE_REGISTRY_CLIENT(void);
}

namespace snowflake {
namespace {

/* No host is waited for longer than this to connect. */
constexpr int kLongestPatienceMs = 2000;

PGconn *connection = nullptr;
PGresult *result = nullptr; /* of the latest statement */

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
bool wait_for_socket(PGconn *waiting, int events, std::int64_t deadline_us)
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
        woken = WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH | events,
                                  PQsocket(waiting), static_cast<long>(left_us / 1000 + 1), event);
        if ((woken & WL_LATCH_SET) != 0) {
            ResetLatch(MyLatch);
        }
        CHECK_FOR_INTERRUPTS();
    }
    return true;
}

/* Connects to one host. In case of failure returns why, palloc'ed, and no connection. */
const char *connect_to(const char *conninfo, int limit_ms, PGconn **connected)
{
    const std::int64_t deadline_us = monotonic_us() + static_cast<std::int64_t>(limit_ms) * 1000;
    PGconn *attempt = PQconnectStart(conninfo);
    *connected = attempt;
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
        *connected = nullptr;
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

const char *problem_of(const char *conninfo)
{
    char *text = nullptr;
    PQconninfoOption *options = PQconninfoParse(conninfo, &text);
    if (options != nullptr) {
        PQconninfoFree(options);
        return nullptr;
    }
    const char *problem = text == nullptr ? "out of memory" : said(text);
    PQfreemem(text);
    return problem;
}

/* The parts of a connection string with several hosts, one host each. */
struct HostList {
    int count;
    const char **conninfos;
};

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

void connect(const char *conninfo, int timeout_ms)
{
    const HostList hosts = hosts_of(conninfo);
    /* a share for each, and one for what is to be done there */
    const int patience_ms = std::clamp(timeout_ms / (hosts.count + 1), 1, kLongestPatienceMs);
    StringInfoData problems;
    initStringInfo(&problems);
    for (int n = 0; n < hosts.count && connection == nullptr; n++) {
        const char *problem = connect_to(hosts.conninfos[n], patience_ms, &connection);
        if (problem != nullptr) {
            appendStringInfo(&problems, "%s%s", problems.len == 0 ? "" : "; ", problem);
        }
    }
    if (connection == nullptr) {
        ereport(ERROR, (errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
                        errmsg("could not connect to the registry: %s", problems.data),
                        errhint("Look at snowflake.registry, and at the registry's server.")));
    }
}

void run(const char *sql, int count, const char *const *values, int timeout_ms)
{
    PQclear(result);
    result = nullptr;
    const std::int64_t deadline_us = monotonic_us() + static_cast<std::int64_t>(timeout_ms) * 1000;
    if (PQsendQueryParams(connection, sql, count, nullptr, values, nullptr, nullptr, 0) == 0) {
        ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                        errmsg("lost the connection to the registry: %s",
                               said(PQerrorMessage(connection)))));
    }
    for (;;) {
        while (PQisBusy(connection) != 0) {
            if (!wait_for_socket(connection, WL_SOCKET_READABLE, deadline_us)) {
                ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                                errmsg("the registry did not answer within %d ms", timeout_ms),
                                errhint("Look at the registry's server.")));
            }
            if (PQconsumeInput(connection) == 0) {
                ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE),
                                errmsg("lost the connection to the registry: %s",
                                       said(PQerrorMessage(connection)))));
            }
        }
        PGresult *next = PQgetResult(connection);
        if (next == nullptr) {
            break;
        }
        PQclear(result);
        result = next;
    }
    const ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return;
    }
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const bool has_code = code != nullptr && std::strlen(code) == 5;
    const int sqlerrcode = has_code ? MAKE_SQLSTATE(code[0], code[1], code[2], code[3], code[4])
                                    : ERRCODE_CONNECTION_FAILURE;
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    ereport(ERROR, (errcode(sqlerrcode),
                    errmsg("the registry says: %s",
                           said(primary != nullptr ? primary : PQresultErrorMessage(result))),
                    sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE
                        ? errhint("Grant its role EXECUTE on the lease functions there.")
                        : errhint("Look at the registry's server.")));
}

int rows() { return PQntuples(result); }

const char *value(int column)
{
    return PQgetisnull(result, 0, column) != 0 ? nullptr : PQgetvalue(result, 0, column);
}

const char *database() { return PQdb(connection); }

void disconnect()
{
    PQclear(result);
    result = nullptr;
    PQfinish(connection);
    connection = nullptr;
}

constexpr RegistryClient kClient = {problem_of, connect, run, rows, value, database, disconnect};

} /* namespace */
} /* namespace snowflake */

const snowflake::RegistryClient *SNOWFLAKE_REGISTRY_CLIENT(void) { return &snowflake::kClient; }
