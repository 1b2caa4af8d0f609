// The examples of doc/javascript.md: a comment behind an expression says what it gives.
'use strict';
const fs = require('fs');
const path = require('path');
const util = require('util');
const vm = require('vm');
const pg = require('pg');
const { ok, run } = require('../lib/report');

const text = fs.readFileSync(path.join(__dirname, '../../../doc/javascript.md'), 'utf8');
const examples = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(match => match[1]);

run(async () => {
    const context = vm.createContext({});
    let told = 0;
    for (const example of examples) {
        vm.runInContext(example, context);
        for (const [, statement, value] of example.matchAll(/^(\S.*?);?\s+\/\/ (.*)$/gm)) {
            const constant = statement.match(/^const (\w+) = /);
            const result = constant
                ? new Date(Number(vm.runInContext(constant[1], context))).toISOString().replace('.000', '')
                : util.inspect(vm.runInContext(statement, context), { breakLength: Infinity });
            ok(result === value, `${statement} is ${value}`);
            told++;
        }
    }
    ok(examples.length >= 2 && told >= 3, 'there are examples that say what they give');

    const client = new pg.Client();
    await client.connect();
    const { rows } = await client.query(
        `SELECT id, extract(epoch FROM "timestamp") * 1000 AS ms, machine_id, sequence
         FROM snowflake_nextvals(500) AS id, snowflake_parse(id)`);
    const parse = vm.runInContext('parse', context);
    ok(rows.length === 500 && rows.every(row => {
        const { timestamp, machineId, sequence } = parse(row.id);
        return timestamp.getTime() === Number(row.ms) && machineId === row.machine_id && sequence === row.sequence;
    }), 'its parse() reads new IDs as the server does');
    await client.end();
});
