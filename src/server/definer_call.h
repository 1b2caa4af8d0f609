/*
 * definer_call.h
 *     Calls of the extension's own SQL functions with a superuser's rights.
 *
 * Names cannot be trusted there: the owner of a schema or of the database may put
 * something else in a name's place, even between a look at it and its use. So a
 * function is looked up once and called by its OID, and its body was bound to its tables
 * when it was made.
 */
#pragma once

#include "server/compat.h"

namespace snowflake {

struct DefinerFunction {
    Oid oid;
    Oid owner;
};

/*
 * The function with exactly these arguments, in the extension's schema; an error if it is
 * not a member of the extension that a superuser owns.
 */
DefinerFunction definer_function(Oid extension, const char *name, int arguments, const Oid *types);

/* What a function gives; a null if it is a row without a row. Palloc'ed. */
NullableDatum call_as_definer(const DefinerFunction &function, int arguments, const Datum *values);

/* The extension that a function belongs to; an error if it belongs to none. */
Oid extension_of_function(Oid function);

/* True if the extension was made (or updated) by the transaction under way. */
bool extension_is_new(Oid extension);

/* The extension's schema; InvalidOid if there is no such extension. */
Oid extension_schema(Oid extension);

} /* namespace snowflake */
