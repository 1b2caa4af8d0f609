/*
 * copy_default.h
 *     snowflake_nextval() as a column's default in COPY.
 */
#pragma once

namespace snowflake {

void install_copy_hooks();

} /* namespace snowflake */
