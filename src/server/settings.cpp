/*
 * settings.cpp
 *     The settings of the extension; see settings.h.
 *
 * What must be the same for all sessions of a server is set in postgresql.conf
 * or by ALTER SYSTEM and changed by a reload; what a session may choose for
 * itself can be set anywhere.
 */
#include "server/settings.h"

#include <climits>
#include <cstring>

#include "server/compat.h"
#include "server/registry_client.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "tcop/pquery.h"
#include "utils/guc.h"
#include "utils/portal.h"
}

namespace snowflake {

int lease_ttl_ms = 60000;
int acquire_timeout_ms = 5000;
int max_clock_wait_ms = 1000;
int max_machine_ids = 4;

namespace {

constexpr MachineIdSet kAllMachineIds = {};

char *machine_ids_setting = nullptr;
const MachineIdSet *allowed_machine_ids = &kAllMachineIds;
std::uint32_t times_assigned = 0;

bool check_machine_ids(char **value, void **extra, GucSource source)
{
    auto *set = static_cast<MachineIdSet *>(allocate_setting(sizeof(MachineIdSet)));
    if (set == nullptr) {
        return false;
    }
    MachineIdsError error{};
    if (!parse_machine_ids(*value, set, &error)) {
        GUC_check_errdetail("At \"%s\": %s.", *value + error.offset, error.message);
        GUC_check_errhint(
            "Give machine IDs and ranges separated by commas, as in \"0-127,200\"; "
            "an empty value allows all.");
        free_setting(set);
        return false;
    }
    *extra = set;
    return true;
}

void assign_machine_ids(const char *value, void *extra)
{
    allowed_machine_ids =
        extra == nullptr ? &kAllMachineIds : static_cast<const MachineIdSet *>(extra);
    times_assigned++;
}

char *registry_setting = nullptr;
void (*registry_listener)() = nullptr;

/* The statement that this session runs is ALTER SYSTEM, which is never called by another. */
bool alters_system()
{
    return ActivePortal != nullptr && list_length(ActivePortal->stmts) == 1 &&
           linitial_node(PlannedStmt, ActivePortal->stmts)->utilityStmt != nullptr &&
           IsA(linitial_node(PlannedStmt, ActivePortal->stmts)->utilityStmt, AlterSystemStmt);
}

/*
 * Only libpq can tell, and not every session shall load it: so who sets it is told at once, and
 * what is written into postgresql.conf is found wrong by the keeper that is to connect.
 */
bool check_registry(char **value, void **extra, GucSource source)
{
    if ((*value)[0] == '\0' || !alters_system()) {
        return true;
    }
    const char *problem = registry_client().problem_of(*value);
    if (problem != nullptr) {
        GUC_check_errdetail("It is no connection string: %s", problem);
    }
    return problem == nullptr;
}

/* Which registry a generator has its leases from is part of what sessions know of it. */
void assign_registry(const char *value, void *extra)
{
    if (registry_listener != nullptr) {
        registry_listener();
    }
}

/* All that define_settings() defines. */
constexpr const char *kNames[] = {"snowflake.lease_ttl",       "snowflake.acquire_timeout",
                                  "snowflake.max_clock_wait",  "snowflake.machine_ids",
                                  "snowflake.max_machine_ids", "snowflake.registry"};

std::int64_t in_units(const Layout &layout, int ms)
{
    const std::int64_t unit = unit_ms(layout.unit);
    return (ms + unit - 1) / unit;
}

} /* namespace */

const MachineIdSet &machine_ids() { return *allowed_machine_ids; }

const char *registry_conninfo() { return registry_setting == nullptr ? "" : registry_setting; }

void on_registry_change(void (*listener)()) { registry_listener = listener; }

bool registry_is_shared() { return registry_conninfo()[0] != '\0'; }

std::uint32_t machine_ids_version() { return times_assigned; }

Terms terms_for(const Layout &layout)
{
    /* Up to two units ahead is a used-up sequence, and always waited for. */
    const std::int64_t wait = in_units(layout, max_clock_wait_ms);
    return {in_units(layout, lease_ttl_ms), wait < 2 ? 2 : wait};
}

void check_settings_apply()
{
    if (!IsInParallelMode()) {
        return;
    }
    for (const char *name : kNames) {
        if (GetConfigOption(name, true, false) != nullptr) {
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("cannot load library \"snowflake\" during a parallel operation"),
                     errdetail("\"%s\" is set, but would not apply in this session.", name),
                     errhint("Call one of its functions before the parallel statement, or add "
                             "snowflake to shared_preload_libraries or "
                             "session_preload_libraries.")));
        }
    }
}

void define_settings()
{
    DefineCustomIntVariable(
        "snowflake.lease_ttl", "How long a lease of a machine ID lasts without renewal.",
        "A server that is gone keeps its machine IDs for this long. Leases are renewed past a "
        "third of it, so IDs survive a registry that is away for up to two thirds.",
        &lease_ttl_ms, 60000, 1000, 86400000, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "snowflake.acquire_timeout", "How long a session waits for a lease before it fails.",
        "Only the first ID of a database and the first after its lease has run out wait at all.",
        &acquire_timeout_ms, 5000, 10, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr,
        nullptr);
    DefineCustomIntVariable(
        "snowflake.max_clock_wait",
        "How long a session waits for a clock that has stepped backward to catch up.",
        "After a greater step the server goes on at once under another machine ID.",
        &max_clock_wait_ms, 1000, 0, 3600000, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomStringVariable(
        "snowflake.machine_ids", "The machine IDs that this server may claim.",
        "IDs and ranges separated by commas, as in \"0-127,200\". Empty allows all; a single one "
        "pins the server to it.",
        &machine_ids_setting, "", PGC_SIGHUP, 0, check_machine_ids, assign_machine_ids, nullptr);
    DefineCustomIntVariable(
        "snowflake.max_machine_ids",
        "The most machine IDs that this server may hold for one generator.",
        "More than one lets a server draw more IDs in a millisecond than one sequence holds. "
        "Never more than an eighth of a generator's machine IDs are held.",
        &max_machine_ids, 4, 1, 16, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomStringVariable(
        "snowflake.registry", "Connection string of the database that holds the leases.",
        "Servers that name the same registry draw from one pool of machine IDs. Empty: each "
        "database of this server is its own registry.",
        &registry_setting, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, check_registry, assign_registry,
        nullptr);
    MarkGUCPrefixReserved("snowflake");
}

} /* namespace snowflake */
