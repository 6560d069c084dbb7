//! Does a packet as large as the interface permits reach the other hosts?

use super::links::odd_mtu;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static NARROW: Code = Code {
    name: "HC-NET-06",
    severity: Severity::Error,
    what: "the route to other hosts passes only smaller packets than the interface sends",
    means: "connections open and then hang, or are slow, at the first large packet",
    seen: "unfragmented packets as large as the interface allows; `ip route get`",
    mend: "set the same MTU on every interface, switch and route in between",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "path_mtu",
    // The kernel sets DF on these packets and remembers the answers of routers. Only ping can find a silent loss. An
    // answer that came too late, from a busy host, is no loss.
    script: r#"command -v bash >/dev/null || exit 0
comes_back() { ping -n -q -c 1 -W 1 "$@" >/dev/null; }
for h; do
  [ $((n += 1)) -le 32 ] || break
  a=$(getent ahostsv4 -- "$h" | awk 'NR == 1 {print $1}')
  d=$(ip -o route get "$a" | awk '{for (i = 1; i < NF; i++) if ($i == "dev") print $(i + 1)}')
  case $a,$d in ,*|*,|*,lo) continue ;; esac
  m=$(cat "/sys/class/net/$d/mtu")
  { for _ in 1 2; do timeout -s KILL 1 bash -c 'head -c "$2" /dev/zero > "/dev/udp/$1/9"' sh "$a" $((m - 28)); done
    r=$(ip -o route get "$a" | awk '{for (i = 1; i < NF; i++) if ($i == "mtu") {sub("lock", "", $(i + 1)); print $(i + 1) == "" ? $(i + 2) : $(i + 1)}}')
    if [ -z "$r" ] && command -v ping >/dev/null && comes_back "$a"; then
      comes_back -M do -s $((m - 28)) "$a" || comes_back -M do -s $((m - 28)) "$a" || r=0
    fi
    printf '%s\t%s\t%s\t%s\n' "$h" "$d" "$m" "${r:-$m}"; } &
done; wait"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&NARROW],
    judge,
};

fn number(text: &str) -> Option<u32> {
    text.parse().ok()
}

fn is_narrow(row: &[String]) -> bool {
    number(&row[3]).zip(number(&row[2])).is_some_and(|(path, own)| path < own)
}

/// Whether the other host's interface is too narrow, which HC-NET-03 reports for that host. It is one fault, and not
/// one more on each host that sends to it. If the path's own width is known, it must be at least that of the
/// interface.
fn is_by_its_end(answers: &Answers, row: &[String]) -> bool {
    let widths = odd_mtu(answers, &row[0]).zip(number(&row[2])).zip(number(&row[3]));
    widths.is_some_and(|((end, own), path)| end < own && (path == 0 || path >= end))
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let of_host = |host: &crate::HostAnswers| {
        let rows = host.rows(CHECK.key)?.iter().filter(|row| row.len() == 4);
        let narrow: Vec<&Vec<String>> = rows.filter(|row| is_narrow(row) && !is_by_its_end(answers, row)).collect();
        let first = narrow.first()?;
        let to = narrow.iter().map(|row| row[0].as_str()).collect::<Vec<_>>().join(", ");
        let most = if first[3] == "0" { "fewer".to_string() } else { first[3].clone() };
        let what = format!("packets to {to} may have {most} bytes, but {} has the MTU {}", first[1], first[2]);
        let found = NARROW.on(host, what, format!("{} bytes with DF to {}", first[2], first[0]));
        Some(found.look("ip route; ip route show cache; ip -d link; tracepath -n -m 5 ADDRESS"))
    };
    answers.hosts.iter().filter_map(of_host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostAnswers;

    fn host(name: &str, mtu: u32, rows: &str) -> HostAnswers {
        let rows: String = rows.lines().map(|row| format!("=path_mtu\t{row}\n")).collect();
        let link = format!("=links\teth0\t-1\t\t{mtu}\t9\t0\n=end\tlinks\t0\n");
        HostAnswers::read(name, &[(1.0, format!("{link}{rows}=end\tpath_mtu\t0\n").into_bytes())])
    }

    fn found(hosts: [HostAnswers; 3]) -> Vec<String> {
        judge(&Answers { hosts: hosts.into() }).into_iter().map(|found| found.what).collect()
    }

    #[test]
    fn a_host_of_another_mtu_is_one_fault_and_not_one_of_each_host_that_sends_to_it() {
        let to_n3 = |path: u32| {
            let sender = |name: &str| host(name, 9000, &format!("n3\teth0\t9000\t{path}"));
            found([sender("n1"), sender("n2"), host("n3", 1500, "n1\teth0\t1500\t1500")])
        };
        assert_eq!(to_n3(0), [""; 0], "dropped in silence, where its interface begins");
        assert_eq!(to_n3(1500), [""; 0], "a router in between has the MTU of the end");
        assert_eq!(to_n3(1400).len(), 2, "the way is narrower than its end");
    }

    #[test]
    fn what_is_dropped_on_the_way_between_equal_hosts_is_told_by_each() {
        let narrow = |name: &str, to: &str| host(name, 9000, &format!("{to}\teth0\t9000\t0"));
        let messages = found([narrow("n1", "n3"), host("n2", 9000, "n1\teth0\t9000\t9000"), narrow("n3", "n1")]);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert_eq!(messages[0], "packets to n3 may have fewer bytes, but eth0 has the MTU 9000");
    }
}
