/*
 * utility_hook.h
 *     What utility statements mean for drawing: DISCARD forgets, and COPY is told apart.
 */
#pragma once

#include "server/compat.h"

namespace snowflake {

/* The innermost utility statement under way; null if there is none that the hook has seen. */
const Node *utility_statement_under_way();

void install_utility_hook();

} /* namespace snowflake */
