// Postgres.js: keys are strings, or BigInt where the program asks for that.
'use strict';
const postgres = require('postgres');
const { ok, keys, areAll, areDistinctAndRise, areBeyondNumbers, run } = require('../lib/report');

run(async () => {
    const sql = postgres({ max: 1 });
    const [single] = await sql`INSERT INTO item ${sql({ name: 'single' })} RETURNING name, id`;
    keys('item', [single]);
    ok(areAll('string', [single.id]), 'RETURNING gives the key, as a string');

    const names = Array.from({ length: 500 }, (_, n) => ({ name: `many-${n}` }));
    const many = await sql`INSERT INTO item ${sql(names)} RETURNING name, id`;
    keys('item', many);
    const ids = many.map(row => row.id);
    ok(many.every((row, i) => row.name === names[i].name) && areDistinctAndRise(ids),
        'an INSERT of many objects gives keys in their order');
    ok(areAll('string', ids) && areBeyondNumbers(ids), 'as strings that a Number would not hold');

    const { id, name } = many.find(row => areBeyondNumbers([row.id]));
    const found = await sql`SELECT name FROM item WHERE id = ${id}`;
    ok(found.length === 1 && found[0].name === name, 'a key finds its row');
    const [{ number, text }] = await sql`
        SELECT to_jsonb(item) AS number, jsonb_build_object('id', item.id::text) AS text FROM item WHERE id = ${id}`;
    ok(typeof number.id === 'number' && BigInt(number.id) !== BigInt(id) && text.id === id,
        'in JSON, a number is rounded, and text is exact');
    await sql.end();

    const exact = postgres({ max: 1, types: { bigint: postgres.BigInt } });
    const [row] = await exact`SELECT id FROM item WHERE id = ${BigInt(id)}`;
    ok(row.id === BigInt(id), 'with its type BigInt, a key goes and comes as one');
    await exact.end();
});
