-- The rules of leases, tried by hand on the functions that the keeper calls.
-- Times are ID times: milliseconds of a clock that the test sets.

CREATE FUNCTION claim(generator text, instance bigint, at bigint, machine_ids int4multirange,
    avoid int[] DEFAULT '{}', horizon bigint DEFAULT NULL, ttl interval DEFAULT '1 hour',
    layout text DEFAULT 'default', OUT machine_id int, OUT old_horizon bigint)
LANGUAGE sql VOLATILE AS $$
    SELECT * FROM snowflake_claim_lease($1, $8, $2, 5::oid, 'server ' || $2, $7, $3,
                                        coalesce($6, $3 + 1000), $4, $5)
$$;
CREATE FUNCTION renew(generator text, machine_id int, instance bigint, horizon bigint,
    database oid DEFAULT 5, ttl interval DEFAULT '1 hour') RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT snowflake_renew_lease($1, $2, $3, $5, $6, $4)
$$;
CREATE VIEW lease AS
    SELECT generator, machine_id, layout, horizon, instance, database, holder,
           expires_at <= clock_timestamp() AS expired
    FROM snowflake_lease WHERE generator <> 'default';

--
-- Claiming
--

-- one machine ID has one holder at a time, and the row says which
SELECT * FROM claim('one', 1, 100000, '{[5,5]}');
SELECT * FROM lease WHERE generator = 'one';
SELECT * FROM claim('one', 2, 100000, '{[5,5]}');
SELECT * FROM claim('one', 1, 200000, '{[5,5]}');
SELECT instance, horizon FROM lease WHERE generator = 'one';

-- generators do not disturb each other
SELECT * FROM claim('other', 2, 100000, '{[5,5]}');

-- a pool of 8 gives each of its machine IDs once, then none
SELECT array_agg((claim('tiny', n, 100000, '{[0,7]}')).machine_id IS NOT NULL) AS got
FROM generate_series(1, 10) AS n;
SELECT array_agg(machine_id ORDER BY machine_id), count(DISTINCT instance) FROM lease
WHERE generator = 'tiny';

-- only what the set allows, whatever its gaps, and nothing that is to be avoided
SELECT array_agg(id ORDER BY id)
FROM (SELECT (claim('gaps', n, 100000, '{[3,3],[5,6],[1000,1023]}', '{1000,1001,6}')).machine_id
      FROM generate_series(1, 40) AS n) AS claims (id);
SELECT * FROM claim('gaps', 1, 100000, '{[6,6]}', '{6}');
SELECT * FROM claim('gaps', 1, 100000, '{}');
SELECT * FROM claim('gaps', 1, 100000, '{[6,6]}', '{}');

-- the greatest machine ID that a layout can have
SELECT * FROM claim('edge', 1, 100000, '{[2147483646,2147483646]}');

--
-- Renewing
--

-- the holder's horizon rises
SELECT renew('one', 5, 1, 150000);
-- and never goes down, nor does the expiry
SELECT renew('one', 5, 1, 120000), renew('one', 5, 1, 120000, ttl => '-1 hour');
SELECT horizon, expired FROM lease WHERE generator = 'one';
-- another instance, another database and a machine ID never claimed: nothing is renewed
SELECT renew('one', 5, 2, 160000), renew('one', 5, 1, 160000, database => 6),
       renew('one', 6, 1, 160000), renew('none', 5, 1, 160000);
SELECT horizon, expired FROM lease WHERE generator = 'one';

--
-- Resuming
--

-- A server that starts anew goes on with the lease of its former self, if nobody has
-- touched that: the same instance, database and horizon as were saved.
CREATE FUNCTION resume(old_instance bigint, old_horizon bigint, instance bigint,
    database oid DEFAULT 5) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT snowflake_resume_lease('again', 5, $1, $2, $3, $4, '1 hour', 150000)
$$;
SELECT * FROM claim('again', 1, 100000, '{[5,5]}');
SELECT resume(2, 101000, 4), resume(1, 100999, 4), resume(1, 101001, 4),
       resume(1, 101000, 4, database => 6);
SELECT resume(1, 101000, 4);
SELECT instance, horizon, expired FROM lease WHERE generator = 'again';
-- the former self has lost it, and cannot be resumed twice
SELECT renew('again', 5, 1, 160000), resume(1, 101000, 6), resume(1, 150000, 6);
SELECT renew('again', 5, 4, 160000);

--
-- Releasing
--

SELECT snowflake_release_lease('one', 5);
SELECT snowflake_release_lease('one', 5), snowflake_release_lease('one', 6),
       snowflake_release_lease('none', 5);
-- the horizon stays, and who held it has lost it
SELECT horizon, instance, expired FROM lease WHERE generator = 'one';
SELECT renew('one', 5, 1, 160000);
-- a clock that has not passed the horizon gets nothing
SELECT * FROM claim('one', 2, 149999, '{[5,5]}');
-- one that has is told where to start
SELECT * FROM claim('one', 2, 150000, '{[5,5]}');
SELECT instance, horizon, holder FROM lease WHERE generator = 'one';
-- a horizon before the old one is not written
SELECT snowflake_release_lease('one', 5);
SELECT * FROM claim('one', 3, 151000, '{[5,5]}', horizon => 150500);
SELECT instance, horizon FROM lease WHERE generator = 'one';

--
-- Expiry
--

-- a holder whose lease has run out can renew it for as long as nobody claims it
SELECT * FROM claim('late', 1, 100000, '{[5,5]}', ttl => '-1 hour');
SELECT renew('late', 5, 1, 105000, ttl => '-1 minute');
SELECT * FROM claim('late', 2, 105000, '{[5,5]}');
SELECT renew('late', 5, 1, 110000);
SELECT instance, horizon, expired FROM lease WHERE generator = 'late';

--
-- Which one
--

-- Claims many times, each time undone, and returns what was chosen.
CREATE FUNCTION choices(generator text, machine_ids int4multirange, OUT chosen int[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    id int;
BEGIN
    FOR i IN 1 .. 60 LOOP
        BEGIN
            id := (claim($1, 9, 500000, $2)).machine_id;
            RAISE triggered_action_exception;
        EXCEPTION WHEN triggered_action_exception THEN
            chosen := chosen || id;
        END;
    END LOOP;
    chosen := ARRAY(SELECT DISTINCT unnest(chosen) ORDER BY 1);
END $$;

-- of those that were used, one of the half that is free for longest
SELECT count((claim('old', 1, 100000, '{[0,5]}')).machine_id) FROM generate_series(1, 6);
SELECT choices('old', '{[0,5]}');
UPDATE snowflake_lease SET expires_at = clock_timestamp() - machine_id * interval '1 day'
    WHERE generator = 'old';
SELECT choices('old', '{[0,5]}');
SELECT choices('old', '{[0,0]}'), choices('old', '{[1,2]}');
UPDATE snowflake_lease SET horizon = 600000 WHERE generator = 'old' AND machine_id = 5;
SELECT choices('old', '{[0,5]}');
-- one never used is better, and is chosen at random
SELECT choices('old', '{[0,6]}');
SELECT cardinality(choices('old', '{[0,1023]}')) > 30 AS many,
       choices('old', '{[0,1023]}') && '{0,1,2,3,4,5}' AS used_ones;

--
-- A layout once and for all
--

SELECT * FROM claim('one', 3, 300000, '{[0,1023]}', layout => 'twitter');
SELECT DISTINCT layout FROM lease WHERE generator = 'one';

--
-- Why there is none: the lease that is free soonest, of those allowed if any is
--

SELECT * FROM snowflake_lease_outlook('none', '{[0,7]}', 200000);

-- the registry's clock says when leases run out
UPDATE snowflake_lease SET expires_at = clock_timestamp() + machine_id * interval '1 day'
    WHERE generator = 'tiny';
CREATE FUNCTION outlook(generator text, machine_ids int4multirange, at bigint,
    OUT machine_id int, OUT days numeric, OUT at_that_time boolean)
LANGUAGE sql VOLATILE AS $$
    SELECT machine_id, round(free_in_us / 86400e6, 2),
           free_at - clock_timestamp() BETWEEN (free_in_us - 60e6) * interval '1 microsecond'
                                           AND free_in_us * interval '1 microsecond'
    FROM snowflake_lease_outlook($1, $2, $3)
$$;
SELECT layout, machine_id, holder LIKE 'server _' AS names_holder
FROM snowflake_lease_outlook('tiny', '{[2,7]}', 200000);
SELECT * FROM outlook('tiny', '{[2,7]}', 200000);
SELECT * FROM outlook('tiny', '{[8,9]}', 200000);
-- the claimer's clock says when it has passed a horizon, if that is later
UPDATE snowflake_lease SET horizon = 200000 + 5 * 86400000
    WHERE generator = 'tiny' AND machine_id = 2;
SELECT * FROM outlook('tiny', '{[2,7]}', 200000);
SELECT * FROM outlook('tiny', '{[2,2]}', 200000);
SELECT * FROM outlook('tiny', '{[2,2]}', 200000 + 4 * 86400000);
-- a machine ID that an administrator has set aside is never free
UPDATE snowflake_lease SET expires_at = 'infinity' WHERE generator = 'tiny';
SELECT free_at, free_in_us FROM snowflake_lease_outlook('tiny', '{[2,7]}', 200000);

--
-- 2000 claims and releases in a row
--

CREATE PROCEDURE cycle(generator text, machine_ids int4multirange, step int)
LANGUAGE plpgsql AS $$
DECLARE
    got record;
BEGIN
    FOR i IN 1 .. 2000 LOOP
        got := claim($1, 1, i::bigint * step, machine_ids, horizon => i::bigint * step + 1000);
        IF got.machine_id IS NULL THEN
            RAISE EXCEPTION 'no machine ID in cycle %', i;
        ELSIF got.old_horizon > i::bigint * step THEN
            RAISE EXCEPTION 'a machine ID came back before its horizon in cycle %', i;
        ELSIF NOT snowflake_release_lease($1, got.machine_id) THEN
            RAISE EXCEPTION 'the lease was not released in cycle %', i;
        END IF;
        IF i % 100 = 0 THEN
            COMMIT;
        END IF;
    END LOOP;
END $$;
-- each waits out 1000 ms, so a pool of 8 needs a claim every 250 ms at the most
CALL cycle('full cycle', '{[0,1023]}', 2);
CALL cycle('tiny cycle', '{[0,7]}', 250);
SELECT generator, count(*) AS machine_ids FROM lease WHERE generator LIKE '% cycle'
GROUP BY generator ORDER BY generator;

DELETE FROM snowflake_lease WHERE generator <> 'default';
DROP PROCEDURE cycle;
DROP VIEW lease;
DROP FUNCTION claim, renew, resume, choices, outlook;
