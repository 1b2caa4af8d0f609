# Two servers that both take writes to one table and replicate it to each other, with
# one registry: no row conflicts on its key, and both sides have all rows in the end.
#
# PostgreSQL's own logical replication sends on what it has received until 16 (whose
# subscriptions know `origin = none`). pglogical does not, on any version.
#
# MINUTES=10 has it write for that long; a few seconds do for every day.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;

my $seconds = 60 * ($ENV{MINUTES} || 0) || 5;

chomp(my $version = `pg_config --version`);
my ($major) = $version =~ /(\d+)/;
chomp(my $extensions = `pg_config --sharedir`);
my $native = $major >= 16;
plan(skip_all => 'pglogical is not installed')
  if !$native && !-e "$extensions/extension/pglogical.control";

my $conf = listen_on_loopback() . <<'CONF' . ($native ? '' : "shared_preload_libraries = 'pglogical'\n");
wal_level = logical
max_wal_senders = 8
max_replication_slots = 8
max_worker_processes = 12
max_logical_replication_workers = 4
max_wal_size = 4GB
log_statement = none
snowflake.lease_ttl = 3s
snowflake.acquire_timeout = 20s
CONF
my %server = map { $_ => new_server($_, conf => $conf) } 'left', 'right';
my $registry = make_registry($server{left}, 'ids');

foreach my $it (values %server)
{
	$it->append_conf('postgresql.conf', "snowflake.registry = '$registry'");
	# PostgreSQL's minor releases of 2026 load only output plugins that are named
	$it->append_conf('postgresql.conf', "output_plugin_libraries = 'pglogical_output'")
	  if !$native && $it->psql('postgres', 'SHOW output_plugin_libraries') == 0;
	$it->reload;
	make_client_table($it);
}

#----------------------------------------------------------------------
# Replication in both directions
#----------------------------------------------------------------------

sub dsn { return 'host=127.0.0.1 port=' . $server{ $_[0] }->port . ' dbname=postgres'; }

if ($native)
{
	$_->safe_psql('postgres', 'CREATE PUBLICATION all_rows FOR TABLE chaos') foreach values %server;
}
else
{
	$server{$_}->safe_psql('postgres', 'CREATE EXTENSION pglogical; '
		  . "SELECT pglogical.create_node('$_', '" . dsn($_) . q{'); }
		  . q{SELECT pglogical.replication_set_add_table('default', 'chaos')})
	  foreach sort keys %server;
}
foreach my $pair ([ 'left', 'right' ], [ 'right', 'left' ])
{
	my ($to, $from) = @$pair;
	my $dsn = dsn($from);
	$server{$to}->safe_psql('postgres', $native
		? "CREATE SUBSCRIPTION from_$from CONNECTION '$dsn' PUBLICATION all_rows
			WITH (origin = none, copy_data = off)"
		: "SELECT pglogical.create_subscription('from_$from', '$dsn', ARRAY['default'],
			synchronize_structure := false, synchronize_data := false, forward_origins := '{}')");
}
foreach my $name (sort keys %server)
{
	wait_until("$name to be followed", 90, sub {
		$server{$name}->safe_psql('postgres',
			q{SELECT count(*) > 0 FROM pg_replication_slots WHERE active AND slot_type = 'logical'}) eq 't';
	});
}

#----------------------------------------------------------------------
# Rows at full speed on both sides
#----------------------------------------------------------------------

my $rows = 'SELECT count(*) FROM chaos';

start_client($server{$_}->connstr('postgres'), $_) foreach 'left', 'right';
my $began = time;
wait_until('rows of both sides', 60 + $seconds, sub {
	time - $began >= $seconds && 2 == grep { count_drawn($_) > 1000 } 'left', 'right';
});
stop_clients();

# Whatever was under way at either has reached the other.
sub is_settled
{
	my ($from, $to) = @_;
	my $position = $server{$from}->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
	wait_until("$to to have what $from has", 120 + 2 * $seconds, sub {
		$server{$from}->safe_psql('postgres',
			"SELECT count(*) > 0 FROM pg_replication_slots WHERE confirmed_flush_lsn >= '$position'") eq 't';
	});
	return;
}
is_settled('left', 'right');
is_settled('right', 'left');

my %count = map { $_ => $server{$_}->safe_psql('postgres', $rows) } keys %server;
my $checksum = q{SELECT sum(hashtextextended(id || ' ' || coalesce(n, 0), 0)::numeric) FROM chaos};
is($count{right}, $count{left}, "both sides have all $count{left} rows");
is($server{right}->safe_psql('postgres', $checksum), $server{left}->safe_psql('postgres', $checksum),
	'... and the same ones');
foreach my $name (sort keys %server)
{
	my $list = join ',', machine_ids_drawn($name);
	my $own = $server{$name}->safe_psql('postgres',
		"SELECT count(*) FROM chaos WHERE snowflake_machine_id(id) IN ($list)");
	cmp_ok($own, '>', 500, "$own rows were written at $name");
	cmp_ok($own, '<', $count{$name}, '... and the others are from the other side');
	unlike($server{$name}->log_since(0), qr/conflict|duplicate key/i, '... without one conflict');
}
is_deeply([ drawn_twice() ], [], sprintf('no ID of %d came twice', count_drawn()));
done_testing();
