# Many clients behind pgbouncer in transaction mode, where a client's transactions go to
# whichever server connection is free.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless defined $pgbouncer;

my $clients = 40;
my $connections = 4;
my $transactions = 50;
my $rows_each = 5;

my $server = new_server('main');
$server->safe_psql('postgres', <<'SQL');
CREATE TABLE item (
    id bigint NOT NULL DEFAULT snowflake_nextval(),
    client int, transaction int, place int,
    pid int DEFAULT pg_backend_pid()
)
SQL

#----------------------------------------------------------------------
# pgbouncer, on a socket beside the server's
#----------------------------------------------------------------------

my $directory = $server->basedir . '/pgbouncer';
mkdir $directory or die "$directory: $!";
my $port = PostgreSQL::Test::Cluster::get_free_port();
my ($host, $server_port) = ($server->host, $server->port);
append_to_file("$directory/users.txt", qq("postgres" ""\n));
append_to_file("$directory/pgbouncer.ini", <<"INI");
[databases]
postgres = host=$host port=$server_port user=postgres dbname=postgres
[pgbouncer]
pool_mode = transaction
default_pool_size = $connections
max_client_conn = 200
listen_addr =
listen_port = $port
unix_socket_dir = $host
auth_type = any
auth_file = $directory/users.txt
ignore_startup_parameters = extra_float_digits,options
INI
my $log = "$PostgreSQL::Test::Utils::log_path/090_pgbouncer_pgbouncer.log";
my $process = IPC::Run::start([ $pgbouncer, "$directory/pgbouncer.ini" ],
	'<', \undef, '>&', $log);

# stopped whichever way the test ends
END
{
	if (defined $process)
	{
		my $status = $?;
		$process->kill_kill(grace => 10);
		$? = $status;
	}
}

wait_until('pgbouncer to answer', 30,
	sub {
		$process->pumpable or die "pgbouncer has ended:\n" . slurp_file($log);
		IPC::Run::run([ 'psql', '-XAtq', '-h', $host, '-p', $port, '-c', 'SELECT 1', 'postgres' ],
			'>', \my $one, '2>', \my $error);
	});

#----------------------------------------------------------------------
# Many clients
#----------------------------------------------------------------------

my $script = "$directory/insert.sql";
append_to_file($script, <<"SQL");
\\set transaction :transaction + 1
BEGIN;
INSERT INTO item (client, transaction, place) VALUES (:client_id, :transaction, 1);
INSERT INTO item (client, transaction, place)
    SELECT :client_id, :transaction, place FROM generate_series(2, $rows_each) AS place;
COMMIT;
SQL
command_like(
	[ 'pgbench', '--no-vacuum', "--client=$clients", '--jobs=2', "--transactions=$transactions",
		'--define=transaction=0', '--file', $script, '-h', $host, '-p', $port, 'postgres' ],
	qr{processed: ${\($clients * $transactions)}/},
	"$clients clients insert through $connections connections");

my $rows = $clients * $transactions * $rows_each;
is($server->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM item WHERE id > 0'),
	"$rows|$rows", 'all IDs are distinct and positive');
is($server->safe_psql('postgres', 'SELECT count(DISTINCT pid) FROM item'),
	$connections, 'all of the connections were used');
cmp_ok($server->safe_psql('postgres', 'SELECT count(*) FROM (
		SELECT client FROM item GROUP BY client HAVING count(DISTINCT pid) > 1) AS wandering'),
	'>', 0, 'and clients went from one to another');
is($server->safe_psql('postgres', <<'SQL'), 0, q{each transaction's IDs increase});
SELECT count(*)
FROM (SELECT id, lag(id) OVER (PARTITION BY client, transaction ORDER BY place) AS previous
      FROM item) AS drawn
WHERE id <= previous
SQL
is($server->safe_psql('postgres', <<'SQL'), 0, q{each client's go on in the same millisecond or later});
SELECT count(*)
FROM (SELECT id, lag(id) OVER (PARTITION BY client ORDER BY transaction, place) AS previous
      FROM item) AS drawn
WHERE snowflake_timestamp(id) < snowflake_timestamp(previous)
SQL

# currval() in the transaction of its nextval() is that client's, whoever else draws.
my $own = "$directory/own.sql";
append_to_file($own, <<'SQL');
BEGIN;
SELECT snowflake_nextval() AS id \gset
SELECT 1 / (snowflake_currval() = :id)::int AS is_own;
COMMIT;
SQL
command_ok([ 'pgbench', '--no-vacuum', "--client=$clients", '--jobs=2', '--transactions=20',
		'--file', $own, '-h', $host, '-p', $port, 'postgres' ],
	'a transaction reads its own last ID');

$process->kill_kill(grace => 10);
undef $process;
$server->stop;
done_testing();
