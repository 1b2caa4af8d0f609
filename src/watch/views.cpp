/*
 * views.cpp
 *     What the views show: backends, pools of leases, sums, the instance's number.
 */
#include <algorithm>

#include "lease/shared_state.h"
#include "server/clock.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "utils/acl.h"
}

namespace snowflake {
namespace {

Datum interval_datum(std::uint64_t us)
{
    auto *interval = static_cast<Interval *>(palloc0(sizeof(Interval)));
    interval->time = static_cast<std::int64_t>(us);
    return IntervalPGetDatum(interval);
}

Datum int64_datum(std::uint64_t value) { return Int64GetDatum(static_cast<std::int64_t>(value)); }

/* The name of the generator of a pool; null where its slot is empty. */
char *generator_of(std::uint32_t pool)
{
    char *name = nullptr;
    if (pool < kMaxPools) {
        lock_state(LW_SHARED);
        const Pool &slot = shared_state()->pools[pool];
        if (slot.in_use) {
            name = pstrdup(NameStr(slot.key.generator));
        }
        unlock_state();
    }
    return name;
}

void show_backend(ReturnSetInfo *result, std::uint32_t backend, bool sees_all)
{
    constexpr int kColumns = 13;
    SharedState *state = shared_state();
    const GeneratorState &generator = *state->generator_state(backend);
    const BackendActivity &activity = *state->activity(backend);
    const std::int32_t pid = activity.pid.get();
    const std::uint64_t issued = generator.issued.get();
    if (pid == 0 && issued == 0) {
        return;
    }
    const bool shows_ids = pid != 0 && (sees_all || pid == MyProcPid);
    const std::uint64_t next = generator.next.get();
    const std::uint64_t end = generator.end.get();
    char *name = pid == 0 ? nullptr : generator_of(activity.pool.get());

    Datum values[kColumns] = {};
    bool nulls[kColumns] = {};
    int column = 0;
    const auto show = [&](bool known, Datum value) {
        values[column] = value;
        nulls[column++] = !known;
    };
    show(pid != 0, Int32GetDatum(pid));
    show(pid != 0, ObjectIdGetDatum(activity.database.get()));
    show(name != nullptr, name == nullptr ? Datum{0} : CStringGetTextDatum(name));
    show(pid != 0 && generator.lease_version.get() != 0,
         Int32GetDatum(static_cast<std::int32_t>(generator.machine_id.get())));
    show(shows_ids && generator.last_id.get() >= 0, Int64GetDatum(generator.last_id.get()));
    show(pid != 0, int64_datum(next < end ? end - next : 0));
    show(true, int64_datum(issued));
    for (const WaitCause cause : {WaitCause::Clock, WaitCause::Sequence, WaitCause::Lease}) {
        show(true, int64_datum(activity.waits[static_cast<int>(cause)].get()));
        show(true, interval_datum(activity.waited_us[static_cast<int>(cause)].get()));
    }
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* The sums over all backends' slots and keepers, since the instance began. */
Totals totals_so_far()
{
    SharedState *state = shared_state();
    Totals totals{};
    for (std::uint32_t i = 0; i < state->backends; i++) {
        const BackendActivity &activity = *state->activity(i);
        totals.issued += state->generator_state(i)->issued.get();
        totals.clock_steps += activity.clock_steps.get();
        for (int cause = 0; cause < kWaitCauses; cause++) {
            totals.waits[cause] += activity.waits[cause].get();
            totals.waited_us[cause] += activity.waited_us[cause].get();
        }
    }
    lock_state(LW_SHARED);
    totals.leases = state->counts;
    unlock_state();
    return totals;
}

struct ClockSteps {
    std::int64_t largest_ms;
    std::int64_t last_ms;
    TimestampTz last_at; /* 0: there was none */
};

ClockSteps clock_steps_so_far()
{
    SharedState *state = shared_state();
    ClockSteps steps{};
    for (std::uint32_t i = 0; i < state->backends; i++) {
        const BackendActivity &activity = *state->activity(i);
        steps.largest_ms = std::max(steps.largest_ms, activity.largest_step_ms.get());
        if (activity.last_step_at.get() > steps.last_at) {
            steps.last_at = activity.last_step_at.get();
            steps.last_ms = activity.last_step_ms.get();
        }
    }
    return steps;
}

/* The leases that can still serve: one that has run out stays in its pool until a keeper looks. */
std::int32_t machine_ids_held(const Pool &pool)
{
    const std::int64_t now = pool.key.layout.from_unix_ms(wall_clock_ms());
    return static_cast<std::int32_t>(
        std::count_if(pool.refs, pool.refs + pool.count, [now](const LeaseRef &ref) {
            return shared_state()->leases[ref.index].horizon.load(std::memory_order_relaxed) > now;
        }));
}

void show_pool(ReturnSetInfo *result, const Pool &pool, std::uint64_t issued)
{
    Datum values[] = {ObjectIdGetDatum(pool.key.database),
                      CStringGetTextDatum(NameStr(pool.key.generator)),
                      int64_datum(issued),
                      Int32GetDatum(machine_ids_held(pool)),
                      int64_datum(pool.counts.claims),
                      int64_datum(pool.counts.renewals),
                      int64_datum(pool.counts.failures),
                      int64_datum(pool.counts.switches),
                      int64_datum(pool.counts.lost)};
    bool nulls[lengthof(values)] = {};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* How many IDs a pool's present sessions have drawn on it. */
std::uint64_t issued_now(std::uint32_t pool)
{
    SharedState *state = shared_state();
    std::uint64_t issued = 0;
    for (std::uint32_t i = 0; i < state->backends; i++) {
        const BackendActivity &activity = *state->activity(i);
        if (activity.pool.get() == pool) {
            issued += state->generator_state(i)->issued.get() - activity.counted.get();
        }
    }
    return issued;
}

Datum row_datum(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
    TupleDesc columns = nullptr;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) {
        elog(ERROR, "return type must be a row type");
    }
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls));
}

} /* namespace */
} /* namespace snowflake */

using namespace snowflake;

SNOWFLAKE_FUNCTION(snowflake_backends)
{
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    const bool sees_all = has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
    for (std::uint32_t i = 0; i < shared_state()->backends; i++) {
        show_backend(result, i, sees_all);
    }
    return Datum{0};
}

SNOWFLAKE_FUNCTION(snowflake_pools)
{
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    SharedState *state = shared_state();
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; i++) {
        lock_state(LW_SHARED);
        const Pool &pool = state->pools[i];
        if (pool.in_use && pool.private_to == -1) {
            show_pool(result, pool, pool.issued.load(std::memory_order_relaxed) + issued_now(i));
        }
        unlock_state();
    }
    return Datum{0};
}

SNOWFLAKE_FUNCTION(snowflake_stats)
{
    const Totals now = totals_so_far();
    const ClockSteps steps = clock_steps_so_far();
    lock_state(LW_SHARED);
    const Totals past = shared_state()->subtracted;
    const TimestampTz reset_at = shared_state()->reset_at;
    const std::int64_t skew_us = shared_state()->skew_us;
    const TimestampTz skew_at = shared_state()->skew_measured_at;
    unlock_state();
    Datum values[19];
    bool nulls[19] = {};
    int column = 0;
    values[column++] = int64_datum(now.issued - past.issued);
    for (int cause = 0; cause < kWaitCauses; cause++) {
        values[column++] = int64_datum(now.waits[cause] - past.waits[cause]);
        values[column++] = interval_datum(now.waited_us[cause] - past.waited_us[cause]);
    }
    values[column++] = int64_datum(now.clock_steps - past.clock_steps);
    values[column++] = interval_datum(static_cast<std::uint64_t>(steps.largest_ms) * 1000);
    nulls[column] = nulls[column + 1] = steps.last_at == 0;
    values[column++] = interval_datum(static_cast<std::uint64_t>(steps.last_ms) * 1000);
    values[column++] = TimestampTzGetDatum(steps.last_at);
    values[column++] = int64_datum(now.leases.claims - past.leases.claims);
    values[column++] = int64_datum(now.leases.renewals - past.leases.renewals);
    values[column++] = int64_datum(now.leases.failures - past.leases.failures);
    values[column++] = int64_datum(now.leases.switches - past.leases.switches);
    values[column++] = int64_datum(now.leases.lost - past.leases.lost);
    nulls[column] = nulls[column + 1] = skew_at == 0;
    values[column++] = interval_datum(static_cast<std::uint64_t>(skew_us));
    values[column++] = TimestampTzGetDatum(skew_at);
    values[column++] = TimestampTzGetDatum(reset_at);
    Assert(column == lengthof(values));
    return row_datum(fcinfo, values, nulls);
}

SNOWFLAKE_FUNCTION(snowflake_stats_reset)
{
    SharedState *state = shared_state();
    const Totals now = totals_so_far();
    for (std::uint32_t i = 0; i < state->backends; i++) {
        state->activity(i)->largest_step_ms.set(0);
        state->activity(i)->last_step_ms.set(0);
        state->activity(i)->last_step_at.set(0);
    }
    lock_state(LW_EXCLUSIVE);
    state->subtracted = now;
    state->reset_at = timestamptz_of(wall_clock_us());
    unlock_state();
    PG_RETURN_VOID();
}

SNOWFLAKE_FUNCTION(snowflake_last_id_time)
{
    const text *spec = PG_GETARG_TEXT_PP(0);
    const Layout layout = layout_from_text({VARDATA_ANY(spec), VARSIZE_ANY_EXHDR(spec)});
    PG_RETURN_INT64(layout.timestamp.max());
}

SNOWFLAKE_FUNCTION(snowflake_instance)
{
    PG_RETURN_INT64(static_cast<std::int64_t>(shared_state()->instance));
}
