/*
 * registry.h
 *     What a keeper asks of a registry: to claim, renew and resume leases, by the
 *     SQL functions of the extension in the registry's database.
 *
 * There are two kinds, which differ in how they call a function: the registry in
 * the database at hand (LocalRegistry, by OID) and one that many servers share
 * (RemoteRegistry, by libpq). Failures are reported by ereport, so a registry
 * owns nothing that only a destructor would release.
 */
#pragma once

#include <cstdint>

#include "lease/shared_state.h"
#include "server/definer_call.h"

namespace snowflake {

struct ClaimRequest {
    const PoolKey *key;
    std::int64_t now;     /* ID time */
    std::int64_t horizon; /* ID time, exclusive */
    const std::uint32_t *avoid;
    std::uint32_t avoid_count;
};

struct ClaimReply {
    bool claimed;
    std::uint32_t machine_id;
    std::int64_t old_horizon;
};

/* Why a claim found nothing. */
struct Availability {
    bool known;       /* the registry has a lease of this generator at all */
    char layout[128]; /* under which it knows the generator */
    std::uint32_t machine_id;
    char holder[128];
    std::int64_t free_in_us; /* at most 0: free already; INT64_MAX: never */
};

/* A lease function; its arguments and columns go as text. */
struct LeaseFunction {
    static constexpr int kMostArguments = 10;
    static constexpr int kMostColumns = 5;

    const char *name;
    int arguments;
    const char *argument_types[kMostArguments];
    int columns;
};

/* The functions that a registry must have. */
inline constexpr int kLeaseFunctionCount = 4;
extern const LeaseFunction kLeaseFunctions[kLeaseFunctionCount];

/* A lease function's one row; null pointers are nulls. */
struct LeaseRow {
    const char *values[LeaseFunction::kMostColumns];
};

/* SELECT * FROM schema.function(CAST($1 AS type), ...): no overload is a better match. */
char *call_text(const LeaseFunction &function, const char *schema);

class Registry {
  public:
    ClaimReply claim(const ClaimRequest &request);

    /* Returns the durable horizon; a negative number if the lease is another's. */
    std::int64_t renew(const PoolKey &key, std::uint32_t machine_id, std::int64_t horizon);

    /*
     * Makes the lease of a former run of this server that of this one. Returns
     * the durable horizon; a negative number if the row is not as it was saved.
     */
    std::int64_t resume(const PoolKey &key, const SavedLease &saved, std::int64_t horizon);

    /* In: the claimer's clock (ID time). */
    Availability availability(const PoolKey &key, std::int64_t now);

  protected:
    ~Registry() = default;

    /* Within an open transaction; the row is good until the next call. */
    virtual LeaseRow call(const LeaseFunction &function, const char *const *arguments) = 0;
};

/* The registry of the database that this backend is connected to. */
class LocalRegistry final : public Registry {
  public:
    /*
     * Takes on the rights of the functions' owner. In: the extension whose functions to
     * call; reports an error if they are not there, or are not the ones that a superuser
     * made.
     */
    explicit LocalRegistry(Oid extension);

    /* Gives the rights back, and sees to it that the commit of the transaction is durable. */
    void close();

  protected:
    LeaseRow call(const LeaseFunction &function, const char *const *arguments) override;

  private:
    DefinerFunction functions_[kLeaseFunctionCount]; /* in the order of kLeaseFunctions */
    MemoryContext calls_;
    Oid caller_;
    int caller_context_;
};

} /* namespace snowflake */
