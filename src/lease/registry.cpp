/*
 * registry.cpp
 *     The lease functions as C++ functions; see registry.h.
 */
#include "lease/registry.h"

#include <cinttypes>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "core/layout_spec.h"
#include "server/settings.h"

extern "C" {
#include "postmaster/postmaster.h"
}

namespace snowflake {

namespace {

enum Which { kClaim, kRenew, kResume, kAvailability };

/* What is free no sooner than this is never free. */
constexpr std::int64_t kFarUs = 10000000000000000;

} /* namespace */

/* In the order of Which; the types are those of the extension's script. */
const LeaseFunction kLeaseFunctions[kLeaseFunctionCount] = {
    {"snowflake_claim_lease",
     10,
     {"text", "text", "int8", "oid", "text", "interval", "int8", "int8", "int4multirange",
      "int4[]"},
     2},
    {"snowflake_renew_lease", 6, {"text", "int4", "int8", "oid", "interval", "int8"}, 1},
    {"snowflake_resume_lease",
     8,
     {"text", "int4", "int8", "int8", "int8", "oid", "interval", "int8"},
     1},
    {"snowflake_lease_outlook", 3, {"text", "int4multirange", "int8"}, 5},
};

namespace {

char *number_text(std::int64_t value) { return psprintf("%" PRId64, value); }

char *instance_text() { return number_text(static_cast<std::int64_t>(shared_state()->instance)); }

char *database_text(const PoolKey &key) { return psprintf("%u", key.database); }

char *ttl_text() { return psprintf("%d milliseconds", lease_ttl_ms); }

/* The machine IDs that this server may claim, as an int4multirange. */
char *machine_ids_multirange(const Layout &layout)
{
    const MachineIdSet &set = machine_ids();
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfoChar(&text, '{');
    if (set.all()) {
        appendStringInfo(&text, "[0,%" PRId64 "]", layout.machine_id.max());
    }
    for (std::uint32_t i = 0; i < set.count; i++) {
        appendStringInfo(&text, "%s[%u,%u]", i == 0 ? "" : ",", set.ranges[i].low,
                         set.ranges[i].high);
    }
    appendStringInfoChar(&text, '}');
    return text.data;
}

char *avoid_array(const ClaimRequest &request)
{
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfoChar(&text, '{');
    for (std::uint32_t i = 0; i < request.avoid_count; i++) {
        appendStringInfo(&text, "%s%u", i == 0 ? "" : ",", request.avoid[i]);
    }
    appendStringInfoChar(&text, '}');
    return text.data;
}

/* host:port/database, for people who look for the holder of a lease. */
char *holder_text(const PoolKey &key)
{
    char host[64] = "?";
    gethostname(host, sizeof(host) - 1);
    const char *database = OidIsValid(key.database) ? get_database_name(key.database) : nullptr;
    return psprintf("%s:%d%s%s", host, PostPortNumber, database == nullptr ? "" : "/",
                    database == nullptr ? "" : database);
}

std::int64_t number_or(const char *value, std::int64_t if_null)
{
    return value == nullptr ? if_null : std::strtoll(value, nullptr, 10);
}

} /* namespace */

char *call_text(const LeaseFunction &function, const char *schema)
{
    StringInfoData sql;
    initStringInfo(&sql);
    appendStringInfo(&sql, "SELECT * FROM %s.%s(", quote_identifier(schema), function.name);
    for (int i = 0; i < function.arguments; i++) {
        appendStringInfo(&sql, "%sCAST($%d AS pg_catalog.%s)", i == 0 ? "" : ", ", i + 1,
                         function.argument_types[i]);
    }
    appendStringInfoChar(&sql, ')');
    return sql.data;
}

ClaimReply Registry::claim(const ClaimRequest &request)
{
    const PoolKey &key = *request.key;
    const SpecText layout = format_layout(key.layout);
    const char *const arguments[] = {NameStr(key.generator),
                                     layout.c_str(),
                                     instance_text(),
                                     database_text(key),
                                     holder_text(key),
                                     ttl_text(),
                                     number_text(request.now),
                                     number_text(request.horizon),
                                     machine_ids_multirange(key.layout),
                                     avoid_array(request)};
    const LeaseRow row = call(kLeaseFunctions[kClaim], arguments);
    if (row.values[0] == nullptr) {
        return {};
    }
    const std::int64_t machine_id = number_or(row.values[0], -1);
    const std::int64_t old_horizon = number_or(row.values[1], -1);
    /* A shared registry's functions may be anything. */
    if (machine_id < 0 || machine_id > key.layout.machine_id.max() || old_horizon < 0 ||
        old_horizon > request.now) {
        ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION),
                        errmsg("the registry gives machine ID %s with horizon %s, which cannot be",
                               row.values[0], row.values[1] == nullptr ? "null" : row.values[1]),
                        errhint("Look at the extension in the registry's database.")));
    }
    return {true, static_cast<std::uint32_t>(machine_id), old_horizon};
}

std::int64_t Registry::renew(const PoolKey &key, std::uint32_t machine_id, std::int64_t horizon)
{
    const char *const arguments[] = {NameStr(key.generator),
                                     number_text(machine_id),
                                     instance_text(),
                                     database_text(key),
                                     ttl_text(),
                                     number_text(horizon)};
    return number_or(call(kLeaseFunctions[kRenew], arguments).values[0], -1);
}

std::int64_t Registry::resume(const PoolKey &key, const SavedLease &saved, std::int64_t horizon)
{
    const char *const arguments[] = {NameStr(key.generator),
                                     number_text(saved.machine_id),
                                     number_text(static_cast<std::int64_t>(saved.instance)),
                                     number_text(saved.horizon),
                                     instance_text(),
                                     database_text(key),
                                     ttl_text(),
                                     number_text(horizon)};
    return number_or(call(kLeaseFunctions[kResume], arguments).values[0], -1);
}

Availability Registry::availability(const PoolKey &key, std::int64_t now)
{
    const char *const arguments[] = {NameStr(key.generator), machine_ids_multirange(key.layout),
                                     number_text(now)};
    const LeaseRow row = call(kLeaseFunctions[kAvailability], arguments);
    Availability availability{};
    if (row.values[0] == nullptr) {
        return availability;
    }
    availability.known = true;
    strlcpy(availability.layout, row.values[0], sizeof(availability.layout));
    availability.machine_id = static_cast<std::uint32_t>(number_or(row.values[1], 0));
    strlcpy(availability.holder, row.values[2] == nullptr ? "another" : row.values[2],
            sizeof(availability.holder));
    availability.free_in_us = number_or(row.values[4], INT64_MAX);
    if (availability.free_in_us > kFarUs) {
        availability.free_in_us = INT64_MAX;
    }
    return availability;
}

} /* namespace snowflake */
