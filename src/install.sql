-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION snowflake" to load this file. \quit

-- Nothing that a user has made in any schema may be found in place of what is meant here.
SET LOCAL search_path = pg_catalog, pg_temp;

