/*
 * time_predicates.cpp
 *     Comparisons of snowflake_timestamp(id) with times, as ranges of IDs.
 *
 * IDs sort by time, so each of these comparisons is one of the ID itself:
 *
 *     snowflake_timestamp(id) >= t    id >= snowflake_first_id_from(t)
 *     snowflake_timestamp(id) >  t    id >= snowflake_first_id_after(t)
 *     snowflake_timestamp(id) <  t    id >= 0 AND id <= snowflake_last_id_before(t)
 *     snowflake_timestamp(id) <= t    id >= 0 AND id <= snowflake_last_id_until(t)
 *     snowflake_timestamp(id) =  t    id >= snowflake_first_id_from(t)
 *                                         AND id <= snowflake_last_id_until(t)
 *
 * with the layout as a further argument, and with a constant in place of the call
 * where the time is one. Numbers that are no IDs of the layout, such as negative
 * ones, have no time and meet none of them.
 *
 * The comparison is replaced in the query itself. Then whatever PostgreSQL knows
 * to do with a plain comparison of a bigint column applies: indexes of all kinds,
 * pruning of partitions, at run time too, statistics, push-down to foreign servers.
 * A planner support function by itself can do none of this: index conditions are asked
 * only of the function whose own argument is the indexed column, which here is the
 * operator's, and nobody is asked when partitions are pruned.
 *
 * The right moment is when the planner looks up a relation of the query
 * (get_relation_info_hook): all expressions have been simplified by then, and the
 * clauses not yet been handed out to relations.
 *
 * The hook is there once the library is loaded, and the support function of
 * snowflake_timestamp() sees to that: the planner calls it as it simplifies the
 * expression, so that even the first query of a session is planned like any other.
 */
#include "plan/time_predicates.h"

#include "plan/time_bounds.h"
#include "server/argument_cache.h"
#include "server/guard.h"
#include "server/layout_arg.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

SNOWFLAKE_FUNCTION(snowflake_timestamp_support)
{
    /* There is nothing to do but to be called: see above. */
    PG_RETURN_POINTER(nullptr);
}

namespace snowflake {
namespace {

get_relation_info_hook_type previous_hook = nullptr;

/* The relation whose predicates are being replaced. */
struct Target {
    PlannerInfo *root;
    Index relid;
    List *indexes; /* whose expressions are left alone */
};

/* A call of snowflake_timestamp(id [, layout]), of which the IDs sort by time. */
struct TimeOfId {
    Expr *id;
    Layout layout;
    Expr *layout_text;
    Oid schema; /* of the function, and so of all of ours */
};

/* snowflake_timestamp(id) OP time */
struct TimeComparison {
    TimeOfId left;
    StrategyNumber strategy;
    Expr *time;

    bool bounds_below() const { return strategy >= BTEqualStrategyNumber; }
    bool bounds_above() const { return strategy <= BTEqualStrategyNumber; }
};

Expr *copied(const Expr *expression) { return static_cast<Expr *>(copyObjectImpl(expression)); }

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

/* The column in a call of snowflake_timestamp(); null if the expression is no such call. */
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

/* Is this a call of snowflake_timestamp() on a column of the relation, in one of the clauses? */
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

StrategyNumber commuted(StrategyNumber strategy)
{
    return BTGreaterStrategyNumber + BTLessStrategyNumber - strategy;
}

/* A date or a timestamp is converted as the operator would. */
Expr *as_timestamptz(Node *time, Oid type)
{
    if (type == TIMESTAMPTZOID) {
        return reinterpret_cast<Expr *>(time);
    }
    const Oid cast = type == DATEOID ? F_TIMESTAMPTZ_DATE : F_TIMESTAMPTZ_TIMESTAMP;
    return reinterpret_cast<Expr *>(makeFuncExpr(cast, TIMESTAMPTZOID, list_make1(time), InvalidOid,
                                                 InvalidOid, COERCE_EXPLICIT_CAST));
}

/*
 * Can the time be given to another function? It must be the same for all rows of the
 * relation. An equality with a time of another relation is left alone: as it is, it can
 * be joined by hashing or merging.
 */
bool is_movable(const Target &target, Node *time, StrategyNumber strategy)
{
    if (contain_volatile_functions(time)) {
        return false;
    }
    const Relids relations = pull_varnos(target.root, time);
    return strategy == BTEqualStrategyNumber
               ? bms_is_empty(relations) && !contain_subplans(time)
               : !bms_is_member(static_cast<int>(target.relid), relations);
}

bool read_comparison(const Target &target, Node *node, List *clauses, TimeComparison *comparison)
{
    if (!IsA(node, OpExpr) || list_length(reinterpret_cast<OpExpr *>(node)->args) != 2) {
        return false;
    }
    const auto *clause = reinterpret_cast<OpExpr *>(node);
    auto *left = static_cast<Node *>(linitial(clause->args));
    auto *right = static_cast<Node *>(lsecond(clause->args));
    const bool on_left = read_time_of_id(target, left, clauses, &comparison->left);
    /* Of two IDs' times, the left one is taken for the one that is sought. */
    if (!on_left && (column_of_time(left) != nullptr ||
                     !read_time_of_id(target, right, clauses, &comparison->left))) {
        return false;
    }
    const Oid family = lookup_type_cache(TIMESTAMPTZOID, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
    if (!op_in_opfamily(clause->opno, family)) {
        return false;
    }
    int strategy = 0;
    Oid left_type = InvalidOid;
    Oid right_type = InvalidOid;
    get_op_opfamily_properties(clause->opno, family, false, &strategy, &left_type, &right_type);
    const auto as_written = static_cast<StrategyNumber>(strategy);
    comparison->strategy = on_left ? as_written : commuted(as_written);
    comparison->time =
        on_left ? as_timestamptz(right, right_type) : as_timestamptz(left, left_type);
    return is_movable(target, on_left ? right : left, comparison->strategy);
}

/* What the bounds of a comparison are called: null where it has none. */
struct BoundNames {
    const char *first;
    const char *last;
};

BoundNames bound_names(StrategyNumber strategy)
{
    switch (strategy) {
        case BTLessStrategyNumber:
            return {nullptr, "snowflake_last_id_before"};
        case BTLessEqualStrategyNumber:
            return {nullptr, "snowflake_last_id_until"};
        case BTEqualStrategyNumber:
            return {"snowflake_first_id_from", "snowflake_last_id_until"};
        case BTGreaterEqualStrategyNumber:
            return {"snowflake_first_id_from", nullptr};
        default:
            return {"snowflake_first_id_after", nullptr};
    }
}

/* A call of one of these functions; null if the user may not call it. */
Expr *bound_call(const TimeComparison &comparison, const char *name)
{
    const Oid types[] = {TIMESTAMPTZOID, TEXTOID};
    const Oid function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(name),
                                         PointerGetDatum(buildoidvector(types, lengthof(types))),
                                         ObjectIdGetDatum(comparison.left.schema));
    if (!OidIsValid(function) || !may_execute(function)) {
        return nullptr;
    }
    return reinterpret_cast<Expr *>(makeFuncExpr(
        function, INT8OID, list_make2(copied(comparison.time), copied(comparison.left.layout_text)),
        InvalidOid, DEFAULT_COLLATION_OID, COERCE_EXPLICIT_CALL));
}

Expr *bigint_constant(int64 value)
{
    return reinterpret_cast<Expr *>(makeConst(INT8OID, -1, InvalidOid, sizeof(int64),
                                              Int64GetDatum(value), false, FLOAT8PASSBYVAL));
}

/* `id OP bound`, simplified. */
Node *comparison_of_id(const Target &target, Expr *id, StrategyNumber strategy, Expr *bound)
{
    const Oid comparison =
        get_opfamily_member(INTEGER_BTREE_FAM_OID, INT8OID, INT8OID, static_cast<int16>(strategy));
    Expr *clause =
        make_opclause(comparison, BOOLOID, false, copied(id), bound, InvalidOid, InvalidOid);
    return eval_const_expressions(target.root, reinterpret_cast<Node *>(clause));
}

/* Do other clauses of the AND see to it that IDs of the layout alone pass, below and above? */
struct Neighbours {
    bool bound_below;
    bool bound_above;
};

Neighbours neighbours_of(const Target &target, const TimeComparison &comparison, List *clauses)
{
    Neighbours neighbours{};
    ListCell *cell = nullptr;
    foreach (cell, clauses) {
        TimeComparison other{};
        if (read_comparison(target, static_cast<Node *>(lfirst(cell)), clauses, &other) &&
            other.left.layout == comparison.left.layout &&
            equal(other.left.id, comparison.left.id)) {
            neighbours.bound_below |= other.bounds_below();
            neighbours.bound_above |= other.bounds_above();
        }
    }
    return neighbours;
}

/*
 * The clauses that together mean the same as a comparison, which is one of an AND's;
 * none if they cannot be had.
 */
List *range_of(const Target &target, const TimeComparison &comparison, List *clauses)
{
    const BoundNames names = bound_names(comparison.strategy);
    Expr *first = names.first ? bound_call(comparison, names.first) : nullptr;
    Expr *last = names.last ? bound_call(comparison, names.last) : nullptr;
    if ((names.first && !first) || (names.last && !last)) {
        return NIL;
    }
    const Neighbours neighbours = neighbours_of(target, comparison, clauses);
    const int64 last_id = last_id_with_time(comparison.left.layout);
    if (!first && !neighbours.bound_below) {
        first = bigint_constant(0);
    }
    if (!last && !neighbours.bound_above && last_id < PG_INT64_MAX) {
        last = bigint_constant(last_id);
    }
    List *range = NIL;
    if (first) {
        range = lappend(range, comparison_of_id(target, comparison.left.id,
                                                BTGreaterEqualStrategyNumber, first));
    }
    if (last) {
        range = lappend(
            range, comparison_of_id(target, comparison.left.id, BTLessEqualStrategyNumber, last));
    }
    return range;
}

bool is_false_or_null(Node *node)
{
    const auto *constant = reinterpret_cast<Const *>(node);
    return IsA(node, Const) && (constant->constisnull || !DatumGetBool(constant->constvalue));
}

/* Clauses are trees: NOLINTBEGIN(misc-no-recursion) */

List *replaced_conjuncts(const Target &target, List *clauses);

/* The arms of an OR with their predicates replaced: the same list if there are none. */
List *replaced_disjuncts(const Target &target, List *arms)
{
    List *result = NIL;
    bool changed = false;
    ListCell *cell = nullptr;
    foreach (cell, arms) {
        List *before = make_ands_implicit(static_cast<Expr *>(lfirst(cell)));
        List *after = replaced_conjuncts(target, before);
        if (after == before) {
            result = lappend(result, lfirst(cell));
            continue;
        }
        changed = true;
        auto *arm = reinterpret_cast<Node *>(make_ands_explicit(after));
        if (!is_false_or_null(arm)) {
            result = lappend(result, arm);
        }
    }
    return changed ? result : arms;
}

/* A clause of an AND as the clauses to stand in its place; none if it can stay. */
List *replacement_of(const Target &target, Node *clause, List *clauses)
{
    TimeComparison comparison{};
    if (is_andclause(clause)) {
        List *before = reinterpret_cast<BoolExpr *>(clause)->args;
        List *after = replaced_conjuncts(target, before);
        return after == before ? NIL : after;
    }
    if (is_orclause(clause)) {
        List *before = reinterpret_cast<BoolExpr *>(clause)->args;
        List *after = replaced_disjuncts(target, before);
        if (after == before) {
            return NIL;
        }
        return make_ands_implicit(after == NIL
                                      ? reinterpret_cast<Expr *>(makeBoolConst(false, false))
                                  : list_length(after) == 1 ? static_cast<Expr *>(linitial(after))
                                                            : make_orclause(after));
    }
    if (read_comparison(target, clause, clauses, &comparison)) {
        return range_of(target, comparison, clauses);
    }
    return NIL;
}

/*
 * The clauses of an AND with their predicates replaced: the same list if there are
 * none. Whoever reads the result asks only whether it is true, so a null is as good as
 * false. That holds within ANDs and ORs, but nowhere deeper.
 */
List *replaced_conjuncts(const Target &target, List *clauses)
{
    check_stack_depth();
    List *result = NIL;
    bool changed = false;
    ListCell *cell = nullptr;
    foreach (cell, clauses) {
        List *replacement = replacement_of(target, static_cast<Node *>(lfirst(cell)), clauses);
        if (replacement == NIL) {
            result = lappend(result, lfirst(cell));
            continue;
        }
        changed = true;
        ListCell *inner = nullptr;
        foreach (inner, replacement) {
            if (is_false_or_null(static_cast<Node *>(lfirst(inner)))) {
                return list_make1(makeBoolConst(false, false));
            }
        }
        result = list_concat(result, replacement);
    }
    return changed ? result : clauses;
}

/* Replaces the predicates of WHERE and JOIN ... ON, which are lists by now. */
void replace_in_join_tree(const Target &target, Node *node)
{
    check_stack_depth();
    ListCell *cell = nullptr;
    if (node == nullptr) {
        return;
    }
    if (IsA(node, FromExpr)) {
        auto *from = reinterpret_cast<FromExpr *>(node);
        foreach (cell, from->fromlist) {
            replace_in_join_tree(target, static_cast<Node *>(lfirst(cell)));
        }
        from->quals = reinterpret_cast<Node *>(
            replaced_conjuncts(target, reinterpret_cast<List *>(from->quals)));
    } else if (IsA(node, JoinExpr)) {
        auto *join = reinterpret_cast<JoinExpr *>(node);
        replace_in_join_tree(target, join->larg);
        replace_in_join_tree(target, join->rarg);
        join->quals = reinterpret_cast<Node *>(
            replaced_conjuncts(target, reinterpret_cast<List *>(join->quals)));
    }
}

/* NOLINTEND(misc-no-recursion) */

/* Replaces the predicates of row-level security and security-barrier views. */
void replace_in_security_quals(const Target &target, RangeTblEntry *entry)
{
    ListCell *cell = nullptr;
    foreach (cell, entry->securityQuals) {
        lfirst(cell) = replaced_conjuncts(target, static_cast<List *>(lfirst(cell)));
    }
}

/*
 * Replaces the predicates on a UNION ALL that has been made an append relation, in time
 * for its member that is being looked up to inherit them.
 */
void replace_in_parent(PlannerInfo *root, const RelOptInfo *member)
{
    const AppendRelInfo *link = root->append_rel_array[member->relid];
    const Index parent = link->parent_relid;
    if (root->simple_rte_array[parent]->rtekind != RTE_SUBQUERY) {
        return;
    }
    const Target target = {root, parent, NIL};
    List *infos = root->simple_rel_array[parent]->baserestrictinfo;
    List *clauses = get_actual_clauses(infos);
    ListCell *cell = nullptr;
    foreach (cell, infos) {
        auto *info = static_cast<RestrictInfo *>(lfirst(cell));
        List *replacement = replacement_of(target, reinterpret_cast<Node *>(info->clause), clauses);
        if (replacement != NIL) {
            info->clause = make_ands_explicit(replacement);
        }
    }
}

/*
 * What partial indexes promise has to be said in the same way as what queries ask
 * for, or else the planner does not see that one implies the other.
 */
void replace_in_index_predicates(const Target &target)
{
    ListCell *cell = nullptr;
    foreach (cell, target.indexes) {
        auto *index = static_cast<IndexOptInfo *>(lfirst(cell));
        index->indpred = replaced_conjuncts(target, index->indpred);
    }
}

void replace_time_predicates(PlannerInfo *root, Oid relation, bool is_parent, RelOptInfo *rel)
{
    if (previous_hook != nullptr) {
        previous_hook(root, relation, is_parent, rel);
    }
    /* Partitions are chosen by the parent's predicates, whatever indexes there are. */
    const Target target = {root, rel->relid, is_parent ? NIL : rel->indexlist};
    if (rel->reloptkind == RELOPT_BASEREL) {
        replace_in_join_tree(target, reinterpret_cast<Node *>(root->parse->jointree));
        replace_in_security_quals(target, root->simple_rte_array[rel->relid]);
    } else if (rel->reloptkind == RELOPT_OTHER_MEMBER_REL) {
        replace_in_parent(root, rel);
    }
    replace_in_index_predicates(target);
}

} /* namespace */

void install_planner_hooks()
{
    previous_hook = get_relation_info_hook;
    get_relation_info_hook = replace_time_predicates;
}

} /* namespace snowflake */
