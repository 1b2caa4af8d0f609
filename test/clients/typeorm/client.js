// TypeORM: entities that know of nothing but an identity column, before and after the conversion.
'use strict';
const { DataSource, EntitySchema } = require('typeorm');
const { ok, keys, areAll, areDistinctAndRise, areBeyondNumbers, run } = require('../lib/report');

const id = { type: 'bigint', primary: true, generated: 'identity', generatedIdentity: 'BY DEFAULT' };
const Order = new EntitySchema({
    name: 'Order', tableName: 'orders',
    columns: { id, name: { type: 'text' } },
    relations: { lines: { type: 'one-to-many', target: 'Line', inverseSide: 'order', cascade: true } },
});
const Line = new EntitySchema({
    name: 'Line', tableName: 'lines',
    columns: { id, name: { type: 'text' } },
    relations: { order: { type: 'many-to-one', target: 'Order', inverseSide: 'lines', nullable: false } },
});

async function before(source) {
    await source.synchronize();
    const old = await source.getRepository('Order').save(
        [0, 1, 2].map(n => ({ name: `old-${n}`, lines: [{ name: `old-${n}-line` }] })));
    keys('orders', old);
    ok(old.map(order => order.id).sort().join() === '1,2,3', 'the model draws on an identity column');
}

async function after(source) {
    const orders = source.getRepository('Order');
    const single = await orders.save({ name: 'single', lines: [0, 1, 2].map(n => ({ name: `single-line-${n}` })) });
    keys('orders', [single]);
    keys('lines', single.lines);
    ok(areAll('string', [single.id]) && single.lines.length === 3, 'save() gives keys of an order and its lines');

    const many = await orders.save(Array.from({ length: 500 }, (_, n) => ({ name: `many-${n}` })));
    keys('orders', many);
    const ids = many.map(order => order.id);
    ok(areDistinctAndRise(ids), 'save() of many gives keys in their order');
    ok(areAll('string', ids) && areBeyondNumbers(ids), 'as strings that a Number would not hold');

    const inserted = await orders.insert(Array.from({ length: 100 }, (_, n) => ({ name: `insert-${n}` })));
    keys('orders', inserted.identifiers.map((row, n) => ({ id: row.id, name: `insert-${n}` })));
    ok(areDistinctAndRise(inserted.identifiers.map(row => row.id)), 'and so does insert()');

    const found = await orders.findOne({ where: { id: single.id }, relations: { lines: true } });
    ok(found.name === 'single' && found.id === single.id &&
        found.lines.map(line => line.name).sort().join() === 'single-line-0,single-line-1,single-line-2',
        'an entity is read by its key, with what refers to it');
    const exact = many.find(order => areBeyondNumbers([order.id]));
    ok((await orders.findOneBy({ id: exact.id })).name === exact.name, 'by a key that a Number would not hold, too');

    const old = await orders.find({ where: [0, 1, 2].map(n => ({ name: `old-${n}` })), relations: { lines: true }, order: { id: 'ASC' } });
    ok(old.map(order => order.lines[0].name).sort().join() === 'old-0-line,old-1-line,old-2-line',
        'rows from before the conversion are read as ever');

    // doc/adopting.md warns of it
    const { upQueries } = await source.driver.createSchemaBuilder().log();
    ok(upQueries.some(({ query }) => query === 'ALTER TABLE "orders" ALTER COLUMN "id" DROP DEFAULT'),
        'synchronize() would drop the default');
}

run(async () => {
    const source = new DataSource({
        type: 'postgres', host: process.env.PGHOST, port: Number(process.env.PGPORT),
        username: process.env.PGUSER, database: process.env.PGDATABASE, entities: [Order, Line],
    });
    await source.initialize();
    await { before, after }[process.argv[2]](source);
    await source.destroy();
});
