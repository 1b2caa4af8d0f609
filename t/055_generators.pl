# Named generators outlive a dump, and end exactly where their layout does.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $server = new_server('main', clock => 1);
$server->safe_psql('postgres', <<'SQL');
SELECT snowflake_create_generator('web', 'js_safe');
CREATE TABLE page (id bigint PRIMARY KEY DEFAULT snowflake_nextval('web'), url text);
INSERT INTO page (url) SELECT 'page ' || n FROM generate_series(1, 100) n;
SQL

#----------------------------------------------------------------------
# Dump and restore

my $dump = $server->basedir . '/dump.sql';
$server->command_ok([ 'pg_dump', '-f', $dump, '-d', $server->connstr('postgres') ],
	'a database with a named generator is dumped');
my $other = new_server('other', extension => 0);
$other->safe_psql('postgres', 'CREATE DATABASE restored');
$other->command_ok(
	[ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-1', '-f', $dump, '-d', $other->connstr('restored') ],
	'and restored in one transaction');
is( $other->safe_psql('restored', 'SELECT name, layout FROM snowflake_generator'),
	'web|epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m3,s9',
	'the generator is there, with its layout');
is( $other->safe_psql('restored', 'SELECT machine_id, horizon FROM snowflake_lease'),
	$server->safe_psql('postgres', 'SELECT machine_id, horizon FROM snowflake_lease'),
	'and so are the horizons of its machine IDs');
is($other->safe_psql('restored', 'SELECT count(*) FROM snowflake_lease_status WHERE mine'),
	0, 'which are nobody\'s leases there');
$other->safe_psql('restored', q{INSERT INTO page (url) VALUES ('new')});
is( $other->safe_psql('restored',
		q{SELECT count(*), max(id) < 2 ^ 53, max(url) FILTER (WHERE id = (SELECT max(id) FROM page)) FROM page}),
	'101|t|new', 'IDs go on: distinct, of the layout, and after the ones that were dumped');
isnt(
	$other->safe_psql('restored', 'SELECT max(id) >> 9 & 7 FROM page'),
	$server->safe_psql('postgres', 'SELECT max(id) >> 9 & 7 FROM page'),
	'under another machine ID');

# by a database owner who is no superuser
$other->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE DATABASE plain OWNER plain');
$server->command_ok(
	[ 'pg_dump', '--no-owner', '--no-acl', '-f', $dump, '-d', $server->connstr('postgres') ],
	'a dump without owners');
$other->command_ok(
	[ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-1', '-U', 'plain', '-f', $dump,
		'-d', $other->connstr('plain') ],
	'is restored by a plain owner of a database');
is( $other->safe_psql('plain', 'SELECT machine_id, horizon FROM snowflake_lease'),
	$server->safe_psql('postgres', 'SELECT machine_id, horizon FROM snowflake_lease'),
	'with the horizons');
is($other->safe_psql('plain', q{INSERT INTO page (url) VALUES ('new') RETURNING id > 0}),
	't', 'and IDs go on');

#----------------------------------------------------------------------
# The end of a generator's time, in units of 10 ms and of a second

my %end_ms;
foreach my $unit (10, 1000)
{
	my $name = "short$unit";
	my $text = $unit == 10 ? '10ms' : 's';
	# a layout that began in 2026 and has only 2^31 units
	$server->safe_psql('postgres', "SELECT snowflake_create_generator('$name',
		'epoch=2026-01-01T00:00:00Z unit=$text fields=t31,m4,s8')");
	my $last_ms = EPOCH_MS + ((1 << 31) - 1) * $unit;

	$server->stop_clock_at($last_ms + $unit - 1);
	my @ids = split /\n/, $server->safe_psql('postgres',
		"SELECT snowflake_nextval('$name') FROM generate_series(1, 5)");
	is((grep { $_ >> 12 == (1 << 31) - 1 } @ids) + 0, 5, "unit $text: the last unit works");

	$server->stop_clock_at($last_ms + $unit);
	like($server->error_of("\\set VERBOSITY verbose\nSELECT snowflake_nextval('$name')"),
		qr/2200H: generator "$name" has no more IDs: its time ended at/,
		"unit $text: after it there is an error that says so");

	# less than a year before the end, a server that starts says so once
	$server->set_clock_to($last_ms - 99.5 * 86_400_000);
	my $position = $server->log_position;
	$server->restart;
	$server->safe_psql('postgres', "SELECT snowflake_nextval('$name')") foreach 1, 2;
	my @warnings = $server->log_since($position) =~ /(generator "$name" has no more IDs in \d+ days)/g;
	is_deeply(\@warnings, ["generator \"$name\" has no more IDs in 99 days"],
		"unit $text: the log warns once, at the first claim after a start");
	$server->set_clock(0);
}

# IDs of 53 bits stay below 2^53 to the last
my ($last_web) =
  $server->safe_psql('postgres', q{SELECT extract(epoch FROM last_timestamp) * 1000
	FROM snowflake_generators WHERE name = 'web'}) =~ /^(\d+)/;
$server->stop_clock_at($last_web);
is( $server->safe_psql('postgres',
		q{SELECT max(id) <= 9007199254740991 AND max(id) >= 9007199254740991 - 4095
		  FROM snowflake_nextvals(100, 'web') AS id}),
	't', 'the last IDs of 53 bits are still numbers that JavaScript has');
$server->set_clock(0);

$_->stop foreach $server, $other;
done_testing();
