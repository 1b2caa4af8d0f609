/*
 * utility_hook.cpp
 *     The extension's one hook into utility statements; see utility_hook.h.
 */
#include "draw/utility_hook.h"

#include "draw/session.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
}

namespace snowflake {
namespace {

ProcessUtility_hook_type next_hook = nullptr;
const Node *under_way = nullptr;

/* DISCARD ALL and DISCARD SEQUENCES reset what sequences remember; ours too. */
bool discards_sequences(const Node *statement)
{
    if (!IsA(statement, DiscardStmt)) {
        return false;
    }
    const DiscardMode target = reinterpret_cast<const DiscardStmt *>(statement)->target;
    return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
}

void on_process_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
                        ProcessUtilityContext context, ParamListInfo params,
                        QueryEnvironment *environment, DestReceiver *destination,
                        QueryCompletion *completion)
{
    /* Beforehand: a statement may free itself, as ROLLBACK does. */
    const volatile bool discards = discards_sequences(statement->utilityStmt);
    const Node *outer = under_way;
    under_way = statement->utilityStmt;
    PG_TRY();
    {
        next_hook(statement, text, read_only_tree, context, params, environment, destination,
                  completion);
    }
    PG_FINALLY();
    {
        under_way = outer;
    }
    PG_END_TRY();
    if (discards) {
        forget_current_values();
    }
}

} /* namespace */

const Node *utility_statement_under_way() { return under_way; }

void install_utility_hook()
{
    next_hook = ProcessUtility_hook != nullptr ? ProcessUtility_hook : standard_ProcessUtility;
    ProcessUtility_hook = on_process_utility;
}

} /* namespace snowflake */
