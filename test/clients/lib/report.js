// What the Node.js clients report to the test that runs them: checks, and the keys they got.
'use strict';

function ok(condition, what) {
    console.log(`${condition ? 'ok' : 'not ok'} - ${what}`);
}

// The client believes that the row of this name has this key.
function keys(table, rows) {
    for (const { name, id } of rows) {
        console.log(`key ${table} ${name} ${id}`);
    }
}

const areAll = (type, ids) => ids.length > 0 && ids.every(id => typeof id === type);

function areDistinctAndRise(ids) {
    const exact = ids.map(BigInt);
    return exact.length > 1 && exact.every((id, i) => i === 0 || exact[i - 1] < id);
}

// Whether a Number would not hold these.
function areBeyondNumbers(ids) {
    return ids.some(id => BigInt(Number(id)) !== BigInt(id));
}

// Runs a client to its end. An error ends the program, though it leaves connections open.
function run(client) {
    client().then(() => console.log('done'), error => {
        console.error(error);
        process.exit(1);
    });
}

module.exports = { ok, keys, areAll, areDistinctAndRise, areBeyondNumbers, run };
