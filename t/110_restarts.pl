# After a clean stop a preloaded server goes on with the machine ID it had, at once,
# and only if everything is as it left it. Without preloading, or after a crash, the
# next start takes another machine ID, and does not wait.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use SnowflakeTest;
use Test::More;

my $server = new_server('main', preload => 1, clock => 1);
my @drawn = $server->draw(10);
my $saved = $server->data_dir . '/pg_stat/snowflake.leases';

ok(!-e $saved, 'nothing is saved while the server runs');

$server->stop('fast');
ok(-e $saved, 'leases are saved at a clean stop');
$server->start;
ok(!-e $saved, 'and the file is gone when they are used');
push @drawn, $server->draw(10);
is(machine_id_of($drawn[-1]), machine_id_of($drawn[0]),
	'a clean restart goes on with the same machine ID');
cmp_ok(tick_of($drawn[10]), '>', tick_of($drawn[9]), 'after its last tick');

# a clock that has stepped back meanwhile: the saved tick is waited for
$server->stop('fast');
$server->set_clock(-0.9);
$server->start;
push @drawn, $server->draw(10);
is(machine_id_of($drawn[-1]), machine_id_of($drawn[0]),
	'also where the clock has stepped back a little');
is($server->safe_psql('postgres', 'SELECT claims FROM snowflake_stats'),
	1, '... which is no reason to claim more');
ok(is_increasing(@drawn), 'IDs go on in order over restarts');
$server->set_clock(0);

# pinned: no waiting for the server's own horizon
$server->append_conf('postgresql.conf', 'snowflake.machine_ids = ' . machine_id_of($drawn[0]));
$server->restart;
my $took = seconds_of { push @drawn, $server->draw(1) };
cmp_ok($took, '<', 5, 'a pinned server does not wait for its own lease after a clean restart');
$server->crash;
$server->start;
my $error =
  $server->error_of("SET snowflake.acquire_timeout = '1s'; SELECT snowflake_nextval()");
like($error,
	qr/machine ID \d+ of generator "default" is leased to \S+ until .*HINT: .*snowflake\.machine_ids/s,
	'after a crash it has to, and says so');
$server->append_conf('postgresql.conf', q{snowflake.machine_ids = ''});
$server->reload;
push @drawn, $server->draw(10);
isnt(machine_id_of($drawn[-1]), machine_id_of($drawn[0]),
	'a server that is not pinned takes another machine ID after a crash');

#----------------------------------------------------------------------
# What must not be believed

# A copy of the whole data directory, taken while the server was stopped
my $machine_id = machine_id_of($drawn[-1]);
$server->stop('fast');
my $copy = SnowflakeTest::Server->new('copy');
system_or_bail('cp', '-a', $server->data_dir, $copy->data_dir);
$copy->append_conf('postgresql.conf',
	'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . q{'});
$server->start;
$copy->start;
my @original = $server->draw(10);
my @copied = $copy->draw(10);
is(machine_id_of($original[-1]), $machine_id, 'the original goes on');
isnt(machine_id_of($copied[-1]), $machine_id, 'a copy of its files does not');
like(slurp_file($copy->logfile), qr/saved leases are not used/, 'and says so in its log');
push @drawn, @original, @copied;
$copy->stop('fast');

# The same file put back after it was used
$server->stop('fast');
my $backup = slurp_file($saved);
$server->start;
push @drawn, $server->draw(1);
my $used = machine_id_of($drawn[-1]);
$server->crash;
open(my $file, '>:raw', $saved) or die "$saved: $!";
print $file $backup;
close $file;
$server->start;
push @drawn, $server->draw(10);
isnt(machine_id_of($drawn[-1]), $used, 'leases that were saved before are not used a second time');

# A row that is not as the server left it
$server->stop('fast');
$server->start;
$machine_id = machine_id_of($drawn[-1]);
$server->safe_psql('postgres', "SELECT snowflake_release_lease('default', $machine_id)");
push @drawn, $server->draw(10);
isnt(machine_id_of($drawn[-1]), $machine_id, 'nor is a lease that was ended meanwhile');

# A file that is damaged
$server->stop('fast');
open($file, '+<:raw', $saved) or die "$saved: $!";
seek($file, -40, 2);
print $file 'x' x 8;
close $file;
$server->start;
$machine_id = machine_id_of($drawn[-1]);
push @drawn, $server->draw(10);
isnt(machine_id_of($drawn[-1]), $machine_id, 'nor what a damaged file says');

is(duplicates_of(@drawn), 0, 'all IDs are distinct');
$server->stop;

# Without preloading
my $plain = new_server('plain');
@drawn = $plain->draw(10);
$plain->restart;
$took = seconds_of { push @drawn, $plain->draw(10) };
isnt(machine_id_of($drawn[-1]), machine_id_of($drawn[0]),
	'without preloading a restart takes another machine ID');
cmp_ok($took, '<', 5, 'and does not wait');
$plain->stop;
done_testing();
