//! A connection from each host to the next of the set, and from the last to the first, all at the same time.

use super::{SHARE, positive, rows_of_kind, than_before};
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static SLOW: Code = Code {
    name: "HC-NET-08",
    severity: Severity::Warning,
    what: "the network is slower than that of twins, or than before",
    means: "the host reads remote files more slowly",
    seen: "one TCP connection to the next host of the set",
    mend: "check with ethtool INTERFACE: cable, port, driver, MTU",
};
const LOOK: &str = "for i in /sys/class/net/*; do echo ${i##*/} $(cat $i/speed $i/mtu $i/statistics/rx_errors); done";

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "burn_network",
    // A port is open for the duration of this part alone, on the one address by which the others know the host. It
    // takes one connection: that of the host before it in the set, with the secret of this run. The bytes that the
    // other end has received are counted, not those passed to the kernel. The port's number is fixed, because a
    // firewall may need a rule for it.
    script: r#"command -v perl >/dev/null || { printf 'note\tnetwork: no perl\n'; exit 0; }
perl -MIO::Socket::INET -MTime::HiRes=time -e '
  my ($for, $token, $listener) = @ENV{"BURN", "TOKEN"};
  sub note { kill "KILL", $listener if $listener; print "note\tnetwork: @_\n"; exit 0 }
  my $asked_at = (split " ", $ENV{SSH_CONNECTION} // "")[2] // "";
  my %own = map { $_ => 1 } $asked_at, split " ", `hostname -I`;
  my ($name) = split /[.\n]/, `uname -n`;
  my @names = map { s/.*@//r } @ARGV;
  my @at = map { my $a = gethostbyname $_; $a ? inet_ntoa($a) : "" } @names;
  my ($i) = grep { $own{$at[$_]} || (split /[.]/, $names[$_])[0] eq $name } 0 .. $#names;
  note("none of the named hosts has an address of this host") unless defined $i;
  note("it needs a second host") if @names < 2;
  my ($next, $before) = (($i + 1) % @names, $i - 1);
  for ($next, $before) { note("this host cannot resolve $names[$_]") unless $at[$_] }
  my $own = $own{$at[$i]} ? $at[$i] : $asked_at;
  note("this host has no IPv4 address that other hosts reach") if $own !~ /^[0-9.]+$/ || $own =~ /^127/;
  my $open = IO::Socket::INET->new(LocalAddr => $own, LocalPort => 47113, Listen => 1, ReuseAddr => 1)
    or note("listening at port 47113 of $own: $!");
  $listener = fork // exit 1;
  if (!$listener) {
    alarm $for + 90;
    while (my $c = $open->accept) {
      next if $c->peerhost ne $at[$before];
      my ($said, $wanted, $n) = ("", "", 0);
      vec($wanted, fileno $c, 1) = 1;
      while (length $said < length $token && select(my $ready = $wanted, undef, undef, 5)) {
        sysread $c, $said, length($token) - length $said, length $said or last;
      }
      next if $said ne $token;
      close $open;
      syswrite $c, "go\n";
      while (my $got = sysread $c, my $bytes, 1 << 20) { $n += $got }
      print $c "$n\n";
      exit 0;
    }
    exit 1;
  }
  close $open;
  local $SIG{PIPE} = "IGNORE";
  my ($c, $until) = (undef, time + 60);
  until ($c = IO::Socket::INET->new(LocalAddr => $own, PeerAddr => $at[$next], PeerPort => 47113, Timeout => 2)) {
    note("connecting to port 47113 of $names[$next]: $!") if time > $until;
    select undef, undef, undef, 0.2;
  }
  syswrite $c, $token;
  note("port 47113 of $names[$next] is in use by another program") if (<$c> // "") ne "go\n";
  my ($bytes, $begun) = ("x" x (1 << 20), time);
  while (time - $begun < $for) { syswrite $c, $bytes or last }
  shutdown $c, 1;
  my $received = <$c> // 0;
  note("$names[$next] received no bytes") unless $received > 0;
  printf "rate\tnetwork\t%.2f\nto\t%s\n", $received / (time - $begun) / 1e6, $ARGV[$next];
  waitpid $listener, 0' "$@""#,
    waits: false,
    slow: true,
    root: None,
    codes: &[&SLOW],
    judge,
};

/// The flow from one host to the next.
struct HostFlow<'a> {
    from: &'a HostAnswers,
    to: &'a str,
    rate: f64,
}

fn flow(host: &HostAnswers) -> Option<HostFlow<'_>> {
    let rate =
        positive(rows_of_kind(host, "rate").find(|row| row.get(1).is_some_and(|what| what == "network"))?.get(2)?)?;
    Some(HostFlow { from: host, to: rows_of_kind(host, "to").next()?.get(1)?, rate })
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let flows: Vec<HostFlow> = answers.hosts.iter().filter_map(flow).collect();
    let right = usual(&flows);
    let is_slow = |flow: &HostFlow| right.is_some_and(|right| flow.rate < right * SHARE);
    // A bad link slows down both directions: its host is named once, and its neighbours are not.
    let of = |name: &str| -> Vec<&HostFlow> {
        flows.iter().filter(|flow| flow.from.name == name || flow.to == name).collect()
    };
    let both = |name: &str| of(name).len() > 1 && of(name).into_iter().all(is_slow);
    // A flow that is far slower than the receiver's other flow is not the receiver's fault, however slow the receiver
    // is.
    let explains = |to: &str, slow: &HostFlow| {
        let others = of(to).into_iter().filter(|flow| flow.from.name != slow.from.name || flow.to != slow.to);
        both(to) && slow.rate >= others.map(|flow| flow.rate).fold(f64::INFINITY, f64::min) * SHARE
    };
    let finding = |flow: &HostFlow| {
        let HostFlow { from, to, rate } = flow;
        let seen = format!("--deep: network {rate:.0} MB/s to {to}");
        let twins = is_slow(flow).then(|| format!("{:.0} MB/s between others", right.unwrap_or_default()));
        let than: Vec<String> = [twins, than_before(from, "network", *rate)].into_iter().flatten().collect();
        let what = format!("network: {rate:.0} MB/s to {to}, but {}", than.join(" and "));
        let its_own = both(&from.name) || !explains(to, flow);
        (its_own && !than.is_empty()).then(|| SLOW.on(from, what, seen).look(LOOK))
    };
    flows.iter().filter_map(finding).collect()
}

/// Returns the rate that two thirds of the flows do not exceed: one bad host of three spoils two of three flows.
fn usual(flows: &[HostFlow]) -> Option<f64> {
    let mut rates: Vec<f64> = flows.iter().map(|flow| flow.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() * 2 / 3).copied().filter(|_| rates.len() > super::TWINS)
}
