/*
 * id_range.cpp
 *     See id_range.h.
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
 */
#include "plan/id_range.h"

#include "plan/time_bounds.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

namespace snowflake {
namespace {

/* snowflake_timestamp(id) OP time */
struct TimeComparison {
    TimeOfId left;
    StrategyNumber strategy;
    Expr *time;

    bool bounds_below() const { return strategy >= BTEqualStrategyNumber; }
    bool bounds_above() const { return strategy <= BTEqualStrategyNumber; }
};

Expr *copied(const Expr *expression) { return static_cast<Expr *>(copyObjectImpl(expression)); }

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

} /* namespace */

List *range_of(const Target &target, Node *clause, List *clauses)
{
    TimeComparison comparison{};
    if (!read_comparison(target, clause, clauses, &comparison)) {
        return NIL;
    }
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

} /* namespace snowflake */
