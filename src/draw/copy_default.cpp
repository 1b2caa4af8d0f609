/*
 * copy_default.cpp
 *     snowflake_nextval() as a column's default in COPY.
 *
 * COPY FROM writes rows in batches, many to a WAL record, except where a default calls
 * a volatile function: that one might read the table which is being filled, and miss
 * the rows of the batch at hand. PostgreSQL knows of its own nextval() that it does no
 * such thing. Of ours it can be told so: while COPY FROM prepares its defaults, the planner
 * support function of snowflake_nextval() puts a twin in its place, the same code in a
 * function that is declared STABLE.
 *
 * What is STABLE may be called once for many rows, so the twin must not get anywhere
 * else. It has an argument of type internal, which SQL cannot write: nobody can call it
 * or store an expression with it. And a call is replaced only
 * - in an expression that is planned by itself, not in a query, and
 * - while COPY FROM is the innermost utility statement under way: ALTER TABLE ADD COLUMN plans
 *   its default in the same way, to see if one value will do for all rows.
 */
#include "draw/utility_hook.h"
#include "server/definer_call.h"
#include "server/sql_function.h"

extern "C" {
#include "catalog/dependency.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/syscache.h"
}

namespace snowflake {
namespace {

constexpr const char *kTwin = "snowflake_nextval_in_copy";

bool is_copy_from(const Node *statement)
{
    return statement != nullptr && IsA(statement, CopyStmt) &&
           reinterpret_cast<const CopyStmt *>(statement)->is_from;
}

bool is_in_copy_from()
{
    if (utility_statement_under_way() != nullptr) {
        return is_copy_from(utility_statement_under_way());
    }
    /*
     * Where the statement itself had the library loaded, the hook came too late for it. It is
     * COPY that prepares its defaults if nothing runs inside of it: functions, and rows
     * that are being copied, have an error context.
     */
    return error_context_stack == nullptr && ActivePortal != nullptr &&
           list_length(ActivePortal->stmts) == 1 &&
           is_copy_from(linitial_node(PlannedStmt, ActivePortal->stmts)->utilityStmt);
}

/* The twin in the same schema and of the same extension; InvalidOid where there is none. */
Oid twin_of(const FuncExpr *call)
{
    Oid types[] = {INTERNALOID, TEXTOID};
    const int count = 1 + list_length(call->args);
    const Oid twin = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(kTwin),
                                     PointerGetDatum(buildoidvector(types, count)),
                                     ObjectIdGetDatum(get_func_namespace(call->funcid)));
    const bool is_ours = OidIsValid(twin) && getExtensionOfObject(ProcedureRelationId, twin) ==
                                                 extension_of_function(call->funcid);
    return is_ours ? twin : InvalidOid;
}

} /* namespace */

} /* namespace snowflake */

using namespace snowflake;

/* Planner support of snowflake_nextval(): replaces a call in a default of COPY FROM. */
SNOWFLAKE_FUNCTION(snowflake_nextval_support)
{
    auto *node = reinterpret_cast<Node *>(PG_GETARG_POINTER(0));
    if (!IsA(node, SupportRequestSimplify)) {
        return kNoNode;
    }
    const auto *request = reinterpret_cast<const SupportRequestSimplify *>(node);
    const FuncExpr *call = request->fcall;
    if (request->root != nullptr || !is_in_copy_from() || !may_execute(call->funcid)) {
        return kNoNode;
    }
    const Oid twin = twin_of(call);
    if (!OidIsValid(twin) || !may_execute(twin)) {
        return kNoNode;
    }
    Const *mark = makeConst(INTERNALOID, -1, InvalidOid, sizeof(Datum), Datum{0}, false, true);
    List *arguments = list_concat(list_make1(mark), list_copy(call->args));
    PG_RETURN_POINTER(makeFuncExpr(twin, INT8OID, arguments, InvalidOid, call->inputcollid,
                                   COERCE_EXPLICIT_CALL));
}
