# A publication of all tables brings the lease table along. The subscriber's own leases
# stay what they are, and rows of both servers meet where they should.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";
use SnowflakeTest;
use Test::More;

# Both have one machine ID, the same, so that their leases would meet.
my %server;
foreach my $name ('publisher', 'subscriber')
{
	$server{$name} = new_server($name, streaming => 1, conf => <<'CONF');
wal_level = logical
snowflake.machine_ids = '7'
snowflake.lease_ttl = 1s
CONF
	$server{$name}->safe_psql('postgres', 'CREATE TABLE item (id bigint PRIMARY KEY DEFAULT snowflake_nextval())');
	$server{$name}->safe_psql('postgres', q{SELECT snowflake_create_generator('web', 'js_safe')});
}
my ($publisher, $subscriber) = @server{qw(publisher subscriber)};
my $lease = 'SELECT instance = snowflake_instance(), holder FROM snowflake_lease';
my $horizon = 'SELECT max(horizon) FROM snowflake_lease';

# Waits until a query of the subscriber's says so.
sub comes_true
{
	my ($sql, $name) = @_;
	wait_until($name, 30, sub { $subscriber->safe_psql('postgres', $sql) eq 't' });
	return pass($name);
}

my @ids = map { $_->draw(1) } $publisher, $subscriber;
my $before = $subscriber->safe_psql('postgres', $horizon);
# the publisher's horizon is the lower one
$publisher->safe_psql('postgres', "UPDATE snowflake_lease SET horizon = horizon - 1000000000");
$publisher->safe_psql('postgres', 'INSERT INTO item DEFAULT VALUES; CREATE PUBLICATION everything FOR ALL TABLES');
my $dsn = $publisher->connstr('postgres') =~ s/'/''/gr;
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION everything CONNECTION '$dsn' PUBLICATION everything");
comes_true('SELECT count(*) = 1 FROM item', 'rows arrive');
comes_true(q{SELECT count(*) > 1 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel}, 'also of the lease table, where the subscriber has a row with the same key');
is($subscriber->safe_psql('postgres', $lease), 't|' . $subscriber->safe_psql('postgres',
	'SELECT holder FROM snowflake_lease_status WHERE mine'), 'the subscriber\'s lease is its own');

$publisher->safe_psql('postgres', 'UPDATE snowflake_lease SET holder = holder; INSERT INTO item DEFAULT VALUES');
comes_true('SELECT count(*) = 2 FROM item', 'changes arrive');
is($subscriber->safe_psql('postgres', $lease), 't|' . $subscriber->safe_psql('postgres',
	'SELECT holder FROM snowflake_lease_status WHERE mine'), 'and the lease is still its own');
cmp_ok($subscriber->safe_psql('postgres', $horizon), '>=', $before, 'with a horizon that has not gone down');
$publisher->safe_psql('postgres', 'DELETE FROM snowflake_lease; INSERT INTO item (id) VALUES (1)');
comes_true('SELECT count(*) = 3 FROM item', 'nor does a lease that is deleted');
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM snowflake_lease'), 1, 'take the subscriber\'s with it');

# generators too are each server's own
foreach my $both ($publisher, $subscriber)
{
	$both->safe_psql('postgres', q{SELECT snowflake_create_generator('later', 'js_safe')});
}
$publisher->safe_psql('postgres', q{SELECT snowflake_drop_generator('web'); INSERT INTO item (id) VALUES (2)});
comes_true('SELECT count(*) = 4 FROM item', 'generators that both servers make do not stop replication');
is($subscriber->safe_psql('postgres', q{SELECT string_agg(name, ' ' ORDER BY name) FROM snowflake_generators}),
	'default later web', 'and one that is dropped is dropped there alone');
$_->stop foreach $subscriber, $publisher;
done_testing();
