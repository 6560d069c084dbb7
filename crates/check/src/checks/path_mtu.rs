//! Does a packet as large as the interface allows come through to the other hosts?

use crate::{Answers, Check, Code, Finding, Severity};

static NARROW: Code = Code {
    name: "HC-NET-06",
    severity: Severity::Error,
    what: "the way to other hosts lets only smaller packets through than the interface sends",
    means: "connections open and then hang, or are slow, at the first large packet",
    seen: "packets that must not be cut, as large as the interface allows; `ip route get`",
    mend: "the same MTU on every interface, switch and route in between",
};

pub(crate) static CHECK: Check = Check {
    key: "path_mtu",
    // The kernel sets DF on these and remembers what a router answers; what is dropped in silence only ping can tell.
    ask: r#"command -v bash >/dev/null || exit 0
for h; do
  [ $((n += 1)) -le 32 ] || break
  a=$(getent ahostsv4 -- "$h" | awk 'NR == 1 {print $1}')
  d=$(ip -o route get "$a" | awk '{for (i = 1; i < NF; i++) if ($i == "dev") print $(i + 1)}')
  case $a,$d in ,*|*,|*,lo) continue ;; esac
  m=$(cat "/sys/class/net/$d/mtu")
  { for _ in 1 2; do timeout -s KILL 1 bash -c 'head -c "$2" /dev/zero > "/dev/udp/$1/9"' sh "$a" $((m - 28)); done
    r=$(ip -o route get "$a" | awk '{for (i = 1; i < NF; i++) if ($i == "mtu") {sub("lock", "", $(i + 1)); print $(i + 1) == "" ? $(i + 2) : $(i + 1)}}')
    if [ -z "$r" ] && command -v ping >/dev/null && ping -n -q -c 1 -W 1 "$a" >/dev/null; then
      ping -n -q -M do -c 1 -W 1 -s $((m - 28)) "$a" >/dev/null || r=0
    fi
    printf '%s\t%s\t%s\t%s\n' "$h" "$d" "$m" "${r:-$m}"; } &
done; wait"#,
    waits: true,
    slow: true,
    root: None,
    codes: &[&NARROW],
    judge,
};

fn judge(answers: &Answers) -> Vec<Finding> {
    let of_host = |host: &crate::Host| {
        let rows = host.rows(CHECK.key)?.iter().filter(|row| row.len() == 4);
        let number = |text: &String| text.parse::<u32>().ok();
        let narrow: Vec<&Vec<String>> =
            rows.filter(|row| number(&row[3]).zip(number(&row[2])).is_some_and(|(path, own)| path < own)).collect();
        let first = narrow.first()?;
        let to = narrow.iter().map(|row| row[0].as_str()).collect::<Vec<_>>().join(", ");
        let most = if first[3] == "0" { "less".to_string() } else { first[3].clone() };
        let what = format!("packets to {to} may have {most} bytes, and {} has the MTU {}", first[1], first[2]);
        let found = NARROW.on(host, what, format!("{} bytes with DF to {}", first[2], first[0]));
        Some(found.look("ip route; ip route show cache; ip -d link; tracepath -n -m 5 ADDRESS"))
    };
    answers.hosts.iter().filter_map(of_host).collect()
}
