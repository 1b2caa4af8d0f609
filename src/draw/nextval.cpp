/*
 * nextval.cpp
 *     The SQL functions that draw IDs: snowflake_nextval(), snowflake_nextvals()
 *     and snowflake_currval().
 *
 * The usual call is short: find the session of the call site, read the clock,
 * use a tick of the run at hand. Everything else is in draw_slowly(), which does
 * what the core's verdicts say until there is an ID.
 */
#include <algorithm>
#include <cinttypes>

#include "core/draw.h"
#include "draw/session.h"
#include "lease/lease_request.h"
#include "server/clock.h"
#include "server/sql_function.h"
#include "server/settings.h"
#include "server/wait.h"

namespace snowflake {
namespace {

inline std::int64_t id_time(const Layout &layout) { return layout.from_unix_ms(wall_clock_ms()); }

[[noreturn]] void report_before_epoch(const Session &session)
{
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("the clock shows a time before the epoch of generator \"%s\"",
                NameStr(session.key.generator)),
         errdetail("The clock shows %s, the epoch is %s.",
                   pstrdup(timestamptz_to_str(timestamptz_of(wall_clock_us()))),
                   pstrdup(timestamptz_to_str(timestamptz_of(session.key.layout.epoch_ms * 1000)))),
         errhint("Set the server's clock.")));
    pg_unreachable();
}

[[noreturn]] void report_end_of_time(const Session &session)
{
    const Layout &layout = session.key.layout;
    const std::int64_t end_us = layout.to_unix_ms(layout.timestamp.max()) * 1000;
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("generator \"%s\" has no more IDs: its time ended at %s",
                    NameStr(session.key.generator),
                    pstrdup(timestamptz_to_str(timestamptz_of(end_us)))),
             errdetail("A timestamp of %d bits cannot show a later time.", layout.timestamp.bits),
             errhint("If the server's clock is right, use a generator with a later epoch or a "
                     "wider timestamp.")));
    pg_unreachable();
}

[[noreturn]] void report_clock_stuck(std::int64_t unix_ms)
{
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the clock has not caught up within %d ms", max_clock_wait_ms),
             errdetail("The next ID is due at %s.",
                       pstrdup(timestamptz_to_str(timestamptz_of(unix_ms * 1000)))),
             errhint("The clock steps back again and again, or stands still. Correct it, or raise "
                     "snowflake.max_clock_wait.")));
    pg_unreachable();
}

/* Notes a clock that shows less than it did at this session's last look. */
void note_clock(Session *session, std::int64_t now)
{
    const std::int64_t step = session->last_now - now;
    session->last_now = now;
    if (step <= 0) {
        return;
    }
    const std::int64_t step_ms = step * unit_ms(session->key.layout.unit);
    my_activity->clock_steps.add(1);
    my_activity->last_step_ms.set(step_ms);
    my_activity->largest_step_ms.set(std::max(my_activity->largest_step_ms.get(), step_ms));
    my_activity->last_step_at.set(timestamptz_of(wall_clock_us()));
}

/* Counts a wait when it is over; what ends in an error is counted too. */
void count_wait(WaitCause cause, std::int64_t began_us)
{
    const auto which = static_cast<int>(cause);
    my_activity->waits[which].add(1);
    my_activity->waited_us[which].add(static_cast<std::uint64_t>(monotonic_us() - began_us));
}

/* How long waits for the clock may take together before the clock is taken for stuck. */
std::int64_t clock_patience_us(const Layout &layout)
{
    /* A clock may be slewed to half its pace; a used-up unit is waited for in any case. */
    return (static_cast<std::int64_t>(max_clock_wait_ms) + unit_ms(layout.unit)) * 2000 + 100000;
}

pg_noinline std::int64_t draw_slowly(Session *session, std::uint32_t hint)
{
    const Layout &layout = session->key.layout;
    const Source source{&layout, shared_state()->leases, session->refs, 0,
                        terms_for(layout).max_wait};
    std::int64_t acquire_deadline = 0;
    std::int64_t clock_deadline = 0;
    std::int64_t latest_now = -1;
    std::int64_t waiting_since = 0;
    WaitCause cause = WaitCause::Clock;

    for (;;) {
        refresh_leases(session);
        Source current = source;
        current.count = session->count;
        const std::int64_t now = id_time(layout);
        note_clock(session, now);
        if (now > latest_now) {
            /* a clock that goes on, however long the queue, is not stuck */
            latest_now = now;
            clock_deadline = 0;
        }
        const Draw drawn = draw(*my_state, current, now, hint);

        if (drawn.verdict != Verdict::Wait && waiting_since != 0) {
            count_wait(cause, waiting_since);
            waiting_since = 0;
        }
        switch (drawn.verdict) {
            case Verdict::Issued:
                if (drawn.renewal_is_due || session->machine_ids_seen != machine_ids_version()) {
                    session->machine_ids_seen = machine_ids_version();
                    request_renewal(*session);
                }
                return drawn.id;
            case Verdict::Wait: {
                const std::int64_t mono = monotonic_us();
                acquire_deadline = 0; /* the lease serves: a later need is a new one */
                if (waiting_since == 0) {
                    waiting_since = mono;
                    cause = drawn.saturated ? WaitCause::Sequence : WaitCause::Clock;
                }
                if (clock_deadline == 0) {
                    clock_deadline = mono + clock_patience_us(layout);
                }
                if (mono > clock_deadline) {
                    count_wait(cause, waiting_since);
                    report_clock_stuck(layout.to_unix_ms(drawn.until));
                }
                if (cause == WaitCause::Sequence) {
                    request_growth(*session);
                }
                wait_for_clock(layout.to_unix_ms(drawn.until));
                break;
            }
            case Verdict::NeedLease:
            case Verdict::ClockBehind: {
                const std::int64_t mono = monotonic_us();
                if (acquire_deadline == 0) {
                    acquire_deadline = mono + static_cast<std::int64_t>(acquire_timeout_ms) * 1000;
                }
                acquire_lease(*session, acquire_deadline);
                count_wait(WaitCause::Lease, mono);
                break;
            }
            case Verdict::BeforeEpoch:
                report_before_epoch(*session);
            case Verdict::EndOfTime:
                report_end_of_time(*session);
        }
    }
}

/* `hint`: how many IDs the caller is about to draw. */
inline std::int64_t next_id(Session *session, std::uint32_t hint)
{
    if (session != active_session) {
        activate(session);
    }
    const Layout &layout = session->key.layout;
    GeneratorState &state = *my_state;
    std::int64_t id = draw_from_run(state, layout, shared_state()->leases[state.lease_index.get()],
                                    id_time(layout));
    if (id < 0) {
        id = draw_slowly(session, hint);
    }
    session->currval = id;
    return id;
}

} /* namespace */
} /* namespace snowflake */

using namespace snowflake;

/*
 * Not every symbol has the name of its SQL function: another extension's library is
 * named snowflake.so too, and has functions snowflake_nextval and snowflake_currval with
 * other arguments. Where one library is installed over the other, neither's SQL
 * functions must find the other's code.
 */
SNOWFLAKE_FUNCTION(snowflake_next_id) { PG_RETURN_INT64(next_id(session_of_call(fcinfo, 0), 1)); }

/* The twin of snowflake_nextval() for COPY, see copy_default.cpp; its first argument says nothing.
 */
SNOWFLAKE_FUNCTION(snowflake_next_id_in_copy)
{
    PG_RETURN_INT64(next_id(session_of_call(fcinfo, 1), 1));
}

SNOWFLAKE_FUNCTION(snowflake_next_ids)
{
    if (SRF_IS_FIRSTCALL()) {
        const std::int32_t count = PG_GETARG_INT32(0);
        if (count < 0) {
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("count of IDs must not be negative: %d", count),
                            errhint("Give a count of 0 or more.")));
        }
        FuncCallContext *first = SRF_FIRSTCALL_INIT();
        first->max_calls = static_cast<uint64>(count);
        first->user_fctx = session_of_call(fcinfo, 1);
    }
    FuncCallContext *call = SRF_PERCALL_SETUP();
    if (call->call_cntr >= call->max_calls) {
        SRF_RETURN_DONE(call);
    }
    const auto left = static_cast<std::uint32_t>(call->max_calls - call->call_cntr);
    const std::int64_t id = next_id(static_cast<Session *>(call->user_fctx), left);
    SRF_RETURN_NEXT(call, Int64GetDatum(id));
}

SNOWFLAKE_FUNCTION(snowflake_current_id)
{
    const Session *session = session_of_call(fcinfo, 0);
    if (session->currval < 0) {
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" has not drawn an ID in this session yet",
                               NameStr(session->key.generator)),
                        errhint("Call snowflake_nextval() first.")));
    }
    PG_RETURN_INT64(session->currval);
}
