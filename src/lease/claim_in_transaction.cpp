/*
 * claim_in_transaction.cpp
 *     Claiming in the session's own transaction; see claim_in_transaction.h.
 */
#include "lease/claim_in_transaction.h"

#include "lease/pools.h"
#include "lease/registry.h"
#include "lease/renewal.h"

extern "C" {
#include "access/parallel.h"
#include "utils/snapmgr.h"
}

namespace snowflake {
namespace {

bool private_pools = false; /* this backend has made one in the transaction under way */

template <typename Condition, typename Action>
void for_each_private_pool(Condition condition, Action action)
{
    SharedState *state = shared_state();
    bool left = false;
    lock_state(LW_EXCLUSIVE);
    const std::uint32_t used = state->pools_used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; i++) {
        Pool &pool = state->pools[i];
        if (!pool.in_use || pool.private_to != my_proc_number()) {
            continue;
        }
        if (condition(pool)) {
            action(i, &pool);
        }
        left = left || (pool.in_use && pool.private_to != -1);
    }
    unlock_state();
    private_pools = left;
}

void on_transaction_end(XactEvent event, void *arg)
{
    if (!private_pools) {
        return;
    }
    const auto all = [](const Pool &) { return true; };
    switch (event) {
        case XACT_EVENT_COMMIT:
            for_each_private_pool(all, [](std::uint32_t index, Pool *pool) {
                pool->private_to = -1;
                pool->change.fetch_add(1, std::memory_order_release);
            });
            break;
        case XACT_EVENT_ABORT:
            for_each_private_pool(all, [](std::uint32_t index, Pool *pool) { drop_pool(index); });
            break;
        case XACT_EVENT_PRE_PREPARE:
            ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                            errmsg("cannot PREPARE a transaction that has made the extension "
                                   "snowflake and drawn IDs")));
            break;
        default:
            break;
    }
}

void on_subtransaction_end(SubXactEvent event, SubTransactionId id, SubTransactionId parent,
                           void *arg)
{
    if (!private_pools) {
        return;
    }
    const auto claimed_here = [id](const Pool &pool) { return pool.claimed_in == id; };
    if (event == SUBXACT_EVENT_ABORT_SUB) {
        for_each_private_pool(claimed_here,
                              [](std::uint32_t index, Pool *pool) { drop_pool(index); });
    } else if (event == SUBXACT_EVENT_COMMIT_SUB) {
        for_each_private_pool(
            claimed_here, [parent](std::uint32_t index, Pool *pool) { pool->claimed_in = parent; });
    }
}

} /* namespace */

void report_too_many_pools()
{
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
             errmsg("this server already draws IDs for %u databases and generators", kMaxPools)));
    pg_unreachable();
}

void claim_in_own_transaction(const PoolKey &key)
{
    if (IsInParallelMode() || IsParallelWorker()) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_TRANSACTION_STATE),
                        errmsg("cannot claim a machine ID during a parallel operation"),
                        errdetail("The extension was made in this transaction, so its first lease "
                                  "has to be claimed here too."),
                        errhint("Draw an ID before the parallel statement.")));
    }
    lock_state(LW_EXCLUSIVE);
    std::uint32_t index = find_pool(key);
    SharedState *state = shared_state();
    if (index == kNone || state->pools[index].private_to == -1) {
        index = make_pool(key, my_proc_number());
    }
    unlock_state();
    if (index == kNone) {
        report_too_many_pools();
    }
    private_pools = true;
    state->pools[index].claimed_in = GetCurrentSubTransactionId();

    RenewalWork work;
    begin_renewal(index, &work);
    PG_TRY();
    {
        PushActiveSnapshot(GetTransactionSnapshot());
        LocalRegistry registry(key.extension);
        do_renewal(&registry, &work);
        registry.close();
        PopActiveSnapshot();
    }
    PG_CATCH();
    {
        abandon_renewal(&work, Failure{});
        PG_RE_THROW();
    }
    PG_END_TRY();
    finish_renewal(&work);
}

void install_transaction_hooks()
{
    RegisterXactCallback(on_transaction_end, nullptr);
    RegisterSubXactCallback(on_subtransaction_end, nullptr);
}

} /* namespace snowflake */
