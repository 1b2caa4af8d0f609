# What the TAP tests share: servers whose clock the test owns, psql sessions that
# run beside the test, and a look at IDs that does not rely on the extension's own
# decoders.
#
#     use FindBin;
#     use lib "$FindBin::RealBin/lib";
#     use SnowflakeTest;
#
#     my $server = new_server('main', clock => 1);
#     my $session = $server->session;
#     $server->set_clock('-0.3');
#     my ($id) = $session->query('SELECT snowflake_nextval()');
#
# Servers are PostgreSQL::Test::Cluster objects with more methods. All waits are
# bounded, and end with an error when the bound is reached.
package SnowflakeTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

our @EXPORT = qw(
  new_server older_installation seconds_of wait_until
  time_of machine_id_of tick_of is_increasing duplicates_of
  process_is_gone must_be_installed
  EPOCH_MS LAST_MS
);

# The default layout: 41 bits of milliseconds since 2026-01-01, 10 of machine ID,
# 12 of sequence.
use constant EPOCH_MS => 1_767_225_600_000;
use constant LAST_MS => EPOCH_MS + (1 << 41) - 1;

#----------------------------------------------------------------------
# Servers
#----------------------------------------------------------------------

# A running server whose database "postgres" has the extension. Options:
#
#   clock => 1       the server's clock follows set_clock()
#   preload => 1     in shared_preload_libraries
#   conf => '...'    lines for postgresql.conf
#   streaming => 1   ready for a standby, see PostgreSQL::Test::Cluster::init
#   extension => 0   without CREATE EXTENSION
#   installation => '/usr/lib/postgresql/15'    of another PostgreSQL
sub new_server
{
	my ($name, %options) = @_;
	my $server = SnowflakeTest::Server->new($name,
		$options{installation} ? (install_path => $options{installation}) : ());
	$server->init(allows_streaming => $options{streaming} // 0);
	$server->append_conf('postgresql.conf', "shared_preload_libraries = 'snowflake'")
	  if $options{preload};
	$server->append_conf('postgresql.conf', $options{conf}) if defined $options{conf};
	$server->own_clock if $options{clock};
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION snowflake') if $options{extension} // 1;
	return $server;
}

# The latest older major version beside this one that has the extension, if there is one.
sub older_installation
{
	my $major = `pg_config --version` =~ /^PostgreSQL (\d+)/ ? $1 : die 'no pg_config';
	foreach my $older (reverse 15 .. $major - 1)
	{
		my $path = "/usr/lib/postgresql/$older";
		return $path
		  if -x "$path/bin/pg_ctl" && -e "/usr/share/postgresql/$older/extension/snowflake.control";
	}
	return;
}

#----------------------------------------------------------------------
# Time
#----------------------------------------------------------------------

# How many seconds a piece of code takes, by the monotonic clock.
sub seconds_of(&)
{
	my ($code) = @_;
	my $began = clock_gettime(CLOCK_MONOTONIC);
	$code->();
	return clock_gettime(CLOCK_MONOTONIC) - $began;
}

# Waits until the condition holds and returns what it gave; dies after $bound
# seconds, saying what was waited for.
sub wait_until
{
	my ($what, $bound, $condition) = @_;
	my $deadline = clock_gettime(CLOCK_MONOTONIC) + $bound;
	while (1)
	{
		my $result = $condition->();
		return $result if $result;
		die "timed out after $bound s: $what" if clock_gettime(CLOCK_MONOTONIC) > $deadline;
		usleep(10_000);
	}
}

#----------------------------------------------------------------------
# IDs of the default layout
#----------------------------------------------------------------------

# Unix time in ms.
sub time_of { return ($_[0] >> 22) + EPOCH_MS; }

sub machine_id_of { return ($_[0] >> 12) & 1023; }

# An ID's place in the life of its machine ID.
sub tick_of { return ($_[0] >> 22 << 12) | ($_[0] & 4095); }

sub is_increasing
{
	my @ids = @_;
	foreach my $i (1 .. $#ids)
	{
		return 0 if $ids[$i] <= $ids[ $i - 1 ];
	}
	return 1;
}

# Each ID that is there more than once.
sub duplicates_of
{
	my %seen;
	return grep { $seen{$_}++ == 1 } @_;
}

#----------------------------------------------------------------------
# Programs
#----------------------------------------------------------------------

# True in CI on Debian 12, where a test may not be skipped for want of a package.
sub must_be_installed
{
	return 0 if ($ENV{CI} // '') ne 'true';
	open(my $release, '<', '/etc/os-release') or return 0;
	return scalar grep { /^VERSION_CODENAME=bookworm$/ } <$release>;
}

#----------------------------------------------------------------------
# Processes
#----------------------------------------------------------------------

# True if there is no such process, or only what its parent has not collected yet.
sub process_is_gone
{
	my ($pid) = @_;
	open(my $stat, '<', "/proc/$pid/stat") or return 1;
	my $line = <$stat>;
	return !defined $line || $line =~ /\) Z /;
}

sub children_of
{
	my ($parent) = @_;
	my @children;
	foreach my $file (glob '/proc/[0-9]*/stat')
	{
		open(my $stat, '<', $file) or next;
		my $line = <$stat> // '';
		push @children, $1 if $line =~ /^(\d+) \(.*\) \S $parent /;
	}
	return @children;
}

#----------------------------------------------------------------------

package SnowflakeTest::Server;

use strict;
use warnings FATAL => 'all';

use parent -norequire, 'PostgreSQL::Test::Cluster';

use Fcntl qw(O_CREAT O_WRONLY);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils ();    # its functions would hide methods of the same names
use Time::HiRes qw(clock_gettime CLOCK_REALTIME);

# From its next start on, the server's clock follows set_clock(). What the test
# and its clients see of time stays as it is; so does the server's monotonic clock.
sub own_clock
{
	my ($self) = @_;
	my $base = $self->basedir;
	$self->{_clock_file} = "$base/clock";
	$self->{_clock_library} = "$base/test_clock.so";
	my $source = __FILE__ =~ s/[^\/]*$/test_clock.c/r;
	PostgreSQL::Test::Utils::system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', '-O2', '-o',
		$self->{_clock_library}, $source, '-ldl');
	$self->set_clock(0);
	return;
}

my %seconds_in = ('' => 1, d => 86_400, y => 31_557_600);

# Steps the server's clock: to the true time plus an offset such as '-0.3' (seconds),
# '+30d' or '-40y'. All its processes see it at once.
sub set_clock
{
	my ($self, $offset) = @_;
	my ($number, $unit) = $offset =~ /^([-+]?[0-9.]+)([dy]?)$/ or die "no offset: $offset";
	return $self->_write_clock($number * $seconds_in{$unit} * 1e9);
}

# Steps the server's clock to a Unix time in ms, from where it goes on.
sub set_clock_to
{
	my ($self, $unix_ms) = @_;
	return $self->_write_clock($unix_ms * 1e6 - clock_gettime(CLOCK_REALTIME) * 1e9);
}

# Stops the server's clock at a Unix time in ms. Timeouts of PostgreSQL's own do not
# end then.
sub stop_clock_at
{
	my ($self, $unix_ms) = @_;
	return $self->_write_clock($unix_ms * 1_000_000 + (1 << 62));
}

# See test_clock.c. The file is mapped, so it must stay the same file.
sub _write_clock
{
	my ($self, $setting) = @_;
	sysopen(my $file, $self->{_clock_file}, O_WRONLY | O_CREAT) or die "$self->{_clock_file}: $!";
	syswrite($file, pack('q', $setting)) == 8 or die "$self->{_clock_file}: $!";
	close $file;
	return;
}

# Unix time in ms as the server's clock shows it.
sub clock
{
	my ($self) = @_;
	return $self->safe_psql('postgres',
		'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint');
}

# pg_ctl gets the clock too, since it compares the server's start with its own.
sub _with_clock
{
	my ($self, $code) = @_;
	local %ENV = %ENV;
	if (defined $self->{_clock_file})
	{
		$ENV{LD_PRELOAD} = $self->{_clock_library};
		$ENV{TEST_CLOCK} = $self->{_clock_file};
	}
	return $code->();
}

sub start
{
	my ($self, @params) = @_;
	return $self->_with_clock(sub { $self->SUPER::start(@params) });
}

sub restart
{
	my ($self, @params) = @_;
	return $self->_with_clock(sub { $self->SUPER::restart(@params) });
}

# Kills the postmaster as a crash would and waits until its children have noticed
# (a server cannot start beside them). With `everything`, kills those as well, all
# at once, as a power cut would.
sub crash
{
	my ($self, $everything) = @_;
	my $postmaster = $self->{_pid};
	my @children = SnowflakeTest::children_of($postmaster);
	kill('STOP', $postmaster, @children) if $everything;
	$self->kill9;
	kill('KILL', @children) if $everything;
	foreach my $pid ($postmaster, @children)
	{
		SnowflakeTest::wait_until("process $pid is gone", 30,
			sub { SnowflakeTest::process_is_gone($pid) });
	}
	# Where nobody collects the dead postmaster (in a container, say), these would
	# make the next one believe that it is still there.
	unlink $self->data_dir . '/postmaster.pid',
	  $self->host . '/.s.PGSQL.' . $self->port . '.lock';
	return;
}

# Names another registry and sees to it that all new sessions know it; '' is none.
sub set_registry
{
	my ($self, $value) = @_;
	$self->append_conf('postgresql.conf', "snowflake.registry = '$value'");
	$self->reload;
	$self->poll_query_until('postgres', "SELECT current_setting('snowflake.registry') = '$value'")
	  or die 'the setting has not changed';
	return;
}

# The name of the setting that has every query run by a parallel worker too.
sub parallel_setting
{
	my ($self) = @_;
	return $self->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';
}

# Where the server's log ends now, for wait_for_log() and log_since().
sub log_position { return -s $_[0]->logfile; }

sub log_since
{
	my ($self, $position) = @_;
	return PostgreSQL::Test::Utils::slurp_file($self->logfile, $position);
}

# Runs a statement that has to fail and returns its messages.
sub error_of
{
	my ($self, $sql, $database) = @_;
	my $status = $self->psql($database // 'postgres', $sql, stderr => \my $error);
	die "no error: $sql" if $status == 0;
	return $error;
}

# IDs drawn by sessions of their own, in the order drawn.
sub draw
{
	my ($self, $count, $database) = @_;
	return split /\n/,
	  $self->safe_psql($database // 'postgres', 'SELECT snowflake_nextvals(' . ($count // 1) . ')');
}

# A psql session that runs beside the test.
sub session
{
	my ($self, $database) = @_;
	return SnowflakeTest::Session->new($self, $database // 'postgres');
}

#----------------------------------------------------------------------

# A psql session. A statement's end is known by a mark that psql writes after it.
package SnowflakeTest::Session;

use strict;
use warnings FATAL => 'all';

use IPC::Run;

sub new
{
	my ($class, $server, $database) = @_;
	my $self = bless { in => '', out => '', error => '', sent => 0, done => 0 }, $class;
	$self->{psql} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $server->connstr($database), '-f', '-' ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{error});
	$self->{pid} = $self->query('SELECT pg_backend_pid()');
	return $self;
}

# The process ID of its backend.
sub pid { return $_[0]->{pid}; }

# Sends statements without waiting for what they give.
sub send
{
	my ($self, $sql) = @_;
	my $mark = 'mark ' . ++$self->{sent};
	$self->{in} .= "$sql\n;\n\\echo '$mark'\n\\warn '$mark'\n";
	$self->{psql}->pump_nb;
	return;
}

# True while the statements sent last have not ended.
sub is_busy
{
	my ($self) = @_;
	my $mark = qr/^mark $self->{sent}\n/m;    # all of it: the line may come in parts
	$self->{psql}->pump_nb if $self->{psql}->pumpable;
	return !($self->{out} =~ $mark && $self->{error} =~ $mark);
}

# What the statements sent last gave: the rows, and the messages. A connection that
# was lost ends the wait as well.
sub result
{
	my ($self, $bound) = @_;
	SnowflakeTest::wait_until('a session to be ready',
		$bound // $PostgreSQL::Test::Utils::timeout_default,
		sub { !$self->is_busy || !$self->{psql}->pumpable });
	my ($out, $error) = map { s/^mark \d+\n//mgr } @$self{qw(out error)};
	@$self{qw(out error)} = ('', '');
	chomp($out, $error);
	return wantarray ? ($out, $error) : $out;
}

# Runs statements: returns the rows, in list context the messages too.
sub query
{
	my ($self, $sql, $bound) = @_;
	$self->send($sql);
	return $self->result($bound);
}

# Ends the session.
sub quit
{
	my ($self) = @_;
	if ($self->{psql}->pumpable)
	{
		$self->{in} .= "\\q\n";
	}
	$self->{psql}->finish;
	return;
}

1;
