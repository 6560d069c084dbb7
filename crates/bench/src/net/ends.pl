# Both ends of a pair. Standard input of sh: what stands before this text sets @pairs, @sizes, $token, $for and $brief.
# A port is open until its partner has come, on the one address by which this machine was reached, and takes one
# connection: that of the partner, with the secret of this round.
use strict;
use IO::Socket::INET;
use Time::HiRes qw(time);
our (@pairs, @sizes, $token, $for, $brief);
use constant { PORT => 47113, BLOCK => 65536, PATIENCE => 4 };
$| = 1;
$SIG{PIPE} = "IGNORE";
my %own = map { $_ => 1 } split(" ", `hostname -I`), (split " ", $ENV{SSH_CONNECTION} // "")[2] // ();
my @mine = grep { $own{$_->[0]} || $own{$_->[1]} } @pairs;
sub failed { print "failed\t@_\n"; exit 0 }
failed("no pair has an address of this host") unless @mine;
my $pair = @mine == 1 ? $mine[0] : one_of(@mine);
my $port = PORT + ($pair->[2] // 0);
my $first = $own{$pair->[0]};
my ($mine, $other) = $first ? @$pair[0, 1] : @$pair[1, 0];
my $c = $first ? called() : answered();
$c->autoflush(1);
setsockopt $c, 6, 1, 1;    # TCP_NODELAY
binmode $c;

# A host that many meet at once has a process for each, and tells of one after the other.
sub one_of {
  my @from;
  for my $one (@_) {
    pipe my $read, my $write or failed("pipe: $!");
    my $child = fork // failed("fork: $!");
    if (!$child) { open STDOUT, ">&", $write or exit 1; $| = 1; return $one }
    close $write;
    push @from, [$one, $read];
  }
  for (@from) {
    my ($one, $read) = @$_;
    print "pair\t$one->[0]\t$one->[1]\n", <$read>;
  }
  exit 0;
}

sub called {
  my $until = time + 15;
  while (1) {
    my $c = IO::Socket::INET->new(LocalAddr => $mine, PeerAddr => $other, PeerPort => $port, Timeout => 2);
    if ($c) {
      syswrite $c, $token;
      return $c if (whole($c, 2) // "") eq "go";
      failed("$other listens to somebody else");
    }
    failed("port $port of $other: $!") if time > $until;
    select undef, undef, undef, 0.05;
  }
}

sub answered {
  my $open = IO::Socket::INET->new(LocalAddr => $mine, LocalPort => $port, Listen => 4, ReuseAddr => 1, Timeout => 20)
    or failed("port $port of $mine: $!");
  my $until = time + 20;
  while (time < $until and my $c = $open->accept) {
    next if $c->peerhost ne $other;
    next if (whole($c, length $token) // "") ne $token;
    syswrite $c, "go";
    close $open;
    return $c;
  }
  failed("$other did not come");
}

# So many bytes, or nothing when none come for too long.
sub whole {
  my ($c, $bytes) = @_;
  my $got = "";
  while (length $got < $bytes) {
    ready($c) or return;
    sysread($c, $got, $bytes - length $got, length $got) or return;
  }
  return $got;
}

sub ready {
  my ($c) = @_;
  my $wanted = "";
  vec($wanted, fileno $c, 1) = 1;
  return select($wanted, undef, undef, PATIENCE) > 0;
}

# Writes all of it, or stops when nothing is taken for too long.
sub put {
  my ($c, $text) = @_;
  my $at = 0;
  $c->blocking(0);
  while ($at < length $text) {
    my $n = syswrite $c, $text, length($text) - $at, $at;
    if (defined $n) { $at += $n; next }
    # A partner that was killed leaves an end that is always ready and takes nothing.
    last unless $!{EAGAIN} || $!{EINTR};
    my $wanted = "";
    vec($wanted, fileno $c, 1) = 1;
    select(undef, $wanted, undef, PATIENCE) > 0 or last;
  }
  $c->blocking(1);
  return $at == length $text;
}

# struct tcp_info of linux/tcp.h: the size of a segment, and how many were sent again.
sub segments {
  my $info = getsockopt($c, 6, 11) // "";
  return length $info < 104 ? (1448, 0) : (unpack("x16 L", $info), unpack("x100 L", $info));
}

# Blocks for so many seconds; the last one begins with another letter. Bytes that had to be sent again, as a share.
sub send_blocks {
  my ($until, $block, $bytes) = (time + $for, "d" x BLOCK, 0);
  my (undef, $before) = segments();
  while (time < $until) {
    put($c, $block) or stalled();
    $bytes += BLOCK;
  }
  put($c, "e" x BLOCK) or stalled();
  my ($size, $after) = segments();
  return ($after - $before) * $size / ($bytes + BLOCK);
}

# What came in the time, without its first fifth, in which windows grow and buffers fill. Bits a microsecond.
sub receive_blocks {
  my ($begun, $from, $to, $bytes, $fill, $buffer, $last);
  $fill = 0;
  until ($last) {
    ready($c) or stalled();
    my $n = sysread $c, $buffer, BLOCK - $fill, $fill or failed("$other closed the connection");
    my $now = time;
    $begun //= $now;
    if (!defined $from) { ($from, $bytes) = ($now, 0) if $now >= $begun + $for * 0.2 }
    elsif ($now <= $begun + $for || !$to) { $bytes += $n; $to = $now }
    $fill += $n;
    if ($fill == BLOCK) { $last = substr($buffer, 0, 1) eq "e"; $fill = 0 }
  }
  return $to && $to > $from ? $bytes * 8 / ($to - $from) / 1e6 : 0;
}

sub stalled { print "stalled\n"; exit 0 }

# Half of the round trip, by size.
sub latency {
  for my $size (@sizes) {
    my ($text, $until, @took) = ("x" x $size, time + 0.1);
    for (1 .. 1000) {
      if ($first) {
        my $begun = time;
        my $more = $begun < $until ? "x" : "e";
        substr($text, 0, 1) = $more;
        put($c, $text) or stalled();
        defined whole($c, $size) or stalled();
        push @took, (time - $begun) / 2 * 1e6;
        last if $more eq "e";
      } else {
        my $got = whole($c, $size) // stalled();
        put($c, $got) or stalled();
        last if substr($got, 0, 1) eq "e";
      }
      $until = 0 if $_ == 999;
    }
    next unless $first;
    @took = sort { $a <=> $b } @took;
    printf "latency\t%d\t%.1f\t%.1f\t%.1f\n", $size, @took[@took / 2, @took * 0.99, -1];
  }
}

sub one_way {
  my ($sends) = @_;
  if ($sends) { printf "sent\t%.6f\n", send_blocks() }
  else { printf "received\t%.3f\n", receive_blocks() }
}

# A child sends while this process receives.
sub both_ways {
  my $child = fork // failed("fork: $!");
  if (!$child) { send_blocks(); exit 0 }
  printf "both\t%.3f\n", receive_blocks();
  waitpid $child, 0;
}

# Both ends are done with a part before the next begins.
sub together {
  put($c, "n") or stalled();
  defined whole($c, 1) or stalled();
}

if (!$brief) {
  latency();
  for my $way (1, 0) {
    together();
    one_way($first == $way);
  }
}
together();
both_ways();
print "done\n";
