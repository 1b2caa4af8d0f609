/*
 * session.h
 *     What a session knows of a generator that it draws on.
 *
 * The generator state itself is in shared memory, one slot per backend. It
 * belongs to the generator drawn on last; that of others is parked here.
 */
#pragma once

#include <cstdint>

#include "core/draw.h"
#include "lease/pools.h"
#include "server/compat.h"

namespace snowflake {

struct ParkedState {
    std::uint64_t next;
    std::uint64_t end;
    std::uint64_t lease_version;
    std::uint32_t lease_index;
    std::uint32_t machine_id;
    std::int64_t last_id;
    std::uint32_t run_length;
};

struct Session : PoolView {
    Oid extension; /* whose function was called */
    bool resolved; /* the generator is known to exist */
    ParkedState parked;
    /* machine_ids_version() when the leases were last looked after */
    std::uint32_t machine_ids_seen;
    std::int64_t currval;  /* -1: none since the session began or was discarded */
    std::int64_t last_now; /* ID time: to notice a clock that steps back */
    Session *next;
};

/*
 * The function of the latest call without a generator's name, and its session: a statement
 * is set up anew for each execution, so a call site's own memory is empty at its first call.
 */
extern Oid latest_function;
extern Session *latest_session;

/* The same by looking it up. */
Session *look_up_session(FunctionCallInfo fcinfo, int argno);

/*
 * The session's entry for the generator that a function call is about: the one
 * that argument `argno` names, or the built-in one where the call has fewer.
 */
inline Session *session_of_call(FunctionCallInfo fcinfo, int argno)
{
    return PG_NARGS() <= argno && fcinfo->flinfo->fn_oid == latest_function
               ? latest_session
               : look_up_session(fcinfo, argno);
}

/* Makes this backend's slot in shared memory that of the session's generator. */
void activate(Session *session);

/* The active session and its slots in shared memory; null before the first. */
extern Session *active_session;
extern GeneratorState *my_state;
extern BackendActivity *my_activity;

/* Brings the session's copy of the pool's leases up to date. */
void refresh_leases(Session *session);

/* Makes calls look their generators up again. */
void forget_generators();

/* DISCARD ALL and DISCARD SEQUENCES: no session has a current value any longer. */
void forget_current_values();

} /* namespace snowflake */
