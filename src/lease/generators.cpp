/*
 * generators.cpp
 *     Making, finding and dropping named generators; see generators.h.
 *
 * A generator's layout never changes once it is made: IDs that were made under
 * one layout and IDs made under another could be equal.
 */
#include "lease/generators.h"

#include <algorithm>
#include <cstring>

#include "core/layout_spec.h"
#include "server/definer_call.h"
#include "server/sql_function.h"
#include "server/layout_arg.h"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace snowflake {
namespace {

constexpr int kNameColumn = 1;
constexpr int kLayoutColumn = 2;

std::string_view view_of(const text *value)
{
    return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
}

char *cstring_of(std::string_view value) { return pnstrdup(value.data(), value.size()); }

/* What a search for uses of a generator looks for, and what it has found. */
struct UseSearch {
    Oid extension;
    const char *name;
};

/* True if the expression calls a function of the extension with the name as a constant. */
bool uses_generator(Node *node, void *context)
{
    if (node == nullptr) {
        return false;
    }
    const auto *search = static_cast<const UseSearch *>(context);
    if (IsA(node, FuncExpr)) {
        const auto *call = reinterpret_cast<const FuncExpr *>(node);
        ListCell *cell = nullptr;
        const bool ours =
            getExtensionOfObject(ProcedureRelationId, call->funcid) == search->extension;
        foreach (cell, call->args) {
            const auto *argument = reinterpret_cast<const Const *>(lfirst(cell));
            if (ours && IsA(argument, Const) && argument->consttype == TEXTOID &&
                !argument->constisnull &&
                std::strcmp(TextDatumGetCString(argument->constvalue), search->name) == 0) {
                return true;
            }
        }
    }
    return walk_expression(node, uses_generator, context);
}

[[noreturn]] void report_in_use(const char *name, const char *user)
{
    ereport(ERROR, (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
                    errmsg("cannot drop generator \"%s\" because a default uses it", name),
                    errdetail("%s", user), errhint("Change or drop the default first.")));
    pg_unreachable();
}

/* Reports an error if the default of a column draws on the generator. */
void check_column_defaults(UseSearch *search)
{
    Relation defaults = table_open(AttrDefaultRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(defaults, InvalidOid, false, nullptr, 0, nullptr);
    HeapTuple tuple = nullptr;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        const auto *row = reinterpret_cast<Form_pg_attrdef>(GETSTRUCT(tuple));
        bool null = false;
        const Datum expression =
            heap_getattr(tuple, Anum_pg_attrdef_adbin, RelationGetDescr(defaults), &null);
        if (!null &&
            uses_generator(static_cast<Node *>(stringToNode(TextDatumGetCString(expression))),
                           search)) {
            report_in_use(search->name,
                          psprintf("Column \"%s\" of table %s draws on it.",
                                   get_attname(row->adrelid, row->adnum, false),
                                   quote_qualified_identifier(
                                       get_namespace_name(get_rel_namespace(row->adrelid)),
                                       get_rel_name(row->adrelid))));
        }
    }
    systable_endscan(scan);
    table_close(defaults, AccessShareLock);
}

/* Reports an error if the default of a domain draws on the generator. */
void check_domain_defaults(UseSearch *search)
{
    Relation types = table_open(TypeRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(types, InvalidOid, false, nullptr, 0, nullptr);
    HeapTuple tuple = nullptr;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        const auto *row = reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple));
        bool null = false;
        const Datum expression =
            heap_getattr(tuple, Anum_pg_type_typdefaultbin, RelationGetDescr(types), &null);
        if (!null &&
            uses_generator(static_cast<Node *>(stringToNode(TextDatumGetCString(expression))),
                           search)) {
            report_in_use(search->name,
                          psprintf("Domain %s draws on it.", format_type_be(row->oid)));
        }
    }
    systable_endscan(scan);
    table_close(types, AccessShareLock);
}

void check_name(std::string_view name)
{
    if (name.empty() || name.size() >= NAMEDATALEN) {
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME),
                        errmsg("invalid name of a generator: \"%s\"", cstring_of(name)),
                        errhint("A name has 1 to %d bytes.", NAMEDATALEN - 1)));
    }
    if (name == kBuiltInGenerator) {
        ereport(ERROR, (errcode(ERRCODE_RESERVED_NAME),
                        errmsg("generator \"%s\" is built in", kBuiltInGenerator),
                        errhint("Choose another name.")));
    }
}

void check_can_generate(const Layout &layout)
{
    if (!layout.can_generate()) {
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("layout \"%s\" can be read but not generated", layout_label(layout)),
                 errdetail("A generator's IDs begin with the timestamp and have a machine ID of at "
                           "most 30 bits."),
                 errhint("Use a layout such as fields=t41,m10,s12.")));
    }
}

/* Calls the function that writes the extension's tables, by that name; true if it did. */
template <typename... Text>
bool write_tables(Oid extension, const char *function, const Text *...arguments)
{
    constexpr int kArguments = sizeof...(arguments);
    const Datum values[] = {CStringGetTextDatum(arguments)...};
    Oid types[kArguments];
    std::fill_n(types, kArguments, TEXTOID);
    const NullableDatum result = call_as_definer(
        definer_function(extension, function, kArguments, types), kArguments, values);
    return !result.isnull && DatumGetBool(result.value);
}

} /* namespace */

Oid generator_table(Oid extension)
{
    const Oid table = get_relname_relid("snowflake_generator", extension_schema(extension));
    if (!OidIsValid(table) || getExtensionOfObject(RelationRelationId, table) != extension) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("table snowflake_generator of extension \"snowflake\" is missing"),
                        errhint("Drop and create the extension again.")));
    }
    return table;
}

GeneratorRow find_generator(Oid extension, std::string_view name)
{
    if (name == kBuiltInGenerator) {
        return {true, kDefaultLayout, false};
    }
    GeneratorRow found{};
    /* No generator was made under such a name, whatever row somebody has inserted. */
    if (name.size() >= NAMEDATALEN) {
        return found;
    }
    Relation table = table_open(generator_table(extension), AccessShareLock);
    /* There are few; and the snapshot is that of catalogs, so what is committed is seen. */
    SysScanDesc scan = systable_beginscan(table, InvalidOid, false, nullptr, 0, nullptr);
    HeapTuple tuple = nullptr;
    while (!found.found && HeapTupleIsValid(tuple = systable_getnext(scan))) {
        bool null = false;
        const Datum row_name = heap_getattr(tuple, kNameColumn, RelationGetDescr(table), &null);
        const Datum row_layout = heap_getattr(tuple, kLayoutColumn, RelationGetDescr(table), &null);
        if (view_of(DatumGetTextPP(row_name)) == name) {
            found.found = true;
            found.layout = layout_from_text(view_of(DatumGetTextPP(row_layout)));
            check_can_generate(found.layout);
            found.is_new =
                TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
        }
    }
    systable_endscan(scan);
    table_close(table, AccessShareLock);
    return found;
}

} /* namespace snowflake */

using namespace snowflake;

/* The tables are written with the rights of these functions' owner (SECURITY DEFINER). */
SNOWFLAKE_FUNCTION(snowflake_create_generator)
{
    const std::string_view name = view_of(PG_GETARG_TEXT_PP(0));
    const Layout layout = layout_from_text(view_of(PG_GETARG_TEXT_PP(1)));
    check_name(name);
    check_can_generate(layout);
    const Oid extension = extension_of_function(fcinfo->flinfo->fn_oid);
    const char *name_text = cstring_of(name);
    if (!write_tables(extension, "snowflake_store_generator", name_text,
                      format_layout(layout).c_str())) {
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("generator \"%s\" already exists", name_text),
                        errhint("A generator's layout never changes; choose another name for "
                                "another layout.")));
    }
    /* If this is rolled back, this session has to look again. */
    CacheInvalidateRelcacheByRelid(generator_table(extension));
    PG_RETURN_VOID();
}

SNOWFLAKE_FUNCTION(snowflake_drop_generator)
{
    const std::string_view name = view_of(PG_GETARG_TEXT_PP(0));
    check_name(name);
    const Oid extension = extension_of_function(fcinfo->flinfo->fn_oid);
    const char *name_text = cstring_of(name);
    UseSearch search{extension, name_text};
    check_column_defaults(&search);
    check_domain_defaults(&search);

    if (!write_tables(extension, "snowflake_erase_generator", name_text)) {
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("generator \"%s\" does not exist", name_text),
                        errhint("The view snowflake_generators lists them.")));
    }
    /* Sessions that have looked it up look again. */
    CacheInvalidateRelcacheByRelid(generator_table(extension));
    PG_RETURN_VOID();
}
