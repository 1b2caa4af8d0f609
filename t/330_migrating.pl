# The way from another extension's sequences to a generator, as doc/migrating.md tells
# it, with clients that write all the while: no insert fails, no ID repeats, and every
# session's IDs increase. Neither library's functions are found in the other.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $server = new_server('migrating', extension => 0);

# The statements of the document's steps; the ones that are of the other extension are
# left out by what they name.
my $document = slurp_file("$FindBin::RealBin/../doc/migrating.md");
my ($steps) = $document =~ /^## The move$(.*?)^## /ms or die 'no steps in doc/migrating.md';
my %step;
while ($steps =~ /^(\d)\. (.*?)(?=^\d\. |\z)/msg)
{
	my ($number, $text) = ($1, $2);
	$step{$number} = join "\n", $text =~ /^ +```(?:sql)?\n(.*?)^ +```$/msg;
}
is(join(',', sort keys %step), '1,2,3,4,5,6', 'the document has six steps');
my ($machine_ids) = $steps =~ /^snowflake\.machine_ids = '(.*?)'$/m;

#----------------------------------------------------------------------
# What stands for the other extension: IDs of its layout, of node 7
#----------------------------------------------------------------------

$server->safe_psql('postgres', <<'SQL');
CREATE SCHEMA snowflake;
CREATE FUNCTION snowflake.nextval(sequence regclass) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1672531200000) << 22)
		| (7 << 12) | pg_catalog.nextval(sequence);
END $$;
CREATE SEQUENCE orders_id_seq MINVALUE 0 MAXVALUE 4095 CYCLE;
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'),
	client int NOT NULL, place int NOT NULL);
SQL

#----------------------------------------------------------------------
# The move, while clients write
#----------------------------------------------------------------------

# Each inserts on and on, until the table that says so is there.
my @clients = map { $server->session } 1 .. 3;
foreach my $client (0 .. $#clients)
{
	$clients[$client]->send(<<"SQL");
DO \$\$
DECLARE
	place int := 0;
BEGIN
	WHILE to_regclass('public.enough') IS NULL LOOP
		INSERT INTO orders (client, place) VALUES ($client, place);
		place := place + 1;
		COMMIT;
		PERFORM pg_sleep(0.001);
	END LOOP;
END \$\$
SQL
}

# Waits until each client has written with the default that the table has now.
sub clients_go_on
{
	my ($how) = @_;
	my $now = $server->safe_psql('postgres', 'SELECT coalesce(max(id), 0) FROM orders');
	wait_until("clients write $how", 60, sub {
		foreach my $client (grep { !$_->is_busy } @clients)
		{
			my ($rows, $error) = $client->result;
			die "a client has ended: $error";
		}
		$server->safe_psql('postgres',
			"SELECT count(DISTINCT client) FROM orders WHERE id > $now") == @clients;
	});
	pass("clients write $how");
	return;
}

sub take_step
{
	my ($number) = @_;
	my ($rows, $error) = $server->session->query($step{$number});
	is($error, '', "step $number: done");
	return;
}

clients_go_on(q{on the other extension's sequence});
take_step(1);
take_step(2);
clients_go_on('on the stopgap');
$server->safe_psql('postgres', 'DROP FUNCTION snowflake.nextval(regclass); DROP SCHEMA snowflake');
$server->append_conf('postgresql.conf', "snowflake.machine_ids = '$machine_ids'");
$server->reload;
take_step(5);
clients_go_on('on the stopgap, beside the new extension');
take_step(6);
clients_go_on('on the generator');
$server->safe_psql('postgres', 'CREATE TABLE enough ()');
foreach my $client (@clients)
{
	my ($rows, $error) = $client->result;
	is($error, '', 'no insert failed');
	$client->quit;
}

is( $server->safe_psql('postgres', <<'SQL'), '', q{each client's IDs increase});
SELECT * FROM (SELECT id, lag(id) OVER (PARTITION BY client ORDER BY place) AS before FROM orders) AS o
WHERE id <= before
SQL
is( $server->safe_psql('postgres', <<'SQL'), 't|t|t', 'IDs are of the node, the stopgap and the generator');
SELECT bool_or(machine_id = 7), bool_or(machine_id = 15), bool_and(machine_id IN (7, 15) OR machine_id >= 16)
FROM orders, snowflake_machine_id(id, 'pgedge') AS machine_id
SQL
is( $server->safe_psql('postgres', <<'SQL'), 't', 'their time is that of the inserts, by one layout');
SELECT bool_and(snowflake_timestamp(id, 'pgedge') BETWEEN now() - interval '10 min' AND now()) FROM orders
SQL

#----------------------------------------------------------------------
# One library in the place of the other
#----------------------------------------------------------------------

foreach my $symbol ('snowflake_nextval', 'snowflake_currval')
{
	like(
		$server->error_of(
			"CREATE FUNCTION theirs(regclass) RETURNS bigint LANGUAGE c AS 'snowflake', '$symbol'"),
		qr/could not find function "$symbol" in file/,
		"$symbol() of the other library is not found in this one");
}

done_testing();
