CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextval_support(internal) RETURNS internal
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_nextval_support';
COMMENT ON FUNCTION @extschema@.snowflake_nextval_support(internal) IS
    'planner support of snowflake_nextval(): lets COPY write rows in batches';

-- Nobody can call these, for want of a value of type internal.
CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextval_in_copy(internal) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_id_in_copy';
COMMENT ON FUNCTION @extschema@.snowflake_nextval_in_copy(internal) IS
    'stands for snowflake_nextval() in a default while COPY runs';
CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextval_in_copy(internal, generator text) RETURNS bigint
LANGUAGE c STABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_id_in_copy';
COMMENT ON FUNCTION @extschema@.snowflake_nextval_in_copy(internal, text) IS
    'stands for snowflake_nextval(generator) in a default while COPY runs';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextval() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
SUPPORT @extschema@.snowflake_nextval_support
AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION @extschema@.snowflake_nextval() IS
    'next ID of the default generator: unique, positive, increasing in a session';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextvals(count int)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION @extschema@.snowflake_nextvals(int) IS
    'next IDs of the default generator, ascending';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_currval() RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_current_id';
COMMENT ON FUNCTION @extschema@.snowflake_currval() IS
    'this session''s last ID of the default generator; an error before the first';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextval(generator text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
SUPPORT @extschema@.snowflake_nextval_support
AS 'MODULE_PATHNAME', 'snowflake_next_id';
COMMENT ON FUNCTION @extschema@.snowflake_nextval(text) IS
    'next ID of a generator: unique, positive, increasing in a session';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_nextvals(count int, generator text)
RETURNS SETOF bigint
LANGUAGE c VOLATILE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'snowflake_next_ids';
COMMENT ON FUNCTION @extschema@.snowflake_nextvals(int, text) IS
    'next IDs of a generator, ascending';

CREATE OR REPLACE FUNCTION @extschema@.snowflake_currval(generator text) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'snowflake_current_id';
COMMENT ON FUNCTION @extschema@.snowflake_currval(text) IS
    'this session''s last ID of a generator; an error before the first';
