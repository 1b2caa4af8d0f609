/*
 * time_of_id.h
 *     Which expressions of a query are the time of an ID.
 */
#pragma once

#include "core/layout.h"
#include "server/compat.h"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace snowflake {

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

/* The column in a call of snowflake_timestamp(); null if the expression is no such call. */
const Var *column_of_time(Node *node);

/* Is this a call of snowflake_timestamp() on a column of the relation, in one of the clauses? */
bool read_time_of_id(const Target &target, Node *node, List *clauses, TimeOfId *call);

} /* namespace snowflake */
