/*
 * session.cpp
 *     Sessions and their generator states; see session.h.
 */
#include "draw/session.h"

#include <cstring>

#include "lease/generators.h"
#include "lease/pools.h"
#include "server/definer_call.h"
#include "server/settings.h"

extern "C" {
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

namespace snowflake {

Session *active_session = nullptr;
GeneratorState *my_state = nullptr;
BackendActivity *my_activity = nullptr;
Oid latest_function = InvalidOid;
Session *latest_session = nullptr;

namespace {

Session *sessions = nullptr;

Oid last_named_function = InvalidOid;
Oid last_extension = InvalidOid;
Oid watched_table = InvalidOid;
bool callbacks_registered = false;

void on_function_change(Datum arg, SyscacheId cache, uint32 hash)
{
    latest_function = InvalidOid;
    last_named_function = InvalidOid;
}

/* A generator may have been dropped, or its making rolled back. */
void on_relation_change(Datum arg, Oid relation)
{
    if (relation == InvalidOid || relation == watched_table) {
        forget_generators();
    }
}

/* Adds what this slot has issued to the count of the generator that it was issued for. */
void count_issued()
{
    const std::uint32_t pool = my_activity->pool.get();
    const std::uint64_t issued = my_state->issued.get();
    if (pool != kNone) {
        shared_state()->pools[pool].issued.fetch_add(issued - my_activity->counted.get(),
                                                     std::memory_order_relaxed);
    }
    my_activity->counted.set(issued);
}

void show_pool(std::uint32_t pool)
{
    if (pool != my_activity->pool.get()) {
        count_issued();
        my_activity->pool.set(pool);
    }
}

void leave_slot(int code, Datum arg)
{
    show_pool(kNone);
    my_activity->pid.set(0);
}

void take_slot()
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
    my_activity->counted.set(my_state->issued.get());
    before_shmem_exit(leave_slot, Datum{0});
}

ParkedState park(const GeneratorState &state)
{
    return {state.next.get(),        state.end.get(),        state.lease_version.get(),
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

Session *find_session(Oid extension, std::string_view name)
{
    for (Session *session = sessions; session != nullptr; session = session->next) {
        if (session->resolved && session->extension == extension &&
            name == NameStr(session->key.generator)) {
            return session;
        }
    }
    return nullptr;
}

Session *find_or_make_session(Oid extension, const PoolKey &key)
{
    for (Session *session = sessions; session != nullptr; session = session->next) {
        if (session->extension == extension && same_key(session->key, key)) {
            return session;
        }
    }
    auto *session =
        static_cast<Session *>(MemoryContextAllocZero(TopMemoryContext, sizeof(Session)));
    session->extension = extension;
    session->key = key;
    session->pool = kNone;
    session->parked.last_id = -1;
    session->currval = -1;
    session->machine_ids_seen = machine_ids_version();
    session->next = sessions;
    sessions = session;
    return session;
}

/* Looks the generator up in the database, and remembers it. */
Session *resolve(Oid extension, std::string_view name)
{
    const GeneratorRow row = find_generator(extension, name);
    if (name != kBuiltInGenerator) {
        watched_table = generator_table(extension);
    }
    if (!row.found) {
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT),
                 errmsg("generator \"%s\" does not exist", pnstrdup(name.data(), name.size())),
                 errhint("Make it with snowflake_create_generator().")));
    }
    /* With a shared registry a lease belongs to the server, and all its databases draw from it. */
    PoolKey key{};
    key.database = registry_is_shared() ? InvalidOid : MyDatabaseId;
    key.extension = registry_is_shared() ? InvalidOid : extension;
    key.layout = row.layout;
    std::memcpy(NameStr(key.generator), name.data(), name.size());
    Session *session = find_or_make_session(extension, key);
    session->resolved = true;
    return session;
}

/* The generator of a call without a name, by the function called. */
Session *session_of_default(Oid function)
{
    latest_session = resolve(extension_of_function(function), kBuiltInGenerator);
    latest_function = function;
    return latest_session;
}

Session *session_of_named(Oid function, const text *name_text)
{
    const std::string_view name(VARDATA_ANY(name_text), VARSIZE_ANY_EXHDR(name_text));
    if (function != last_named_function) {
        last_extension = extension_of_function(function);
        last_named_function = function;
    }
    Session *session = find_session(last_extension, name);
    return session != nullptr ? session : resolve(last_extension, name);
}

} /* namespace */

Session *look_up_session(FunctionCallInfo fcinfo, int argno)
{
    if (!callbacks_registered) {
        CacheRegisterSyscacheCallback(PROCOID, on_function_change, Datum{0});
        CacheRegisterRelcacheCallback(on_relation_change, Datum{0});
        callbacks_registered = true;
    }
    const Oid function = fcinfo->flinfo->fn_oid;
    return PG_NARGS() > argno ? session_of_named(function, PG_GETARG_TEXT_PP(argno))
                              : session_of_default(function);
}

void activate(Session *session)
{
    if (my_state == nullptr) {
        take_slot();
    } else if (active_session != nullptr) {
        active_session->parked = park(*my_state);
    }
    active_session = session;
    unpark(session->parked, my_state);
    show_pool(session->pool);
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
    show_pool(session->pool);
}

void forget_generators()
{
    for (Session *session = sessions; session != nullptr; session = session->next) {
        session->resolved = false;
    }
    latest_function = InvalidOid;
}

void forget_current_values()
{
    for (Session *session = sessions; session != nullptr; session = session->next) {
        session->currval = -1;
    }
}

} /* namespace snowflake */
