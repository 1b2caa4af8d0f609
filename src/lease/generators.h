/*
 * generators.h
 *     Named generators: the table snowflake_generator.
 */
#pragma once

#include <string_view>

#include "core/layout.h"
#include "server/compat.h"

namespace snowflake {

struct GeneratorRow {
    bool found;
    Layout layout;
    bool is_new; /* made by the transaction under way */
};

/*
 * The built-in generator or one that snowflake_create_generator() has made in
 * the extension's database. Needs no right on the table.
 */
GeneratorRow find_generator(Oid extension, std::string_view name);

/* The table's OID; an error if it is not there. */
Oid generator_table(Oid extension);

constexpr char kBuiltInGenerator[] = "default";

} /* namespace snowflake */
