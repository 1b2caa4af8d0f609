/*
 * time_bounds.h
 *     The range of IDs that a comparison with a time stands for.
 */
#pragma once

#include "core/layout.h"
#include "server/compat.h"

namespace snowflake {

/* The greatest ID of a layout that has a time: of what timestamptz can hold, if that ends sooner.
 */
int64 last_id_with_time(const Layout &layout);

} /* namespace snowflake */
