# The extension dropped and made again, databases side by side, a standby and its
# promotion; all of it without and with preloading.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use Test::More;

my $machine_id_held = 'SELECT machine_id FROM snowflake_lease_status WHERE mine';

foreach my $preload (0, 1)
{
	my $how = $preload ? 'preloaded' : 'not preloaded';
	my $server = new_server("primary_$preload", preload => $preload, streaming => 1);

	#------------------------------------------------------------------
	# Dropped and made again
	#------------------------------------------------------------------

	# Sessions with plans of every kind that know the old functions by their numbers.
	my $maker = $server->session;
	my $other = $server->session;
	my $stranger = $server->session;
	my $plans = <<'SQL';
PREPARE draw AS SELECT snowflake_nextval();
CREATE FUNCTION pg_temp.draw() RETURNS bigint LANGUAGE plpgsql
	AS 'BEGIN RETURN snowflake_nextval(); END';
SQL
	my $draw = 'EXECUTE draw; SELECT pg_temp.draw(); SELECT snowflake_nextval()';
	my @drawn;
	foreach my $session ($maker, $other)
	{
		$session->query($plans);
		push @drawn, map { split /\n/, $session->query($draw) } 1 .. 8;
	}
	my $rounds = 3;
	foreach my $round (1 .. $rounds)
	{
		my ($rows, $error) = $maker->query('DROP EXTENSION snowflake; SELECT snowflake_nextval()');
		like($error, qr/function snowflake_nextval\(\) does not exist/,
			"$how, round $round: a dropped extension draws nothing");
		($rows, $error) = $other->query('EXECUTE draw');
		like($error, qr/function snowflake_nextval\(\) does not exist/,
			"$how, round $round: nor do the plans of others");
		$maker->query('CREATE EXTENSION snowflake');
		foreach my $session ($other, $maker)
		{
			($rows, $error) = $session->query($draw);
			is($error, '', "$how, round $round: one made again is used by sessions with old plans");
			push @drawn, split /\n/, $rows;
			is($session->query('SELECT snowflake_currval()'),
				$drawn[-1], "$how, round $round: which have a current value again");
		}
		is($maker->query($machine_id_held), machine_id_of($drawn[-1]),
			"$how, round $round: and draw on a lease of the new registry");
	}
	push @drawn, scalar $stranger->query('SELECT snowflake_nextval()');
	is(scalar @drawn, 2 * 3 * (8 + $rounds) + 1, "$how: IDs were drawn before and after");
	is(duplicates_of(@drawn), 0, "$how: no ID is repeated, though each registry knew nothing");
	my ($rows, $error) = $maker->query(
		'DROP EXTENSION snowflake; CREATE EXTENSION snowflake; SELECT snowflake_currval()');
	like($error, qr/has not drawn an ID in this session yet/,
		"$how: a new extension has no current value");

	# Rolled back: the old one is there as if nothing had been.
	push @drawn, scalar $other->query('SELECT snowflake_nextval()');
	push @drawn, split /\n/, $maker->query(<<'SQL');
BEGIN;
DROP EXTENSION snowflake;
CREATE EXTENSION snowflake;
SELECT snowflake_nextval();
ROLLBACK;
SELECT snowflake_nextval();
SQL
	push @drawn, scalar $other->query('SELECT snowflake_nextval()');
	is(machine_id_of($drawn[-2]), machine_id_of($drawn[-4]),
		"$how: after a rollback the extension goes on as it was");
	is(duplicates_of(@drawn), 0, "$how: no ID of the rolled back one is repeated");
	$_->quit foreach $maker, $other, $stranger;

	#------------------------------------------------------------------
	# Databases side by side
	#------------------------------------------------------------------

	my @databases = map { "side_$_" } 1 .. 3;
	$server->safe_psql('postgres', "CREATE DATABASE $_") foreach @databases;
	my @sessions = map { $server->session($_) } @databases;
	$_->query('CREATE EXTENSION snowflake') foreach @sessions;
	$_->send('SELECT snowflake_nextvals(2000)') foreach @sessions;
	@drawn = map { split /\n/, $_->result } @sessions;
	push @drawn, $server->draw(2000);
	is(scalar @drawn, 8000, "$how: four databases draw IDs");
	is(duplicates_of(@drawn), 0, "$how: distinct ones, while machine IDs are free for each");
	is($sessions[1]->query('SELECT snowflake_nextval() > 0; DROP EXTENSION snowflake;'
			. 'CREATE EXTENSION snowflake; SELECT snowflake_nextval() > 0'),
		"t\nt", "$how: one of them makes its extension anew");
	is($sessions[0]->query($machine_id_held), machine_id_of($drawn[0]),
		"$how: which does not disturb the others");
	$_->quit foreach @sessions;

	#------------------------------------------------------------------
	# A standby
	#------------------------------------------------------------------

	$server->backup('base');
	my $standby = SnowflakeTest::Server->new("standby_$preload");
	$standby->init_from_backup($server, 'base', has_streaming => 1);
	$standby->start;
	$server->safe_psql('postgres', 'CREATE TABLE last_change ()');
	$server->wait_for_catchup($standby);

	my $reader = $standby->session;
	($rows, $error) = $reader->query("\\set VERBOSITY verbose\nSELECT snowflake_nextval()");
	like($error, qr/ERROR:  25006: cannot draw snowflake IDs during recovery/,
		"$how: a standby draws no IDs");
	like($error, qr/HINT: .*primary server/, "$how: and says where to draw them");
	($rows, $error) = $reader->query('SELECT snowflake_currval()');
	like($error, qr/has not drawn an ID/, "$how: nor has it a current value");
	my $id = $drawn[-1];
	is($reader->query("SELECT snowflake_machine_id($id)"),
		machine_id_of($id), "$how: it decodes them");
	is($reader->query('SELECT count(*) FROM snowflake_lease_status WHERE mine'),
		0, "$how: none of the primary's leases is its own");

	# The primary goes on while it has been given up for dead.
	$standby->promote;
	my @old = $server->draw(2000);
	my @new = split /\n/, $reader->query('SELECT snowflake_nextvals(2000)');
	push @old, $server->draw(2000);
	push @new, $standby->draw(2000);
	is(scalar(@new), 4000, "$how: a promoted standby draws IDs, in sessions from before too");
	is(duplicates_of(@old, @new), 0, "$how: distinct from those of its old primary");
	my %old = map { machine_id_of($_) => 1 } @old;
	is(scalar(grep { $old{ machine_id_of($_) } } @new),
		0, "$how: with a machine ID of its own");
	$reader->quit;

	$standby->stop;
	$server->stop;
}

done_testing();
