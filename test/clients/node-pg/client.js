// node-postgres: keys are strings, and exact; where numbers would be, they would not.
'use strict';
const pg = require('pg');
const { ok, keys, areAll, areDistinctAndRise, areBeyondNumbers, run } = require('../lib/report');

run(async () => {
    const client = new pg.Client();
    await client.connect();

    const { rows: [single] } = await client.query(
        'INSERT INTO item (name) VALUES ($1) RETURNING name, id', ['single']);
    keys('item', [single]);
    ok(areAll('string', [single.id]), 'RETURNING gives the key, as a string');
    const { rows: [{ current }] } = await client.query('SELECT snowflake_currval() AS current');
    ok(current === single.id, 'and snowflake_currval() gives the same');

    const names = Array.from({ length: 500 }, (_, n) => `unnest-${n}`);
    const { rows: many } = await client.query(
        'INSERT INTO item (name) SELECT unnest($1::text[]) RETURNING name, id', [names]);
    keys('item', many);
    const ids = many.map(row => row.id);
    ok(many.every((row, i) => row.name === names[i]) && areDistinctAndRise(ids),
        'INSERT of an unnested array gives keys in its order');
    ok(areAll('string', ids) && areBeyondNumbers(ids), 'as strings that a Number would not hold');

    // A key that a Number would round is the one that can tell.
    const { id, name } = many.find(row => areBeyondNumbers([row.id]));
    for (const [kind, parameter] of [['string', id], ['BigInt', BigInt(id)]]) {
        const { rows } = await client.query('SELECT name FROM item WHERE id = $1', [parameter]);
        ok(rows.length === 1 && rows[0].name === name, `a key finds its row, passed as a ${kind}`);
    }
    const { rows: rounded } = await client.query(
        'SELECT name FROM item WHERE id = $1', [BigInt(Number(id))]);
    ok(rounded.every(row => row.name !== name), 'made a Number in between, it does not');

    // What doc/javascript.md says about JSON: the driver hands it to JSON.parse.
    const { rows: [{ number, text, row }] } = await client.query(
        `SELECT to_jsonb(item) AS number, jsonb_build_object('id', item.id::text) AS text,
                to_jsonb(item) || jsonb_build_object('id', item.id::text) AS row
         FROM item WHERE id = $1`, [id]);
    ok(typeof number.id === 'number' && BigInt(number.id) !== BigInt(id), 'in JSON, a number is rounded');
    ok(text.id === id && row.id === id && row.name === name, 'and text is exact');

    const { rows: [{ found }] } = await client.query(
        `SELECT name AS found FROM item WHERE id = ($1::jsonb ->> 'id')::bigint`, [JSON.stringify({ id })]);
    ok(found === name, 'a key goes back as text in JSON');
    let complaint;
    try {
        JSON.stringify({ id: BigInt(id) });
    } catch (error) {
        complaint = error;
    }
    ok(complaint instanceof TypeError && JSON.stringify({ id: String(BigInt(id)) }) === `{"id":"${id}"}`,
        'JSON.stringify refuses a BigInt, and takes its String');

    const { rows: [short] } = await client.query('SELECT snowflake_to_base62($1) AS id', [id]);
    const { rows: [{ long }] } = await client.query('SELECT snowflake_from_base62($1) AS long', [short.id]);
    ok(/^[0-9A-Za-z]{11}$/.test(short.id) && long === id, 'base 62 there and back');

    // js_safe is for clients that insist on numbers
    await client.query(`SELECT snowflake_create_generator('web', 'js_safe')`);
    await client.query(`CREATE TABLE page (id bigint PRIMARY KEY DEFAULT snowflake_nextval('web'), name text)`);
    const { rows: pages } = await client.query(
        `INSERT INTO page (name) SELECT 'page-' || n FROM generate_series(1, 500) AS n RETURNING name, id`);
    keys('page', pages);
    const { rows: [{ json }] } = await client.query('SELECT jsonb_agg(to_jsonb(page)) AS json FROM page');
    keys('page', json);
    ok(json.length === 500 && json.every(page => Number.isSafeInteger(page.id)),
        'IDs of js_safe come through JSON as numbers');

    // An integer is a number; widened, it is a string. doc/adopting.md says so.
    await client.query('CREATE TABLE ticket (id serial PRIMARY KEY, name text)');
    const insert = `INSERT INTO ticket (name) VALUES ($1) RETURNING name, id`;
    const { rows: [small] } = await client.query(insert, ['small']);
    await client.query(`SELECT snowflake_convert('ticket', 'id')`);
    const { rows: [wide] } = await client.query(insert, ['wide']);
    keys('ticket', [small, wide]);
    ok(typeof small.id === 'number' && typeof wide.id === 'string',
        'keys of an integer column come as strings once it is converted');

    // all bigints as BigInt, for the whole program
    pg.types.setTypeParser(pg.types.builtins.INT8, BigInt);
    const { rows: [exact] } = await client.query('SELECT id FROM item WHERE name = $1', [name]);
    ok(exact.id === BigInt(id), 'a type parser gives BigInt instead');

    await client.end();
});
