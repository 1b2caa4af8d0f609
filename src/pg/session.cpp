/*
 * session.cpp
 *     Sessions and their generator states; see session.h.
 */
#include "pg/session.h"

#include <cstring>

#include "pg/registry.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

namespace snowflake {

Session *active_session = nullptr;
GeneratorState *my_state = nullptr;
BackendActivity *my_activity = nullptr;

namespace {

Session *sessions = nullptr;

/*
 * The function of the last call and its session: a statement is set up anew for
 * each execution, so a call site's own memory is empty at its first call.
 */
Oid last_function = InvalidOid;
Session *last_session = nullptr;
bool callback_registered = false;

ProcessUtility_hook_type previous_process_utility = nullptr;

void on_function_change(Datum arg, int cache, uint32 hash) { last_function = InvalidOid; }

void leave_place(int code, Datum arg)
{
    my_activity->pid.set(0);
}

void take_place()
{
    SharedState *state = shared_state();
    const int number = my_proc_number();
    if (number < 0 || static_cast<std::uint32_t>(number) >= state->backends) {
        elog(ERROR, "backend number %d is out of range", number);
    }
    my_state = state->generator_state(static_cast<std::uint32_t>(number));
    my_activity = state->activity(static_cast<std::uint32_t>(number));
    my_state->begin_session();
    my_activity->pid.set(MyProcPid);
    my_activity->database.set(MyDatabaseId);
    my_activity->pool.set(kNone);
    before_shmem_exit(leave_place, Datum{0});
}

ParkedState park(const GeneratorState &state)
{
    return {state.next.get(),       state.end.get(),     state.lease_version.get(),
            state.lease_index.get(), state.machine_id.get(), state.last_id.get(),
            state.run_length.get()};
}

void unpark(const ParkedState &parked, GeneratorState *state)
{
    state->next.set(parked.next);
    state->end.set(parked.end);
    state->lease_version.set(parked.lease_version);
    state->lease_index.set(parked.lease_index);
    state->machine_id.set(parked.machine_id);
    state->last_id.set(parked.last_id);
    state->run_length.set(parked.run_length);
}

Session *find_or_make_session(const PoolKey &key)
{
    for (Session *session = sessions; session != nullptr; session = session->next) {
        if (session->key.extension == key.extension && session->key.layout == key.layout &&
            std::strcmp(NameStr(session->key.generator), NameStr(key.generator)) == 0) {
            return session;
        }
    }
    auto *session =
        static_cast<Session *>(MemoryContextAllocZero(TopMemoryContext, sizeof(Session)));
    session->key = key;
    session->pool = kNone;
    session->parked.last_id = -1;
    session->currval = -1;
    session->next = sessions;
    sessions = session;
    return session;
}

PoolKey key_of_default(Oid function)
{
    PoolKey key{};
    key.database = MyDatabaseId;
    key.extension = extension_of_function(function);
    key.layout = kDefaultLayout;
    namestrcpy(&key.generator, "default");
    return key;
}

/* DISCARD ALL and DISCARD SEQUENCES reset what sequences remember; ours too. */
void on_process_utility(PlannedStmt *statement, const char *text, bool read_only_tree,
                        ProcessUtilityContext context, ParamListInfo params,
                        QueryEnvironment *environment, DestReceiver *destination,
                        QueryCompletion *completion)
{
    const Node *node = statement->utilityStmt;
    const bool discards =
        IsA(node, DiscardStmt) &&
        (reinterpret_cast<const DiscardStmt *>(node)->target == DISCARD_ALL ||
         reinterpret_cast<const DiscardStmt *>(node)->target == DISCARD_SEQUENCES);
    const ProcessUtility_hook_type next =
        previous_process_utility != nullptr ? previous_process_utility : standard_ProcessUtility;
    next(statement, text, read_only_tree, context, params, environment, destination, completion);
    if (discards) {
        forget_current_values();
    }
}

} /* namespace */

Session *session_of_call(FunctionCallInfo fcinfo)
{
    const Oid function = fcinfo->flinfo->fn_oid;
    if (function == last_function) {
        return last_session;
    }
    if (!callback_registered) {
        CacheRegisterSyscacheCallback(PROCOID, on_function_change, Datum{0});
        callback_registered = true;
    }
    Session *session = find_or_make_session(key_of_default(function));
    last_session = session;
    last_function = function;
    return session;
}

void activate(Session *session)
{
    if (my_state == nullptr) {
        take_place();
    } else if (active_session != nullptr) {
        active_session->parked = park(*my_state);
    }
    active_session = session;
    unpark(session->parked, my_state);
    my_activity->pool.set(session->pool);
}

void refresh_leases(Session *session)
{
    SharedState *state = shared_state();
    if (session->pool != kNone) {
        const Pool &pool = state->pools[session->pool];
        if (pool.change.load(std::memory_order_acquire) == session->change_seen) {
            return;
        }
    }
    lock_state(LW_SHARED);
    session->pool = find_pool(session->key);
    session->count = 0;
    if (session->pool != kNone) {
        const Pool &pool = state->pools[session->pool];
        session->pool_generation = pool.generation;
        session->change_seen = pool.change.load(std::memory_order_relaxed);
        session->count = pool.count;
        std::memcpy(session->refs, pool.refs, sizeof(LeaseRef) * pool.count);
    }
    unlock_state();
    my_activity->pool.set(session->pool);
}

void forget_current_values()
{
    for (Session *session = sessions; session != nullptr; session = session->next) {
        session->currval = -1;
    }
}

void install_session_hooks()
{
    previous_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = on_process_utility;
}

} /* namespace snowflake */
