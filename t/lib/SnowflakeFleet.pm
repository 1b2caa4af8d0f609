# What the tests of several servers share: a registry as the documents tell to set one
# up, clients that draw IDs beside the test, and a look at all that they drew.
#
#     my $registry = make_registry($server, 'ids');
#     my $client = start_client($server->connstr('postgres'), 'a');
#     stop_clients();
#     is_deeply([ drawn_twice() ], [], 'no ID came twice');
#
# Clients draw on a table that make_client_table() makes. Each ID that has reached one
# counts, whatever became of its transaction.
package SnowflakeFleet;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use FindBin;
use List::Util qw(max);
use PostgreSQL::Test::Utils ();
use SnowflakeTest;

our @EXPORT = qw(
  make_registry listen_on_loopback
  make_client_table start_client stop_clients ids_drawn machine_ids_drawn count_drawn drawn_twice drawings
  times_drawn last_drawn_at keep_id
);

my $top = "$FindBin::RealBin/..";

#----------------------------------------------------------------------
# Registries
#----------------------------------------------------------------------

# Lines for postgresql.conf of a server that others reach by TCP.
sub listen_on_loopback { return "listen_addresses = '127.0.0.1'\n"; }

# The SQL that doc/many-servers.md has for a registry's database.
sub documented_setup
{
	my $text = PostgreSQL::Test::Utils::slurp_file("$top/doc/many-servers.md");
	$text =~ /^## Set up a shared registry\n.*?^```sql\n(.*?)^```$/ms
	  or die 'doc/many-servers.md does not say how to set up a registry';
	return $1;
}

# Makes a database that servers can share as their registry. Returns the connection
# string for it, without a host where the caller gives none.
sub make_registry
{
	my ($server, $database, $where) = @_;
	$server->safe_psql('postgres', "CREATE DATABASE $database");
	$server->safe_psql($database, "CREATE EXTENSION snowflake;\n" . documented_setup());
	$where //= 'host=127.0.0.1 port=' . $server->port;
	return "$where dbname=$database user=snowflake_keeper";
}

#----------------------------------------------------------------------
# Clients
#----------------------------------------------------------------------

my (@clients, @drawings, $program);

sub program
{
	if (!defined $program)
	{
		my $name = PostgreSQL::Test::Utils::tempdir('client') . '/client';
		PostgreSQL::Test::Utils::system_or_bail($ENV{CXX} // 'c++', '-std=c++17', '-O2', '-o', $name,
			"$top/test/chaos/client.cpp", '-I/usr/include/postgresql', '-lpq');
		$program = $name;
	}
	return $program;
}

sub make_client_table
{
	my ($server, $database) = @_;
	$server->safe_psql($database // 'postgres',
		'CREATE TABLE chaos (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)');
	return;
}

# A file for IDs that were drawn by `who`.
sub new_drawing
{
	my ($who) = @_;
	my $drawing = { who => $who, path => PostgreSQL::Test::Utils::tempdir('ids') . '/ids' };
	push @drawings, $drawing;
	return $drawing;
}

# A client that draws until it is stopped and connects again whenever it has to.
sub start_client
{
	my ($connstr, $who) = @_;
	my $path = new_drawing($who)->{path};
	my $command = program();
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		open(STDERR, '>', "$path.errors") or die "$path.errors: $!";
		exec($command, "$connstr connect_timeout=3", $path, scalar @drawings) or die "$command: $!";
	}
	push @clients, { pid => $pid, who => $who };
	return;
}

# Stops those of `who`; without an argument, all.
sub stop_clients
{
	my (@who) = @_;
	my %wanted = map { $_ => 1 } @who;
	my @chosen = grep { !@who || $wanted{ $_->{who} } } @clients;
	@clients = grep { @who && !$wanted{ $_->{who} } } @clients;
	kill('TERM', map { $_->{pid} } @chosen);
	my @left = @chosen;
	eval {
		wait_until('clients to end', 10,
			sub { !(@left = grep { waitpid($_->{pid}, 1) == 0 } @left) });
	};
	# one that waits for a server that does not answer ends the hard way
	foreach my $client (@left)
	{
		kill('KILL', $client->{pid});
		waitpid($client->{pid}, 0);
	}
	return;
}

# Clients must not outlive a test that dies.
END
{
	my $status = $?;
	stop_clients();
	$? = $status;
}

# Counts IDs that the test itself has drawn like those of clients.
sub keep_id
{
	my ($who, @ids) = @_;
	my $path = new_drawing($who)->{path};
	open(my $file, '>', $path) or die "$path: $!";
	print $file "0 $_\n" foreach @ids;
	close $file;
	return;
}

# What was drawn so far: hashes of `who` and the `path` of a file with a monotonic time
# in us and an ID on each line.
sub drawings { return grep { -e $_->{path} } @drawings; }

# The files of those drawn by one of `who`, or all.
sub paths_of
{
	my (@who) = @_;
	my %wanted = map { $_ => 1 } @who;
	return map { $_->{path} } grep { !@who || $wanted{ $_->{who} } } drawings();
}

# All their lines.
sub lines_of
{
	my ($pipe, @who) = @_;
	my @paths = paths_of(@who);
	return () if !@paths;
	chomp(my @lines = qx(cat @paths | $pipe));
	return @lines;
}

sub ids_drawn { return lines_of(q{cut -d' ' -f2}, @_); }

# The machine IDs in them.
sub machine_ids_drawn
{
	return lines_of(q{perl -ne 'print((split)[1] >> 12 & 1023, "\n")' | sort -u}, @_);
}

# When IDs came, in us of the monotonic clock, ascending.
sub times_drawn { return lines_of(q{cut -d' ' -f1 | sort -n -u -S 100M}, @_); }

# When the last ID came; 0 if there was none.
sub last_drawn_at
{
	my @paths = paths_of(@_) or return 0;
	return max(0, map { /^(\d+) / } qx(tail -qn 1 @paths));
}

sub count_drawn { return (lines_of('wc -l', @_))[0] // 0; }

# Each ID that was drawn more than once, a few at most.
sub drawn_twice { return lines_of(q{cut -d' ' -f2 | sort -n -S 100M | uniq -d | head}, @_); }

1;
