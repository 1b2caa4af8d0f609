/*
 * watch.cpp
 *     What the views show: backends, and the instance's number.
 */
#include "pg/clock.h"
#include "pg/guard.h"
#include "pg/shared_state.h"

extern "C" {
#include "catalog/pg_authid.h"
#include "utils/acl.h"
#include "utils/tuplestore.h"
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

/* The name of the generator in a pool's place; null where the place is empty. */
char *generator_of(std::uint32_t pool)
{
    char *name = nullptr;
    if (pool < kMaxPools) {
        lock_state(LW_SHARED);
        const Pool &place = shared_state()->pools[pool];
        if (place.in_use) {
            name = pstrdup(NameStr(place.key.generator));
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

SNOWFLAKE_FUNCTION(snowflake_instance)
{
    PG_RETURN_INT64(static_cast<std::int64_t>(shared_state()->instance));
}
