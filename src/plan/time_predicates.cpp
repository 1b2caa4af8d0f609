/*
 * time_predicates.cpp
 *     Where a query compares the times of IDs, ranges of IDs take their place.
 *
 * The comparison is replaced in the query itself. Then whatever PostgreSQL knows
 * to do with a plain comparison of a bigint column applies: indexes of all kinds,
 * pruning of partitions, at run time too, statistics, push-down to foreign servers.
 * A planner support function by itself can do none of this: index conditions are asked
 * only of the function whose own argument is the indexed column, which here is the
 * operator's, and nobody is asked when partitions are pruned.
 *
 * The right moment is when the planner has looked up a relation of the query
 * (on_table_planned()): all expressions have been simplified by then, and the
 * clauses not yet been handed out to relations.
 *
 * The hook is there once the library is loaded, and the support function of
 * snowflake_timestamp() sees to that: the planner calls it as it simplifies the
 * expression, so that even the first query of a session is planned like any other.
 */
#include "plan/time_predicates.h"

#include "plan/id_range.h"
#include "plan/time_of_id.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
}

namespace snowflake {
namespace {

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
    return range_of(target, clause, clauses);
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

void replace_time_predicates(PlannerInfo *root, RelOptInfo *rel, bool is_parent)
{
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

void install_planner_hooks() { on_table_planned(replace_time_predicates); }

} /* namespace snowflake */
