# All that can go wrong with a shared registry: sessions go on to the end of their
# lease, then get an error that says what is wrong, never wait for longer than
# snowflake.acquire_timeout, and go on by themselves when the registry is back.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use IO::Socket::INET;
use SnowflakeFleet;
use SnowflakeTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $ttl = 2;
my $acquire_timeout = 1;

# For the way of an error from the server to the test, on a busy machine.
my $margin = 1.5;

my $registry = new_server('registry',
	conf => listen_on_loopback() . "max_connections = 6\nmax_wal_senders = 0\nlog_connections = on");
my $conninfo = make_registry($registry, 'ids');
$registry->safe_psql('postgres', q{ALTER ROLE snowflake_keeper PASSWORD 'right'});
unlink $registry->data_dir . '/pg_hba.conf';
$registry->append_conf('pg_hba.conf', "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256");
$registry->reload;

my $password_file = PostgreSQL::Test::Utils::tempdir() . '/passwords';

sub set_password
{
	my ($password) = @_;
	open(my $file, '>', $password_file) or die "$password_file: $!";
	print $file "*:*:*:*:$password\n";
	close $file;
	chmod 0600, $password_file or die "$password_file: $!";
	return;
}

set_password('right');
$conninfo .= " passfile=$password_file";

my $server = new_server('server', preload => 1, conf => <<"CONF");
snowflake.lease_ttl = ${ttl}s
snowflake.acquire_timeout = ${acquire_timeout}s
snowflake.registry = '$conninfo'
CONF

my (@ids, $longest);
my $session = $server->session;

# One ID, or the error in its place.
sub draw
{
	my ($id, $error);
	my $took = seconds_of { ($id, $error) = $session->query('SELECT snowflake_nextval()') };
	$longest = $took if $took > $longest;
	push @ids, $id if $error eq '';
	return $error;
}

sub draw_until
{
	my ($what, $condition) = @_;
	return wait_until($what, 60, sub { my $error = draw(); return $condition->($error) });
}

# In the registry, by a session that may be held up there, so not by the one that is drawn with.
sub newest_horizon
{
	return $registry->safe_psql('ids', 'SELECT max(horizon) FROM snowflake_lease');
}

#----------------------------------------------------------------------
# Troubles
#----------------------------------------------------------------------

my @stopped;
my @occupants;

my @troubles = (
	{
		name => 'killed',
		begin => sub { $registry->crash(1) },
		end => sub { $registry->start },
		says => qr/could not connect to the registry: .*Connection refused/
	},
	{
		name => 'hanging',
		begin => sub {
			@stopped = ($registry->{_pid}, SnowflakeTest::children_of($registry->{_pid}));
			kill('STOP', @stopped);
		},
		end => sub { kill('CONT', @stopped) },
		says => qr/timed out|did not answer within/
	},
	{
		name => 'behind a lock',
		begin => sub {
			@occupants = ($registry->session('ids'));
			$occupants[0]->query('BEGIN; LOCK TABLE snowflake_lease');
		},
		end => sub { $_->quit foreach @occupants },
		says => qr/the registry says: canceling statement due to lock timeout/
	},
	{
		name => 'out of connections',
		begin => sub { @occupants = map { $registry->session } 1 .. 3 },
		end => sub { $_->quit foreach @occupants },
		says => qr/could not connect to the registry: .*FATAL: .*connection slots/
	},
	{
		name => q{at its role's limit},
		begin => sub { $registry->safe_psql('postgres', 'ALTER ROLE snowflake_keeper CONNECTION LIMIT 0') },
		end => sub { $registry->safe_psql('postgres', 'ALTER ROLE snowflake_keeper CONNECTION LIMIT -1') },
		says => qr/could not connect to the registry: .*FATAL: .*too many connections for role "snowflake_keeper"/
	},
	{
		name => 'asked with a wrong password',
		begin => sub { set_password('wrong') },
		end => sub { set_password('right') },
		says => qr/could not connect to the registry: .*password authentication failed for user "snowflake_keeper"/
	},
	{
		name => 'without rights for the role',
		begin => sub { $registry->safe_psql('ids', 'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM snowflake_keeper') },
		end => sub { $registry->safe_psql('ids', SnowflakeFleet::documented_setup() =~ s/^CREATE ROLE.*$//mr) },
		says => qr/the registry says: .*permission denied for function/
	},
	{
		name => 'read-only',
		begin => sub { $registry->safe_psql('postgres', 'ALTER DATABASE ids SET default_transaction_read_only = on') },
		end => sub { $registry->safe_psql('postgres', 'ALTER DATABASE ids RESET default_transaction_read_only') },
		conninfo => "$conninfo target_session_attrs=read-write",
		says => qr/could not connect to the registry: .*session is read-only/
	},
	{
		name => 'without the database',
		begin => sub { $registry->safe_psql('postgres', 'ALTER DATABASE ids RENAME TO away') },
		end => sub { $registry->safe_psql('postgres', 'ALTER DATABASE away RENAME TO ids') },
		says => qr/could not connect to the registry: .*database "ids" does not exist/
	},
	# last, since what it knew of leases is lost
	{
		name => 'without the extension',
		begin => sub { $registry->safe_psql('ids', 'DROP EXTENSION snowflake') },
		end => sub {
			$registry->safe_psql('ids', 'CREATE EXTENSION snowflake');
			$registry->safe_psql('ids', SnowflakeFleet::documented_setup() =~ s/^CREATE ROLE.*$//mr);
		},
		says => qr/the registry's database "ids" has no extension "snowflake"/,
		hint => qr/CREATE EXTENSION snowflake/
	});

foreach my $trouble (@troubles)
{
	my $name = "registry $trouble->{name}";
	$server->set_registry($trouble->{conninfo}) if defined $trouble->{conninfo};

	# with a lease that is fresh
	$longest = 0;
	my $renewals = 'SELECT renewals + claims FROM snowflake_stats';
	my $before = $session->query($renewals);
	draw_until("$name: a fresh lease", sub { $session->query($renewals) > $before });
	my $horizon = newest_horizon();
	$trouble->{begin}->();
	my $began = time;

	$longest = 0;
	my $error = draw_until("$name: an error", sub { $_[0] });
	cmp_ok(time * 1000, '>', $horizon + EPOCH_MS, "$name: the session goes on to the end of its lease");
	cmp_ok(time_of($ids[-1]), '<', ($began + $ttl) * 1000 + 100, '... and not past it');
	like($error, qr/ERROR:  could not get a lease for generator "default"/, '... then there is an error');
	like($error, qr/DETAIL:  .*$trouble->{says}/, '... which says what is wrong');
	like($error, $trouble->{hint} // qr/HINT:  /, '... and where to look');

	# what comes next, in other sessions too, is as quick and says the same
	draw();
	like($server->error_of('SELECT snowflake_nextval()'), qr/DETAIL:  .*$trouble->{says}/,
		'... in a new session as well');
	cmp_ok($longest, '<', $acquire_timeout + $margin,
		sprintf('... and no call took much longer than snowflake.acquire_timeout (%.2f s)', $longest));

	$trouble->{end}->();
	my $healed = seconds_of { draw_until("$name: an ID again", sub { $_[0] eq '' }) };
	cmp_ok($healed, '<', 15, sprintf('... all is well when it is over (%.2f s)', $healed));
	$server->set_registry($conninfo) if defined $trouble->{conninfo};
}
ok(is_increasing(@ids), q{a session's IDs increase, whatever happens to the registry});

#----------------------------------------------------------------------
# A generator that the registry knows under another layout
#----------------------------------------------------------------------

$server->safe_psql('postgres', 'CREATE DATABASE other');
$server->safe_psql('other', 'CREATE EXTENSION snowflake');
$server->safe_psql('postgres', q{SELECT snowflake_create_generator('wide', 'twitter')});
$server->safe_psql('other', q{SELECT snowflake_create_generator('wide', 'discord')});
draw_until('a generator of the same name',
	sub { ($session->query(q{SELECT snowflake_nextval('wide')}))[1] eq '' });
like($server->error_of(q{SELECT snowflake_nextval('wide')}, 'other'),
	qr/the registry knows generator "wide" under another layout: It is ".*epoch=2015.*" here and ".*epoch=2010.*" there/,
	'a generator with another layout is refused');
is(($session->query(q{SELECT snowflake_nextval('wide') > 0}))[0], 't',
	'... and the one that was there first goes on');

#----------------------------------------------------------------------
# Several hosts, the first of which hangs
#----------------------------------------------------------------------

# The kernel accepts connections for it, and nobody answers.
my $deaf = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1', Proto => 'tcp')
  or die "listen: $!";
my $two = $conninfo =~ s/host=(\S+) port=(\S+)/'host=127.0.0.1,127.0.0.1 port=' . $deaf->sockport . ",$2"/er;
$server->set_registry($two);
$server->restart;
$session = $server->session;
$longest = 0;
is(draw(), '', 'of several hosts one that hangs does not use up the time of the others');
cmp_ok($longest, '<', $acquire_timeout + $margin, sprintf('... (%.2f s)', $longest));
$registry->stop('immediate');
draw_until('an error', sub { $_[0] });
like($server->error_of('SELECT snowflake_nextval()'),
	qr/could not connect to the registry: connection to "127\.0\.0\.1", port \d+ timed out; .*Connection refused/,
	'an error tells of each host');
$registry->start;

#----------------------------------------------------------------------
# Shutdown while the keeper waits for the registry
#----------------------------------------------------------------------

# It waits for a statement, and what runs that is stopped.
my $lock = $registry->session('ids');
$lock->query('BEGIN; LOCK TABLE snowflake_lease');
$server->set_registry($conninfo);
$server->append_conf('postgresql.conf', 'snowflake.acquire_timeout = 10min');
$server->restart;
$session = $server->session;
$session->send('SELECT snowflake_nextval()');
my $there = wait_until('the keeper to wait', 60, sub {
	return $registry->safe_psql('ids', q{SELECT pid FROM pg_stat_activity
		WHERE application_name = 'snowflake keeper' AND wait_event_type = 'Lock'});
});
my $event = $server->pg_version < 17 ? 'Extension' : 'SnowflakeRegistry';
is($server->safe_psql('postgres', q{SELECT wait_event_type, wait_event, datname FROM pg_stat_activity
	WHERE backend_type = 'snowflake keeper'}), "Extension|$event|", 'pg_stat_activity tells that a keeper waits for the registry');
kill('STOP', $there);
my $took = seconds_of { $server->stop('fast') };
cmp_ok($took, '<', 30, sprintf('a keeper that waits for its registry does not hold up a shutdown (%.2f s)', $took));
like($server->log_since(0), qr/database system is shut down/, '... which is a clean one');
kill('CONT', $there);
$lock->quit;
$server->append_conf('postgresql.conf', "snowflake.acquire_timeout = 30s\nsnowflake.lease_ttl = 60s");
$server->start;

#----------------------------------------------------------------------
# The setting
#----------------------------------------------------------------------

# Shared, then each database its own, then shared again.
$session = $server->session;
@ids = ();
my $own = 'SELECT count(*) FROM snowflake_lease';
$longest = 0;
is($server->safe_psql('postgres', $own), 0, 'with a registry elsewhere, the own lease table is empty');
draw() foreach 1 .. 100;
$server->set_registry('');
draw() foreach 1 .. 100;
is($server->safe_psql('postgres', $own), 1, 'without the setting, leases are from the own table');
$server->set_registry($conninfo);
draw() foreach 1 .. 100;
is($server->safe_psql('postgres', $own), 1, '... and with it they are not');
is(scalar @ids, 300, 'a session goes on while the setting changes');
is_deeply([ duplicates_of(@ids) ], [], '... without an ID that came twice');
my @machine_ids = map { machine_id_of($ids[ 100 * $_ ]) } 0 .. 2;
isnt($machine_ids[1], $machine_ids[0], '... under another machine ID with another registry');
is($machine_ids[2], $machine_ids[0], '... and the former one with the former registry');

foreach my $bad ('host=here nonsense=1', 'host', q{host=''unfinished}, 'postgresql://[::1')
{
	like($server->error_of("LOAD 'snowflake'; ALTER SYSTEM SET snowflake.registry = '$bad'"),
		qr/invalid value for parameter "snowflake.registry".*DETAIL:  It is no connection string: \S/s,
		"the setting refuses \"$bad\"");
}

$server->safe_psql('postgres', 'CREATE ROLE visitor LOGIN');
{
	local $ENV{PGUSER} = 'visitor';
	like($server->error_of('SHOW snowflake.registry'), qr/must be superuser|permission denied to examine/,
		'an ordinary role cannot see the setting');
	like($server->error_of(q{SET snowflake.registry = ''}), qr/cannot be changed now/,
		'... nor change it');
	is($server->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'snowflake.registry'}),
		0, '... nor find it in pg_settings');
	like($server->safe_psql('postgres', 'SELECT snowflake_nextval()'), qr/^\d+$/, '... but draws IDs');
}
done_testing();
