/*
 * registry_remote.h
 *     A registry that many servers share, called by the client of server/registry_client.h.
 *
 * Only keepers use it. Every step has a time limit, so that a registry that
 * hangs ends a keeper with an error and never more than that.
 */
#pragma once

#include <cstdint>

#include "lease/registry.h"

namespace snowflake {

/*
 * A connection to the registry. Make it empty, connect() once, then begin() and
 * commit() around each renewal; forget() after an error and at the end.
 */
class RemoteRegistry final : public Registry {
  public:
    /* In: snowflake.registry. Several hosts are tried in their order. */
    void connect(const char *conninfo);
    bool connected() const { return connected_; }

    void begin();

    /* Returns once the registry says that the transaction is durable. */
    void commit();

    void forget();

    /* How far the registry's clock is ahead of this server's, as measured by connect(). */
    std::int64_t skew_us() const { return skew_us_; }

  protected:
    LeaseRow call(const LeaseFunction &function, const char *const *arguments) override;

  private:
    bool connected_ = false;
    char schema_[NAMEDATALEN] = {};
    std::int64_t skew_us_ = 0;

    void look_around();
};

} /* namespace snowflake */
