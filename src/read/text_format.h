/*
 * text_format.h
 *     IDs as text, for whoever shows them.
 */
#pragma once

#include "core/text_format.h"
#include "read/zone.h"
#include "server/compat.h"

namespace snowflake {

/* The friendly form of a valid ID, in a zone (null: UTC). */
FriendlyText friendly_id(const Layout &layout, int64 id, pg_tz *zone);

} /* namespace snowflake */
