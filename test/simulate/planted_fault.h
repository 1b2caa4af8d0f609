/*
 * planted_fault.h
 *     Mistakes that can be built into the simulated system on purpose, to see that
 *     the simulation finds them. The core itself has no such switches: a fault is
 *     planted in the simulation's model of what surrounds the core, or by doing to
 *     the core's data what a faulty core would do.
 */
#pragma once

#include <string_view>

namespace snowflake::simulate {

enum class Fault {
    None,
    /* in the keeper */
    ForgetHorizon,
    PublishBeforeCommit,
    StartBelowHorizon,
    ResetWordAtSwitch,
    PublishLateAnswer,
    StaySilentAfterDeath,
    /* in the registry */
    RenewWithoutOwnership,
    HorizonGoesDown,
    ExpiryByClaimersClock,
    NoPrimaryKey,
    AdoptOwnRow,
    ClaimUnexpired,
    ResumeUnchecked,
    /* in the session and its leases */
    MoveWordPastHorizon,
    IgnoreVersion,
    ReuseRunAcrossLeases,
    KeepTicksOfRetiredLease,
    StoreInsteadOfSwap,
    ForgetOrder,
    DoNotWait,
};

struct FaultInfo {
    Fault fault;
    std::string_view name;
    std::string_view description;
};

constexpr FaultInfo kFaults[] = {
    {Fault::ForgetHorizon, "forget-horizon", "leases are published without a horizon"},
    {Fault::PublishBeforeCommit, "publish-before-commit",
     "a renewal is published when it is sent, not when it has committed"},
    {Fault::StartBelowHorizon, "start-below-horizon",
     "an expired machine ID is claimed, and used, whatever its horizon"},
    {Fault::ResetWordAtSwitch, "reset-word-at-switch",
     "a clock that stepped back pulls the lease's word back with it"},
    {Fault::PublishLateAnswer, "publish-late-answer",
     "a keeper that was given up publishes its answer all the same, by slot number"},
    {Fault::StaySilentAfterDeath, "stay-silent-after-death",
     "a keeper that dies leaves its renewal marked as under way"},
    {Fault::RenewWithoutOwnership, "renew-without-ownership",
     "a renewal does not ask whose the lease is"},
    {Fault::HorizonGoesDown, "horizon-goes-down",
     "a renewal by a clock that stepped back lowers the horizon"},
    {Fault::ExpiryByClaimersClock, "expiry-by-claimers-clock",
     "expiry is judged by the claimer's clock, and the horizon by nobody"},
    {Fault::NoPrimaryKey, "no-primary-key", "a machine ID in use is given out as never used"},
    {Fault::AdoptOwnRow, "adopt-own-row",
     "a restarted server takes the row it left behind for its own"},
    {Fault::ClaimUnexpired, "claim-unexpired", "a lease that has not expired is given to another"},
    {Fault::ResumeUnchecked, "resume-unchecked",
     "a saved lease is resumed whoever has had it meanwhile"},
    {Fault::MoveWordPastHorizon, "move-word-past-horizon",
     "one look at a wrong clock moves the word past the horizon"},
    {Fault::IgnoreVersion, "ignore-version", "a take does not compare the lease's version"},
    {Fault::ReuseRunAcrossLeases, "reuse-run-across-leases",
     "a session goes on with its run under another lease"},
    {Fault::KeepTicksOfRetiredLease, "keep-ticks-of-retired-lease",
     "a session issues what is left of a run whose lease has ended"},
    {Fault::StoreInsteadOfSwap, "store-instead-of-swap",
     "a take loads and stores the word, in place of a compare-and-swap"},
    {Fault::ForgetOrder, "forget-order", "a session does not look at its last ID"},
    {Fault::DoNotWait, "do-not-wait", "a session uses a tick of the future without waiting"},
};

} /* namespace snowflake::simulate */
