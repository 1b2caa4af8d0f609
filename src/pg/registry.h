/*
 * registry.h
 *     What a keeper asks of a registry: the SQL functions of the extension that
 *     claim, renew and release leases.
 */
#pragma once

#include <cstdint>

#include "core/layout.h"
#include "core/machine_ids.h"
#include "pg/shared_state.h"

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
struct Outlook {
    bool known;           /* the registry has a lease of this generator at all */
    char layout[128];     /* under which it knows the generator */
    std::uint32_t machine_id;
    char holder[128];
    std::int64_t free_at_us; /* wall clock of the registry; INT64_MAX: never */
};

/*
 * A registry within an open transaction. Failures are reported by ereport;
 * implementations own nothing that a destructor would have to release.
 */
class Registry {
  public:
    virtual ClaimReply claim(const ClaimRequest &request) = 0;

    /* Returns the durable horizon; a negative number if the lease is another's. */
    virtual std::int64_t renew(const PoolKey &key, std::uint32_t machine_id,
                               std::int64_t horizon) = 0;

    /*
     * Makes the lease of a former run of this server that of this one. Returns
     * the durable horizon; a negative number if the row is not as it was saved.
     */
    virtual std::int64_t resume(const PoolKey &key, const SavedLease &saved,
                                std::int64_t horizon) = 0;

    virtual void release(const PoolKey &key, std::uint32_t machine_id) = 0;

    virtual Outlook outlook(const PoolKey &key) = 0;

  protected:
    ~Registry() = default;
};

/* The registry of the database that this backend is connected to, by SPI. */
class LocalRegistry final : public Registry {
  public:
    /*
     * Connects to SPI. In: the extension whose functions to call; reports an
     * error if they are not there, or are not the ones that a superuser made.
     */
    explicit LocalRegistry(Oid extension);

    ClaimReply claim(const ClaimRequest &request) override;
    std::int64_t renew(const PoolKey &key, std::uint32_t machine_id, std::int64_t horizon) override;
    std::int64_t resume(const PoolKey &key, const SavedLease &saved,
                        std::int64_t horizon) override;
    void release(const PoolKey &key, std::uint32_t machine_id) override;
    Outlook outlook(const PoolKey &key) override;

    /* Disconnects from SPI. */
    void close();

  private:
    const char *schema_;
    Oid caller_;
    int caller_context_;
};

/* The extension that a function belongs to; an error if it belongs to none. */
Oid extension_of_function(Oid function);

/* True if the extension was made (or updated) by the transaction under way. */
bool extension_is_new(Oid extension);

/* The name of an extension's schema, palloc'ed; nullptr if there is no such extension. */
char *extension_schema(Oid extension);

} /* namespace snowflake */
