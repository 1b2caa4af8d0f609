# Many sessions insert at once, singly and in bulk.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $sessions = 16;
my $transactions = 125;
my $singles = 10;
my $bulk = 240;
my $rows = $sessions * $transactions * ($singles + $bulk);

# No primary key, so that an ID that came twice would show as such.
my $server = new_server('main', conf => 'track_commit_timestamp = on');
$server->safe_psql('postgres', <<'SQL');
CREATE TABLE item (
    id bigint NOT NULL DEFAULT snowflake_nextval(),
    session int, statement int, place int,
    began timestamptz DEFAULT statement_timestamp()
)
SQL

my $single = '\set statement :statement + 1
INSERT INTO item (session, statement, place) VALUES (:client_id, :statement, 1);
';
$server->pgbench(
	"--no-vacuum --client=$sessions --jobs=2 --transactions=$transactions --define=statement=0",
	0,
	[qr{processed: ${\($sessions * $transactions)}/}],
	[qr{^$}],
	"$sessions sessions insert at once",
	{ 'insert' => $single x $singles . "\\set statement :statement + 1
INSERT INTO item (session, statement, place)
    SELECT :client_id, :statement, place FROM generate_series(1, $bulk) AS place;
" });

# One row: what must be $rows or $sessions, then what must be 0.
my ($inserted, $distinct, $drew, $together) = split /\|/, $server->safe_psql('postgres', <<'SQL');
SELECT sum(rows), (SELECT count(DISTINCT id) FROM item), count(*), max(first) < min(last)
FROM (SELECT count(*) AS rows, min(began) AS first, max(began) AS last
      FROM item GROUP BY session) AS session
SQL
is($inserted, $rows, 'all rows are there');
is($distinct, $rows, 'all IDs are distinct');
is($drew, $sessions, 'all sessions have inserted');
is($together, 't', 'all sessions were at it at the same time');

is($server->safe_psql('postgres', <<'SQL'), 0, q{each session's IDs increase});
SELECT count(*)
FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY statement, place) AS previous
      FROM item) AS drawn
WHERE id <= previous
SQL

is($server->safe_psql('postgres', <<"SQL"), 0, q{each ID's time lies within its statement's});
SELECT count(*)
FROM (SELECT (id >> 22) + ${\EPOCH_MS} AS ms,
             floor(extract(epoch FROM began) * 1000) AS began,
             extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000 AS ended
      FROM item) AS drawn
WHERE (ms BETWEEN began AND ended) IS NOT TRUE
SQL

# More than one only where a millisecond's sequence was used up.
cmp_ok($server->safe_psql('postgres', 'SELECT count(DISTINCT id >> 12 & 1023) FROM item'),
	'<=', 4, 'they share the machine IDs that the server may hold');

done_testing();
