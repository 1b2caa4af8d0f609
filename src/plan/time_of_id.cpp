/*
 * time_of_id.cpp
 *     See time_of_id.h.
 *
 * The functions are known by their planner support function, whatever schema the
 * extension is in.
 */
#include "plan/time_of_id.h"

#include "server/argument_cache.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
}

SNOWFLAKE_FUNCTION(snowflake_timestamp_support)
{
    /* There is nothing to do but to be called: see above. */
    return snowflake::kNoNode;
}

namespace snowflake {
namespace {

bool is_snowflake_timestamp(Oid function)
{
    const Oid support = get_func_support(function);
    if (!OidIsValid(support)) {
        return false;
    }
    FmgrInfo info;
    fmgr_info(support, &info);
    return info.fn_addr == snowflake_timestamp_support;
}

/* A column of the query's own relations, whatever domain it is of; else null. */
const Var *column_of(Node *node)
{
    while (IsA(node, RelabelType)) {
        node = reinterpret_cast<Node *>(reinterpret_cast<RelabelType *>(node)->arg);
    }
    const auto *column = reinterpret_cast<Var *>(node);
    return IsA(node, Var) && column->varlevelsup == 0 && column->varattno > 0 ? column : nullptr;
}

/*
 * An index on the very expression was made to serve it, and has statistics on it. It
 * may also be the only one there is.
 */
bool has_index_on(const Target &target, Node *expression, List *clauses)
{
    ListCell *index_cell = nullptr;
    foreach (index_cell, target.indexes) {
        const auto *index = static_cast<IndexOptInfo *>(lfirst(index_cell));
        if (list_member(index->indexprs, expression) &&
            predicate_implied_by(index->indpred, clauses, false)) {
            return true;
        }
    }
    return false;
}

/* The layout of a call, if it is known. A wrong one is left for the function to report. */
bool read_layout(List *arguments, TimeOfId *call)
{
    if (list_length(arguments) == 1) {
        const Datum name = CStringGetTextDatum(layout_label(kDefaultLayout));
        call->layout = kDefaultLayout;
        call->layout_text = reinterpret_cast<Expr *>(
            makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, name, false, false));
        return true;
    }
    const auto *argument = static_cast<Const *>(lsecond(arguments));
    call->layout_text = static_cast<Expr *>(lsecond(arguments));
    return IsA(argument, Const) && !argument->constisnull &&
           try_layout_from_text(view_of(DatumGetTextPP(argument->constvalue)), &call->layout);
}

} /* namespace */

const Var *column_of_time(Node *node)
{
    if (!IsA(node, FuncExpr)) {
        return nullptr;
    }
    const auto *call = reinterpret_cast<FuncExpr *>(node);
    if (call->funcresulttype != TIMESTAMPTZOID || call->args == NIL) {
        return nullptr;
    }
    const Var *column = column_of(static_cast<Node *>(linitial(call->args)));
    return column != nullptr && is_snowflake_timestamp(call->funcid) ? column : nullptr;
}

bool read_time_of_id(const Target &target, Node *node, List *clauses, TimeOfId *call)
{
    const Var *column = column_of_time(node);
    if (column == nullptr || column->varno != static_cast<int>(target.relid)) {
        return false;
    }
    const auto *function = reinterpret_cast<FuncExpr *>(node);
    call->id = static_cast<Expr *>(linitial(function->args));
    call->schema = get_func_namespace(function->funcid);
    return read_layout(function->args, call) && call->layout.sorts_by_time() &&
           !has_index_on(target, node, clauses);
}

} /* namespace snowflake */
