# Drivers and ORMs as people use them: keys come back, one and many, and exact, and
# models that know only of a sequence go on after snowflake_convert().
#
# Each client in test/clients says what it checked and which key it believes a row to
# have; that is compared with the table here. A client that is not installed is skipped,
# but not in CI on Debian 12, which has all of them.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use IPC::Run qw(run timeout);
use PostgreSQL::Test::Utils;
use Test::More;

my $clients = "$FindBin::RealBin/../test/clients";
my $jdbc = '/usr/share/java/postgresql.jar';

my @python = ('python3', '-B');
my @java = ('java', '-XX:TieredStopAtLevel=1', '-Xshare:auto', '-cp', $jdbc);

# What has to succeed for a client to be there, and how it is started.
my %client = (
	psycopg2 => { needs => [ @python, '-c', 'import psycopg2' ], run => [ @python, 'client.py' ] },
	psycopg => { needs => [ @python, '-c', 'import psycopg' ], run => [ @python, 'client.py' ] },
	sqlalchemy => { needs => [ @python, '-c', 'import sqlalchemy, psycopg2' ], run => [ @python, 'client.py' ] },
	django => { needs => [ @python, '-c', 'import django, psycopg2' ], run => [ @python, 'client.py' ] },
	'node-pg' => { needs => [ 'node', '-e', 'require("pg")' ], run => [ 'node', 'client.js' ] },
	'postgres-js' => { needs => [ 'node', '-e', 'require("postgres")' ], run => [ 'node', 'client.js' ] },
	drizzle => { needs => [ 'node', '-e', 'require("drizzle-orm")' ], run => [ 'node', 'client.js' ] },
	typeorm => { needs => [ 'node', '-e', 'require("typeorm")' ], run => [ 'node', 'client.js' ] },
	# starts a file only with a compiler at hand
	jdbc => { needs => [ 'sh', '-c', "test -e $jdbc && java --list-modules | grep -q jdk.compiler" ], run => [ @java, 'Client.java' ] });

# The clients that have no Unix sockets.
my $server = new_server('main', conf => "listen_addresses = '127.0.0.1'\n");
$server->safe_psql('postgres', <<'SQL');
CREATE DATABASE drivers;
\c drivers
CREATE EXTENSION snowflake;
CREATE TABLE item (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), name text UNIQUE);
CREATE DATABASE models;
\c models
CREATE EXTENSION snowflake;
SQL

my $user = $server->safe_psql('postgres', 'SELECT current_user');

# Runs a command in a client's directory.
sub run_in
{
	my ($name, $command, $database, $out) = @_;
	local %ENV = (
		%ENV,
		PYTHONPATH => "$clients/lib",
		PGHOST => '127.0.0.1',
		PGPORT => $server->port,
		PGUSER => $user,
		PGDATABASE => $database);
	my $ran = run($command, '<', \undef, '>', \$$out, '2>', \my $error,
		init => sub { chdir "$clients/$name" or die "$clients/$name: $!" },
		timeout($PostgreSQL::Test::Utils::timeout_default));
	note $error if $error ne '';
	return $ran;
}

sub is_at_hand
{
	my ($name) = @_;
	return 1 if run_in($name, $client{$name}{needs}, 'postgres', \my $out);
	fail("$name is installed") if must_be_installed();
	return 0;
}

# Runs a client to its end, and compares the keys that it got with those in its tables.
sub run_client
{
	my ($name, $database, $tables, @arguments) = @_;
	my $about = join ' ', $name, @arguments;
	my $ran = run_in($name, [ @{ $client{$name}{run} }, @arguments ], $database, \my $out);
	ok($ran && $out =~ /^done$/m, "$about: runs to its end");
	my (%keys, $checked);
	foreach my $line (split /\n/, $out)
	{
		if ($line =~ /^(not )?ok - (.*)$/) { ok(!defined $1, "$about: $2"); $checked++ }
		elsif ($line =~ /^key (\S+) (\S+) (\S+)$/) { push @{ $keys{$1}{$2} }, $3 }
	}
	ok($checked, "$about: has checked something");
	is_deeply([ sort keys %keys ], [ sort @$tables ], "$about: has got keys of its tables");
	foreach my $table (@$tables)
	{
		$server->psql($database, "SELECT name, id FROM $table", stdout => \my $rows);
		my %true = map { split /\|/ } split /\n/, $rows;
		my @wrong;
		foreach my $row (sort keys %{ $keys{$table} })
		{
			my $true = $true{$row} // 'there';
			push @wrong, map { "$row: $_, not $true" } grep { $_ ne $true } @{ $keys{$table}{$row} };
		}
		is_deeply(\@wrong, [], "$about: its " . keys(%{ $keys{$table} }) . " keys of $table are the table's");
	}
	return;
}

#----------------------------------------------------------------------
# Drivers, on a table with snowflake_nextval() for a default
#----------------------------------------------------------------------

foreach my $name ('psycopg2', 'psycopg', 'node-pg', 'postgres-js', 'drizzle', 'jdbc')
{
  SKIP:
	{
		skip "$name is not installed", 1 unless is_at_hand($name);
		my $database = "on $name";
		$server->safe_psql('postgres', qq(CREATE DATABASE "$database" TEMPLATE drivers));
		run_client($name, $database, [ 'item', $name eq 'node-pg' ? ('page', 'ticket') : () ]);
		is($server->safe_psql($database, <<'SQL'), '0', "$name: all keys are IDs of this hour");
SELECT count(*) FROM item
WHERE snowflake_timestamp(id) NOT BETWEEN now() - interval '1 hour' AND now()
SQL
	}
}

#----------------------------------------------------------------------
# Models, whose own sequences give way to IDs
#----------------------------------------------------------------------

my %tables = (
	sqlalchemy => [ 'orders', 'lines' ],
	django => [ 'shop_order', 'shop_line' ],
	typeorm => [ 'orders', 'lines' ]);
foreach my $name (sort keys %tables)
{
  SKIP:
	{
		skip "$name is not installed", 1 unless is_at_hand($name);
		my $database = "on $name";
		$server->safe_psql('postgres', qq(CREATE DATABASE "$database" TEMPLATE models));
		run_client($name, $database, [ $tables{$name}[0] ], 'before');
		foreach my $table (@{ $tables{$name} })
		{
			like($server->safe_psql($database, "SELECT snowflake_convert('$table', 'id')"),
				qr/SET DEFAULT public\.snowflake_nextval\(\)/, "$name: $table is converted");
		}
		run_client($name, $database, $tables{$name}, 'after');
		foreach my $table (@{ $tables{$name} })
		{
			is($server->safe_psql($database, <<"SQL"), '0|3', "$name: new keys of $table are IDs, old ones stay");
SELECT count(*) FILTER (WHERE name NOT LIKE 'old-%'
                        AND snowflake_timestamp(id) NOT BETWEEN now() - interval '1 hour' AND now()),
       count(*) FILTER (WHERE id <= 3 AND name LIKE 'old-%')
FROM $table
SQL
		}
	}
}

#----------------------------------------------------------------------
# What doc/javascript.md shows
#----------------------------------------------------------------------

SKIP:
{
	skip 'node-pg is not installed', 1 unless is_at_hand('node-pg');
	$client{'node-pg'}{run} = [ 'node', 'document.js' ];
	run_client('node-pg', 'models', []);
}

done_testing();
