-- The settings: what they are, who may change them, and what they refuse.
LOAD 'snowflake';

\x on
SELECT name, vartype, unit, context, boot_val, min_val, max_val, short_desc, extra_desc
FROM pg_settings WHERE name LIKE 'snowflake.%' ORDER BY name COLLATE "C";
\x off

-- a session chooses how long it waits for a lease, with or without a unit
SET snowflake.acquire_timeout = '2min';
SHOW snowflake.acquire_timeout;
SET snowflake.acquire_timeout = 10;
SHOW snowflake.acquire_timeout;
\set VERBOSITY sqlstate
SET snowflake.acquire_timeout = 9;
SET snowflake.acquire_timeout = -1;
SET snowflake.acquire_timeout = '5 parsecs';
SET snowflake.acquire_timeout = '1000000h';
\set VERBOSITY default
RESET snowflake.acquire_timeout;

-- what all sessions share is the server's to set, not a session's, a role's or a database's
SET snowflake.lease_ttl = '10s';
\echo :LAST_ERROR_SQLSTATE
SET snowflake.max_clock_wait = '10s';
SET snowflake.machine_ids = '1';
SET snowflake.max_machine_ids = 1;
ALTER ROLE CURRENT_USER SET snowflake.lease_ttl = '10s';
ALTER ROLE CURRENT_USER SET snowflake.machine_ids = '1';

-- ranges
\set VERBOSITY sqlstate
ALTER SYSTEM SET snowflake.lease_ttl = '999ms';
ALTER SYSTEM SET snowflake.lease_ttl = '86401s';
ALTER SYSTEM SET snowflake.max_clock_wait = -1;
ALTER SYSTEM SET snowflake.max_clock_wait = '61min';
ALTER SYSTEM SET snowflake.max_machine_ids = 0;
ALTER SYSTEM SET snowflake.max_machine_ids = 17;

\set VERBOSITY default
-- a list of machine IDs says what is wrong, and where
ALTER SYSTEM SET snowflake.machine_ids = 'x';
\echo :LAST_ERROR_SQLSTATE
ALTER SYSTEM SET snowflake.machine_ids = '-1';
ALTER SYSTEM SET snowflake.machine_ids = '1,,2';
ALTER SYSTEM SET snowflake.machine_ids = '1,';
ALTER SYSTEM SET snowflake.machine_ids = '1 2';
ALTER SYSTEM SET snowflake.machine_ids = '7-';
ALTER SYSTEM SET snowflake.machine_ids = '7-5';
ALTER SYSTEM SET snowflake.machine_ids = '1-2-3';
ALTER SYSTEM SET snowflake.machine_ids = '1.5';
ALTER SYSTEM SET snowflake.machine_ids = '0x10';
ALTER SYSTEM SET snowflake.machine_ids = '2147483648';
ALTER SYSTEM SET snowflake.machine_ids = '0-99999999999999999999';

-- a setting that does not exist
SET snowflake.lease_time = '10s';
\echo :LAST_ERROR_SQLSTATE
