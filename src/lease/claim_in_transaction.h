/*
 * claim_in_transaction.h
 *     Claiming a lease in the session's own transaction, where no keeper could see
 *     the registry.
 *
 * The claim goes into a pool that only this session sees, which becomes everybody's
 * at commit and is dropped at rollback.
 */
#pragma once

#include "lease/shared_state.h"

namespace snowflake {

/* Reports an error if no lease can be had. */
void claim_in_own_transaction(const PoolKey &key);

[[noreturn]] void report_too_many_pools();

/* Settles such claims when transactions and savepoints end. */
void install_transaction_hooks();

} /* namespace snowflake */
