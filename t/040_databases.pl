# Databases are dropped, copied and renamed while IDs are drawn, and many draw them
# side by side.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use PostgreSQL::Test::Utils;
use Test::More;

# PostgreSQL waits up to 5 s for others to let go of a database.
my $no_wait = 4.5;

# As few machine IDs as there are databases: two of them would soon have the same by
# chance. Short leases, so that there are renewals.
my $server = new_server(
	'main',
	extension => 0,
	conf => "snowflake.machine_ids = '0-3'\nsnowflake.lease_ttl = '1s'");

sub make_database
{
	my ($name) = @_;
	$server->safe_psql('postgres', "CREATE DATABASE $name");
	$server->safe_psql($name, <<'SQL');
CREATE EXTENSION snowflake;
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
SQL
	return;
}

sub insert
{
	my ($database, $rows) = @_;
	return split /\n/, $server->safe_psql($database,
		'INSERT INTO item SELECT FROM generate_series(1, ' . ($rows // 1) . ') RETURNING id');
}

#----------------------------------------------------------------------
# Right after an insert
#----------------------------------------------------------------------

# The first insert claims a machine ID, one after the lease has run out does so again.
make_database('original');
my ($before) = insert('original');
my $took = seconds_of
{
	$server->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE original');
};
cmp_ok($took, '<', $no_wait, 'a database can be copied right after an insert');

insert('copy');
$took = seconds_of
{
	$server->safe_psql('postgres', 'ALTER DATABASE copy RENAME TO renamed');
};
cmp_ok($took, '<', $no_wait, 'a database can be renamed right after an insert');

make_database('dropped');
insert('dropped');
$took = seconds_of { $server->safe_psql('postgres', 'DROP DATABASE dropped'); };
cmp_ok($took, '<', $no_wait, 'a database can be dropped right after an insert');

# A new database that happens to have the name of a former one.
make_database('dropped');
ok((insert('dropped'))[0] > 0, '... and made anew');
$server->safe_psql('postgres', 'DROP DATABASE dropped');

# Also while sessions keep its lease renewed.
my $session = $server->session('original');
my $first = $session->query('SELECT max(renewed_at) FROM snowflake_lease');
wait_until('a renewal', 20, sub {
	$session->query('INSERT INTO item DEFAULT VALUES');
	return $session->query("SELECT max(renewed_at) > '$first' FROM snowflake_lease") eq 't';
});
$session->quit;
$took = seconds_of
{
	$server->safe_psql('postgres', 'ALTER DATABASE original RENAME TO other');
	$server->safe_psql('postgres', 'ALTER DATABASE other RENAME TO original');
};
cmp_ok($took, '<', $no_wait, 'a database can be renamed right after a renewal');

my ($after) = insert('original');
is(machine_id_of($after), machine_id_of($before), 'a renamed database keeps its machine ID');
cmp_ok($after, '>', $before, '... and its IDs go on');

#----------------------------------------------------------------------
# No more connections
#----------------------------------------------------------------------

# The keeper gets in all the same: it is no client, and who is in goes on.
$server->safe_psql('original', <<'SQL');
CREATE ROLE visitor LOGIN CONNECTION LIMIT 1;
GRANT INSERT, SELECT ON item TO visitor;
ALTER DATABASE original CONNECTION LIMIT 1;
SQL
{
	local $ENV{PGUSER} = 'visitor';
	$session = $server->session('original');
	like($server->error_of('SELECT 1', 'original'), qr/too many connections/,
		'a database and a role are at their limits');
}
$server->safe_psql('postgres', 'ALTER DATABASE original ALLOW_CONNECTIONS false');
like($server->error_of('SELECT 1', 'original'), qr/not currently accepting connections/,
	'... and now nobody may connect');
my $serviced = 'SELECT claims + renewals FROM snowflake_stats';
my $services = $session->query($serviced);
my $error = '';
wait_until('renewals', 20, sub {
	$error = ($session->query('INSERT INTO item DEFAULT VALUES'))[1];
	return $error ne '' || $session->query($serviced) > $services + 3;
});
is($error, '', '... but who is connected draws IDs, on leases that are claimed and renewed');
$session->quit;
$server->safe_psql('postgres', 'ALTER DATABASE original ALLOW_CONNECTIONS true CONNECTION LIMIT -1');

#----------------------------------------------------------------------
# A copy draws beside its original
#----------------------------------------------------------------------

my @ids;
my %drawn_in;

# Draws in turn until each database has had its lease renewed once more.
sub draw_beside
{
	my (@databases) = @_;
	my $renewals = 'SELECT count(*) > 0 FROM snowflake_lease_status WHERE mine AND renewed_at > ';
	my %since;
	foreach my $database (@databases)
	{
		$since{$database} = $server->safe_psql($database, 'SELECT clock_timestamp()');
	}
	foreach my $database (@databases)
	{
		wait_until("a renewal in $database", 30, sub {
			foreach my $each (@databases)
			{
				my @new = insert($each, 500);
				push @ids, @new;
				$drawn_in{$each}{ machine_id_of($_) }++ foreach @new;
			}
			return $server->safe_psql($database, "$renewals '$since{$database}'") eq 't';
		});
	}
	return;
}

sub machine_ids_of
{
	return join ',', sort keys %{ $drawn_in{ $_[0] } };
}

@ids = (insert('original'), insert('renamed'));
draw_beside('original', 'renamed');
my @shared = grep { $drawn_in{renamed}{$_} } keys %{ $drawn_in{original} };
is_deeply(\@shared, [], 'a copy never has the machine ID that its original holds');
is_deeply([ duplicates_of(@ids) ], [], '... and no ID is in both');
is($server->safe_psql('renamed',
		'SELECT count(*) FROM snowflake_lease_status AS s JOIN snowflake_lease AS l
		USING (generator, machine_id)
		WHERE s.mine AND l.database = (SELECT oid FROM pg_database
			WHERE datname = current_database())'),
	1, '... the lease that it draws on is its own');

#----------------------------------------------------------------------
# Side by side
#----------------------------------------------------------------------

make_database($_) foreach 'third', 'fourth';
%drawn_in = ();
draw_beside('original', 'renamed', 'third', 'fourth');
my %holders;
foreach my $database (sort keys %drawn_in)
{
	push @{ $holders{$_} }, $database foreach keys %{ $drawn_in{$database} };
}
is_deeply([ map { scalar @$_ } values %holders ], [ 1, 1, 1, 1 ],
	'as many databases as machine IDs: each has one of its own')
  or diag explain \%holders;
is_deeply([ duplicates_of(@ids) ], [], '... and no ID came twice');

# More databases than machine IDs: these are different ID spaces, so all of them go on.
make_database('fifth');
ok((insert('fifth'))[0] > 0, 'one more database draws IDs too');
$server->stop;

#----------------------------------------------------------------------
# Many: as many as there are machine IDs
#----------------------------------------------------------------------

my $many = 50;
my $together = 12;
$server = new_server('many', conf => "max_connections = 50\nsnowflake.machine_ids = '0-49'");
my $slots = $server->safe_psql('postgres', 'SHOW max_worker_processes');
cmp_ok($slots, '<', $together, 'there are fewer worker slots than databases');
$server->safe_psql('postgres',
	join "\n", map { "CREATE DATABASE db$_ TEMPLATE postgres;" } 1 .. $many);
my @first = split /\n/, $server->safe_psql('postgres',
	join "\n", map { "\\connect db$_\nSELECT snowflake_nextval();" } 1 .. $many);
is(scalar @first, $many, "$many databases draw IDs in turn");
my %machine_ids = map { machine_id_of($_) => 1 } @first;
is(scalar keys %machine_ids, $many, '... each with a machine ID of its own');
ok($server->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'snowflake keeper'}),
	'... and no keeper stays');

# All at once: some have to wait for a worker slot.
$server->restart;
my @sessions = map { $server->session("db$_") } 1 .. $together;
$_->send('SELECT snowflake_nextval()') foreach @sessions;
@first = map { ($_->result(30))[0] } @sessions;
%machine_ids = map { machine_id_of($_) => 1 } @first;
is(scalar keys %machine_ids, $together,
	'databases that claim at the same time have different machine IDs');
$_->quit foreach @sessions;

done_testing();
