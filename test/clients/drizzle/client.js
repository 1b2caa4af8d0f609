// Drizzle: a model of an identity column, unchanged on a table that has IDs.
'use strict';
const pg = require('pg');
const { eq } = require('drizzle-orm');
const { drizzle } = require('drizzle-orm/node-postgres');
const { pgTable, bigint, text } = require('drizzle-orm/pg-core');
const { ok, keys, areAll, areDistinctAndRise, areBeyondNumbers, run } = require('../lib/report');

const item = pgTable('item', {
    id: bigint({ mode: 'bigint' }).primaryKey().generatedByDefaultAsIdentity(),
    name: text(),
});
const itemOfNumbers = pgTable('item', { id: bigint({ mode: 'number' }).primaryKey(), name: text() });

run(async () => {
    const client = new pg.Client();
    await client.connect();
    const db = drizzle(client);

    const names = Array.from({ length: 500 }, (_, n) => ({ name: `many-${n}` }));
    const many = await db.insert(item).values(names).returning();
    keys('item', many);
    const ids = many.map(row => row.id);
    ok(many.every((row, i) => row.name === names[i].name) && areDistinctAndRise(ids),
        'an insert of many objects gives keys in their order');
    ok(areAll('bigint', ids) && areBeyondNumbers(ids), 'as BigInt that a Number would not hold');

    const { id, name } = many.find(row => areBeyondNumbers([row.id]));
    const found = await db.select().from(item).where(eq(item.id, id));
    ok(found.length === 1 && found[0].name === name && found[0].id === id, 'a key finds its row');
    const [row] = await db.select().from(itemOfNumbers).where(eq(itemOfNumbers.name, name));
    ok(typeof row.id === 'number' && BigInt(row.id) !== id, `with mode: 'number' it is rounded`);
    await client.end();
});
