# A login that may only call the lease functions, and a registry that lies. Whatever such
# a login does, honest servers never share a machine ID; whatever such a registry says, a
# server that asks it goes on.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeFleet;
use SnowflakeTest;
use Test::More;

my $registry = new_server('registry', conf => listen_on_loopback());
my $conninfo = make_registry($registry, 'ids');

# Rows and messages of statements of the login's, in the registry.
sub as_keeper
{
	my ($sql) = @_;
	local $ENV{PGUSER} = 'snowflake_keeper';
	$registry->psql('ids', $sql, stdout => \my $rows, stderr => \my $messages);
	return wantarray ? ($rows, $messages) : $rows;
}

my $server = new_server('honest', conf => <<"CONF");
snowflake.registry = '$conninfo'
snowflake.lease_ttl = 1s
snowflake.acquire_timeout = 3s
CONF

#----------------------------------------------------------------------
# What the login cannot do
#----------------------------------------------------------------------

my @ids = $server->draw(3);
foreach my $sql (
	'UPDATE snowflake_lease SET horizon = 0',
	'DELETE FROM snowflake_lease',
	'INSERT INTO snowflake_lease SELECT * FROM snowflake_lease',
	'TRUNCATE snowflake_lease',
	'BEGIN; LOCK snowflake_lease IN ACCESS EXCLUSIVE MODE',
	'ALTER TABLE snowflake_lease DISABLE TRIGGER ALL',
	q{SELECT snowflake_release_lease('default', 1)},
	q{SELECT snowflake_create_generator('mine', 'twitter')},
	q{SELECT snowflake_drop_generator('mine')},
	q{SELECT snowflake_store_generator('mine', 'twitter')},
	'SELECT snowflake_stats_reset()',
	q{INSERT INTO snowflake_generator VALUES ('mine', 'twitter')},
	q{ALTER ROLE snowflake_keeper SUPERUSER},
	q{ALTER SYSTEM SET snowflake.registry = 'host=elsewhere'},
	'DROP EXTENSION snowflake')
{
	my (undef, $message) = as_keeper($sql);
	like($message, qr/permission denied|must be (owner|superuser)/, "the login cannot: $sql");
}

#----------------------------------------------------------------------
# What it can do, and what that does to others
#----------------------------------------------------------------------

# The honest server's lease.
sub lease
{
	my %lease;
	@lease{qw(machine_id instance horizon)} = split /\|/, $registry->safe_psql('ids', <<'SQL');
SELECT machine_id, instance, horizon FROM snowflake_lease
WHERE generator = 'default' AND holder <> 'rogue' AND instance <> 666
ORDER BY renewed_at DESC LIMIT 1
SQL
	return %lease;
}

my %lease = lease();
as_keeper("SELECT snowflake_renew_lease('default', $lease{machine_id}, $lease{instance}, 0, '-1 day', 0)");
my %after = lease();
cmp_ok($after{horizon}, '>=', $lease{horizon}, 'a horizon is never lowered, not in its holder\'s name');

# The lease is taken over by one who has read its row.
my $stolen;
wait_until('a lease to be taken over between two renewals', 30, sub {
	%lease = lease();
	$stolen = as_keeper("SELECT snowflake_resume_lease('default', $lease{machine_id},
		$lease{instance}, $lease{horizon}, 666, 0, '1 hour', $lease{horizon} + 1000)");
	return $stolen ne '';
});
cmp_ok($stolen, '>', $lease{horizon}, 'a lease can be taken over by who reads the table');
my $session = $server->session;
wait_until('the server to have another machine ID', 30, sub {
	push @ids, scalar $session->query('SELECT snowflake_nextval()');
	return machine_id_of($ids[-1]) != $lease{machine_id};
});
is_deeply([ grep { machine_id_of($_) == $lease{machine_id} && time_of($_) - EPOCH_MS >= $lease{horizon} } @ids ],
	[], 'its server draws nothing at or past the horizon that it was granted');
is(duplicates_of(@ids), 0, 'and goes on under another machine ID');

# All machine IDs are taken, with horizons beyond the end of time.
as_keeper(<<'SQL');
SELECT count(l.machine_id) FROM generate_series(0, 1023) AS m,
	snowflake_claim_lease('orders', 'epoch=2010-11-04T01:42:54.657Z unit=ms fields=t41,m10,s12', 666, 0,
		'rogue', '1000 years', 0, 9223372036854775807, int4multirange(int4range(m, m + 1)), '{}') AS l
SQL
my $create = q{SELECT snowflake_create_generator('orders', 'twitter')};
$server->safe_psql('postgres', $create);
like($server->error_of(q{SELECT snowflake_nextval('orders')}),
	qr/no machine ID of generator "orders" is free/, 'a generator can be used up');
$registry->safe_psql('ids', q{DELETE FROM snowflake_lease WHERE holder = 'rogue'});
ok($server->safe_psql('postgres', q{SELECT snowflake_nextval('orders')}) > 0,
	'until an administrator deletes the rows');

# A name is taken under another layout.
as_keeper(<<'SQL');
SELECT snowflake_claim_lease('tickets', 'no layout at all', 666, 0, 'rogue', '1 hour', 0, 1, '{[0,0]}', '{}')
SQL
$server->safe_psql('postgres', $create =~ s/orders/tickets/r);
like($server->error_of(q{SELECT snowflake_nextval('tickets')}),
	qr/the registry knows generator "tickets" under another layout/, 'a name can be taken');

#----------------------------------------------------------------------
# A password in the connection string
#----------------------------------------------------------------------

my $log = $server->log_position;
my $secret = 'needle0147';
$server->set_registry("host=127.0.0.1 port=1 dbname=ids user=snowflake_keeper password=$secret");
$server->safe_psql('postgres', 'CREATE ROLE visitor LOGIN; ' . $create =~ s/orders/secrets/r);
my @seen;
foreach my $sql (
	q{SELECT snowflake_nextval('secrets')},
	'SHOW snowflake.registry',
	q{SELECT current_setting('snowflake.registry')},
	q{SELECT * FROM pg_settings WHERE name LIKE 'snowflake%'},
	'SELECT * FROM pg_file_settings',
	'SELECT * FROM pg_show_all_file_settings()',
	'SELECT * FROM pg_stat_activity',
	map { "SELECT * FROM snowflake_$_" } qw(backends generators lease_status stats layouts))
{
	local $ENV{PGUSER} = 'visitor';
	$server->psql('postgres', "SELECT snowflake_currval();\n$sql", on_error_stop => 0,
		stdout => \my $rows, stderr => \my $messages);
	push @seen, $rows . $messages;
}
like($seen[0], qr/could not connect to the registry: .*127\.0\.0\.1/s,
	'who draws an ID is told where the registry is');
unlike(join("\n", @seen), qr/$secret/, 'but a password in the setting is shown to no ordinary role');
unlike(join("\n", grep { !/parameter "snowflake.registry" changed|LOG:  statement/ } split /\n/, $server->log_since($log)),
	qr/$secret/, 'nor written to the log by the extension');
like($server->log_since($log), qr/parameter "snowflake.registry" changed to .*$secret/,
	'but PostgreSQL itself writes it there at a reload');
$server->set_registry($conninfo);

#----------------------------------------------------------------------
# A registry that lies
#----------------------------------------------------------------------

my %type = (
	snowflake_claim_lease =>
	  'text, text, bigint, oid, text, interval, bigint, bigint, int4multirange, int[]',
	snowflake_renew_lease => 'text, int, bigint, oid, interval, bigint',
	snowflake_lease_outlook => 'text, int4multirange, bigint');

# In the registry, gives a function another body.
sub lie
{
	my ($function, $returns, $body) = @_;
	$registry->safe_psql('ids', <<"SQL");
ALTER EXTENSION snowflake DROP FUNCTION $function($type{$function});
DROP FUNCTION $function($type{$function});
CREATE FUNCTION $function($type{$function}) RETURNS $returns LANGUAGE sql AS \$\$ $body \$\$;
GRANT EXECUTE ON FUNCTION $function($type{$function}) TO snowflake_keeper;
ALTER EXTENSION snowflake ADD FUNCTION $function($type{$function});
SQL
	return;
}

# Each asks for the first lease of a server of its own, so to say: of a new generator.
my $generators = 0;

sub error_of_first_id
{
	my $name = 'lied' . ++$generators;
	$server->safe_psql('postgres', $create =~ s/orders/$name/r);
	return $server->error_of("SELECT snowflake_nextval('$name')");
}

$log = $server->log_position;
foreach my $row (
	[ '100000, 0', 'a machine ID that is too great' ],
	[ '-1, 0', 'a negative machine ID' ],
	[ '1, 9223372036854775807', 'a horizon beyond all time' ],
	[ '1, -5', 'a negative horizon' ],
	[ '1, NULL', 'no horizon' ])
{
	my ($a, $b) = split /, /, $row->[0];
	lie('snowflake_claim_lease', 'TABLE (a text, b text)', "SELECT ($a)::text, ($b)::text");
	like(error_of_first_id(), qr/the registry gives machine ID .* which cannot be|no machine ID/,
		"refused: $row->[1]");
}
lie('snowflake_claim_lease', 'TABLE (a text, b text)', q{SELECT '1', '0' FROM generate_series(1, 2)});
like(error_of_first_id(), qr/could not get a lease/, 'refused: two rows');
lie('snowflake_claim_lease', 'int', 'SELECT 1');
like(error_of_first_id(), qr/cannot be/, 'refused: a column too few');
lie('snowflake_claim_lease', 'TABLE (a text, b text)', 'SELECT NULL, NULL');
foreach my $row ('NULL, NULL, NULL, NULL, NULL', q{'twitter', NULL, NULL, NULL, NULL},
	q{repeat('x', 10000), '-7', repeat('y', 10000), 'never', '9223372036854775807'},
	q{'', '', '', '', '-9223372036854775808'})
{
	lie('snowflake_lease_outlook', 'TABLE (a text, b text, c text, d text, e text)',
		'SELECT ' . join ', ', map { "($_)::text" } split /, (?![^(]*\))/, $row);
	like(error_of_first_id(), qr/could not get a lease/, "refused: " . substr($row, 0, 40));
}
unlike($server->log_since($log), qr/terminated by signal|server process .* exited/,
	'no process of the server has died of it');
$session->quit;
$server->stop;
$registry->stop;
done_testing();
