# More IDs than one sequence holds: the server takes more machine IDs, up to
# snowflake.max_machine_ids, and each session's IDs still increase. What a burst took
# lapses when it is over.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use Test::More;

my $server = new_server('main', conf => <<'CONF');
snowflake.lease_ttl = 2s
snowflake.max_machine_ids = 3
CONF

# Seconds of 16 sequences: a session alone uses them up at once.
$server->safe_psql('postgres', q{SELECT snowflake_create_generator('slow',
	'epoch=2026-01-01T00:00:00Z unit=s fields=t40,m6,s4')});
$server->safe_psql('postgres', q{SELECT snowflake_create_generator('few',
	'epoch=2026-01-01T00:00:00Z unit=ms fields=t41,m3,s4')});

sub machine_ids_held
{
	my ($generator) = @_;
	return $server->safe_psql('postgres',
		"SELECT machine_ids FROM snowflake_generators WHERE name = '$generator'");
}

sub draw_from
{
	my ($session, $generator, $count) = @_;
	return split /\n/,
	  $session->query("SELECT snowflake_nextval('$generator') FROM generate_series(1, $count)", 60);
}

# one session alone
my $session = $server->session;
my @ids = draw_from($session, 'slow', 150);
is(scalar @ids, 150, 'one session draws more than a sequence holds');
is(machine_ids_held('slow'), 3, 'the server holds as many machine IDs as it may');
my %used = map { ($_ >> 4 & 63) => 1 } @ids;
is(scalar keys %used, 3, 'and the session draws on all of them');
ok(is_increasing(@ids), 'its IDs increase, from one machine ID to another and back');
is(duplicates_of(@ids), 0, 'all are distinct');

# several at once, in batches and one by one
my @sessions = map { $server->session } 1 .. 4;
$_->send(q{SELECT snowflake_nextval('slow') FROM generate_series(1, 20);}
	  . q{SELECT * FROM snowflake_nextvals(20, 'slow')}) foreach @sessions;
my @all = @ids;
foreach my $each (@sessions)
{
	my @drawn = split /\n/, $each->result(60);
	is(scalar @drawn, 40, 'a session among others gets its IDs');
	ok(is_increasing(@drawn), 'and they increase');
	push @all, @drawn;
}
is(duplicates_of(@all), 0, 'the IDs of all sessions are distinct');
is(machine_ids_held('slow'), 3, 'and no more machine IDs are held');

# an eighth of 8 machine IDs is 1
@ids = draw_from($session, 'few', 3000);
is(machine_ids_held('few'), 1, 'never more than an eighth of all machine IDs is held');
ok(is_increasing(@ids), 'the IDs increase');

# the burst is over
wait_until('the leases of the burst to lapse', 30,
	sub { $session->query(q{SELECT snowflake_nextval('slow')}); machine_ids_held('slow') < 3 });
pass('leases that nobody draws on lapse');
is($server->safe_psql('postgres', 'SELECT switches FROM snowflake_stats'),
	0, 'and no used-up sequence was taken for a clock that stepped back');

wait_until('the last lease to lapse too, with nobody drawing', 30,
	sub { machine_ids_held('slow') == 0 });
pass('and what has lapsed does not count as held');

$_->quit foreach $session, @sessions;
$server->stop;
done_testing();
