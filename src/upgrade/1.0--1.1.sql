-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION snowflake UPDATE TO '1.1'" to load this file. \quit

-- Nothing that a user has made in any schema may be found in place of what is meant here.
SET LOCAL search_path = pg_catalog, pg_temp;

-- What CREATE OR REPLACE cannot do: tables, and functions whose result has other columns.

