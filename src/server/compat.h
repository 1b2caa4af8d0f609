/*
 * compat.h
 *     PostgreSQL's headers, and everything that differs between its major
 *     versions. No other file tests PG_VERSION_NUM.
 */
#pragma once

extern "C" {
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "parser/parse_type.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* These have what other headers had before 19: get_database_name(), tuplestore_putvalues(). */
#include "commands/dbcommands.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"
}

#if PG_VERSION_NUM < 150000
#error "snowflake needs PostgreSQL 15 or later"
#endif

/*
 * What PostgreSQL looks up in the library by name. All else in it is hidden; PostgreSQL's
 * own macros see to that only from 16 on.
 */
#define SNOWFLAKE_EXPORT __attribute__((visibility("default")))

/* A module's mark; from 18 on, pg_get_loaded_modules() shows its name and version. */
#if PG_VERSION_NUM >= 180000
#define SNOWFLAKE_MODULE_MAGIC(name_) \
    PG_MODULE_MAGIC_EXT(.name = name_, .version = SNOWFLAKE_VERSION)
#else
#define SNOWFLAKE_MODULE_MAGIC(name_)                                     \
    SNOWFLAKE_EXPORT const Pg_magic_struct *PG_MAGIC_FUNCTION_NAME(void); \
    PG_MODULE_MAGIC
#endif

namespace snowflake {

/* What a planner support function returns to say nothing; 19's PG_RETURN_POINTER() takes no
 * nullptr. */
constexpr Datum kNoNode{0};

/* Which cache a callback of CacheRegisterSyscacheCallback() is told of: an enum from 19 on. */
#if PG_VERSION_NUM >= 190000
using SyscacheId = SysCacheIdentifier;
#else
using SyscacheId = int;
#endif

/* The number of this backend's PGPROC: below MaxBackends for every backend that runs SQL. */
inline int my_proc_number() noexcept
{
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyProc->pgprocno;
#endif
}

/* The number of the PGPROC of the session's leader: its own, or a parallel worker's leader's. */
inline int leader_proc_number() noexcept
{
    PGPROC *leader = MyProc->lockGroupLeader != nullptr ? MyProc->lockGroupLeader : MyProc;
#if PG_VERSION_NUM >= 170000
    return GetNumberFromPGProc(leader);
#else
    return leader->pgprocno;
#endif
}

inline void ignore_signal(int signal)
{
#if PG_VERSION_NUM >= 190000
    pqsignal(signal, PG_SIG_IGN);
#else
    pqsignal(signal, SIG_IGN);
#endif
}

/* A wait event of this extension: named in pg_stat_activity from 17 on, `Extension` before. */
inline uint32 wait_event([[maybe_unused]] const char *name)
{
#if PG_VERSION_NUM >= 170000
    return WaitEventExtensionNew(name);
#else
    return PG_WAIT_EXTENSION;
#endif
}

/* A number for locks of this extension, under the name that pg_stat_activity shows. */
inline int new_lock_tranche([[maybe_unused]] const char *name)
{
#if PG_VERSION_NUM >= 190000
    return LWLockNewTrancheId(name);
#else
    return LWLockNewTrancheId();
#endif
}

/* Tells this backend a tranche's name; from 19 on, the name is in shared memory. */
inline void name_lock_tranche([[maybe_unused]] int tranche, [[maybe_unused]] const char *name)
{
#if PG_VERSION_NUM < 190000
    LWLockRegisterTranche(tranche, name);
#endif
}

/* May the current user call this function? */
inline bool may_execute(Oid function)
{
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#else
    return pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

/* expression_tree_walker(), which C++ can call on 15 only by a cast that C does not need. */
inline bool walk_expression(Node *node, bool (*walker)(Node *, void *), void *context)
{
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, walker, context);
#else
    return expression_tree_walker(
        node, reinterpret_cast<bool (*)()>(reinterpret_cast<void *>(walker)), context);
#endif
}

/*
 * Has the planner call a function for each table of a query, once it has looked up the table's
 * indexes and before the clauses are handed out, after the functions of other extensions.
 */
using TablePlanned = void (*)(PlannerInfo *root, RelOptInfo *rel, bool is_parent);

inline TablePlanned table_planned = nullptr;

#if PG_VERSION_NUM >= 190000
inline build_simple_rel_hook_type previous_table_hook = nullptr;

inline void call_table_planned(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry)
{
    if (previous_table_hook != nullptr) {
        previous_table_hook(root, rel, entry);
    }
    if (entry->rtekind == RTE_RELATION) {
        table_planned(root, rel, entry->inh);
    }
}

inline void on_table_planned(TablePlanned function)
{
    table_planned = function;
    previous_table_hook = build_simple_rel_hook;
    build_simple_rel_hook = call_table_planned;
}
#else
inline get_relation_info_hook_type previous_table_hook = nullptr;

inline void call_table_planned(PlannerInfo *root, Oid relation, bool is_parent, RelOptInfo *rel)
{
    if (previous_table_hook != nullptr) {
        previous_table_hook(root, relation, is_parent, rel);
    }
    table_planned(root, rel, is_parent);
}

inline void on_table_planned(TablePlanned function)
{
    table_planned = function;
    previous_table_hook = get_relation_info_hook;
    get_relation_info_hook = call_table_planned;
}
#endif

/* Memory for what a setting's check hook hands on, which PostgreSQL frees; null: there is none. */
inline void *allocate_setting(std::size_t size)
{
#if PG_VERSION_NUM >= 160000
    return guc_malloc(LOG, size);
#else
    return malloc(size);
#endif
}

inline void free_setting(void *memory)
{
#if PG_VERSION_NUM >= 160000
    guc_free(memory);
#else
    free(memory);
#endif
}

/* A type's OID by its name as SQL writes it; InvalidOid if there is no such type. */
inline Oid type_by_name(const char *name)
{
    Oid type = InvalidOid;
    int32 modifier = -1;
#if PG_VERSION_NUM >= 160000
    parseTypeString(name, &type, &modifier, nullptr);
#else
    parseTypeString(name, &type, &modifier, true);
#endif
    return type;
}

/* Settings of later versions that could end a keeper's transaction. */
inline void pin_settings_of_later_versions()
{
#if PG_VERSION_NUM >= 170000
    SetConfigOption("transaction_timeout", "0", PGC_USERSET, PGC_S_SESSION);
#endif
}

} /* namespace snowflake */
