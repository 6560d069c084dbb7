# Both ends of a pair. Standard input of sh: what stands before this text sets @pairs, @sizes, $token, $for and $brief.
# A port is open until its partner has come, on the one address by which this machine was reached, and takes one
# connection: that of the partner, with the secret of this round.
use strict;
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_LINGER SO_RCVLOWAT);
use Time::HiRes qw(time);
our (@pairs, @sizes, $token, $for, $brief);
use constant { PORT => 47113, BLOCK => 65536, PATIENCE => 4, ROOM => 1 << 20 };
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
my $open;
# Words go over the first; each flow has a connection of its own, which ends with it: what a slow port has not yet taken of a
# flow then is not wanted, and would be in the way of the next.
my ($c, @flows) = map { $first ? called() : answered() } 0 .. ($brief ? 2 : 4);
close $open if $open;

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
      return prepared($c) if (whole($c, 2) // "") eq "go";
      failed("port $port of $other is in use by another program");
    }
    failed("connecting to port $port of $other: $!") if time > $until;
    select undef, undef, undef, 0.05;
  }
}

sub answered {
  $open //= IO::Socket::INET->new(LocalAddr => $mine, LocalPort => $port, Listen => 4, ReuseAddr => 1, Timeout => 20)
    or failed("listening at port $port of $mine: $!");
  my $until = time + 20;
  while (time < $until and my $c = $open->accept) {
    next if $c->peerhost ne $other;
    next if (whole($c, length $token) // "") ne $token;
    syswrite $c, "go";
    return prepared($c);
  }
  failed("$other did not connect to port $port of this host");
}

sub prepared {
  my ($c) = @_;
  $c->autoflush(1);
  setsockopt $c, 6, 1, 1;    # TCP_NODELAY
  # The kernel makes room for so much at once, and for more later: a window that has to grow first takes long where the
  # other direction is in the way of what it waits for. SO_RCVBUF would be the end of growing.
  setsockopt $c, SOL_SOCKET, SO_RCVLOWAT, pack("i", $_) for ROOM, 1;
  binmode $c;
  return $c;
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

# A number of struct tcp_info of linux/tcp.h, by its place: 16 and 20 sizes of a segment sent and received, 100 segments sent
# again, 152 and 156 segments with data that came and went, of Linux 4.6.
sub told {
  my ($c, $at) = @_;
  my $info = getsockopt($c, 6, 11) // "";
  return length $info < $at + 4 ? undef : unpack("x$at L", $info);
}

# Blocks until the other end has had enough and resets the connection. Segments that had to be sent again, as a share.
sub send_flow {
  my ($flow) = @_;
  my ($until, $block, $bytes) = (time + 2 * $for + 2 * PATIENCE, "d" x BLOCK, 0);
  $flow->blocking(0);
  while (time < $until) {
    my $n = syswrite $flow, $block;
    if (defined $n) { $bytes += $n; next }
    last unless $!{EAGAIN} || $!{EINTR};
    my $wanted = "";
    vec($wanted, fileno $flow, 1) = 1;
    select undef, $wanted, undef, PATIENCE;
  }
  stalled() if time >= $until;
  my $segments = told($flow, 156) || $bytes / (told($flow, 16) || 1448);
  my $again = told($flow, 100) // 0;
  close $flow;
  return $segments > 0 ? $again / $segments : 0;
}

# Bits a microsecond, without the first of the time, in which windows grow and buffers fill: a share of the time.
sub receive_flow {
  my ($flow, $first) = @_;
  ready($flow) or stalled();
  my $begun = time;
  my ($from, $before) = arrived($flow, $begun + $for * $first);
  my ($to, $after) = arrived($flow, $begun + $for * ($first + 0.8));
  setsockopt $flow, SOL_SOCKET, SO_LINGER, pack("ii", 1, 0);
  close $flow;
  return $to > $from ? ($after - $before) * 8 / ($to - $from) / 1e6 : 0;
}

my $read = 0;
# Reads until then: the time, and the bytes that had arrived. What follows a lost packet has arrived, though it waits in the
# kernel until that packet was sent again.
sub arrived {
  my ($flow, $until) = @_;
  while ((my $left = $until - time) > 0) {
    my $wanted = "";
    vec($wanted, fileno $flow, 1) = 1;
    select($wanted, undef, undef, $left) > 0 or next;
    # The other end sends until this one has had enough.
    $read += sysread($flow, my $buffer, BLOCK) || failed("$other closed the connection");
  }
  my $segments = told($flow, 152);
  return (time, $segments ? $segments * told($flow, 20) : $read);
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
  my ($sends, $flow) = @_;
  if ($sends) { printf "sent\t%.6f\n", send_flow($flow) }
  else { printf "received\t%.3f\n", receive_flow($flow, 0.2) }
}

# A child sends while this process receives. A connection that two processes have is reset by neither.
sub both_ways {
  my ($out, $in) = $first ? @_ : reverse @_;
  # CUBIC ends its slow start where delay begins to grow, which the other direction makes it do.
  setsockopt $out, 6, 13, "reno";    # TCP_CONGESTION
  my $child = fork // failed("fork: $!");
  if (!$child) { close $in; send_flow($out); exit 0 }
  close $out;
  printf "both\t%.3f\n", receive_flow($in, 0.8);
  waitpid $child, 0;
}

# Both ends are done with a part before the next begins.
sub together {
  put($c, "n") or stalled();
  ready($c) or stalled();
  sysread $c, my $word, 1 or failed("$other closed the connection");
}

if (!$brief) {
  latency();
  for my $way (1, 0) {
    together();
    one_way($first == $way, shift @flows);
  }
}
together();
both_ways(@flows);
print "done\n";
