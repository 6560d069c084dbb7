# What switches say on all ports of this machine for so many seconds: an interface and a frame in hexadecimal a line.
use strict;
use Time::HiRes qw(time);
my $until = time + $ARGV[0];
my ($most, $longest) = (64, 1600);    # frames of a port, bytes of a frame
sub number { open my $f, "<", "/sys/class/net/$_[0]/$_[1]" or return -1; my $n = <$f>; chomp $n; return $n }
# LLDP by its protocol; CDP is among frames that tell their length instead. The addresses are those that both send to.
my %speak = (0x88cc => "\x01\x80\xc2\x00\x00\x0e", 0x0004 => "\x01\x00\x0c\xcc\xcc\xcc");
my (%name, @sockets);
for my $protocol (keys %speak) {
  # AF_PACKET, SOCK_RAW, the protocol in the order of the network
  socket my $s, 17, 3, unpack("S", pack "n", $protocol) or do { print "failed\tlistening takes root: $!\n"; exit 0 };
  push @sockets, $s;
  for my $i (map { m{([^/]+)$} } glob "/sys/class/net/*") {
    next if number($i, "type") != 1;
    $name{number($i, "ifindex")} = $i;
    # SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST
    setsockopt $s, 263, 1, pack "i S S a8", number($i, "ifindex"), 0, 6, $speak{$protocol};
  }
}
print "frames\n";
my (%seen, %count);
while ((my $left = $until - time) > 0) {
  my $wanted = "";
  vec($wanted, fileno $_, 1) = 1 for @sockets;
  next unless select($wanted, undef, undef, $left) > 0;
  for my $s (grep { vec($wanted, fileno $_, 1) } @sockets) {
    my $from = recv $s, my $frame, $longest, 0;
    defined $from or next;
    my (undef, undef, $index, undef, $kind) = unpack "S n i S C", $from;
    # Spanning tree and others speak so too. CDP: to Cisco's address, SNAP with its number.
    my $cdp = substr($frame, 0, 6) eq $speak{0x0004} && substr($frame, 14, 8) eq "\xaa\xaa\x03\x00\x00\x0c\x20\x00";
    next unless $cdp || substr($frame, 12, 2) eq "\x88\xcc";
    # 4: what this machine sends itself
    next if $kind == 4 || !$name{$index} || ($count{$index} // 0) >= $most || $seen{$index, $frame}++;
    $count{$index}++;
    print "$name{$index}\t", unpack("H*", $frame), "\n";
  }
}
