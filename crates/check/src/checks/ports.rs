//! Can hosts connect to the servers of their network file systems?

use crate::finding::word;
use crate::{Answers, Check, Code, Finding, Severity};

static CLOSED: Code = Code {
    name: "HC-NET-07",
    severity: Severity::Error,
    what: "a port that a network file system needs does not answer",
    means: "what is mounted may go on for a while; the next mount fails, and so does a connection that was lost",
    seen: "a connection to the server's port: NFS 2049, GlusterFS 24007 and those of bricks, MooseFS 9421",
    mend: "start the server's daemon, or let its port through the firewall of both ends",
};

static NO_ROUTE: Code = Code {
    name: "HC-NET-09",
    severity: Severity::Error,
    what: "there is no way to a file server",
    means: "what lies there cannot be read; often the interface of the storage network is down, or has lost its address",
    seen: "a connection to the server: \"No route to host\", \"Network is unreachable\"",
    mend: "ip route get SERVER; ip link set dev INTERFACE up; its address as the other hosts have theirs",
};

pub(crate) static CHECK: Check = Check {
    key: "ports",
    // Servers of GlusterFS know where each other's bricks listen (root may read it).
    ask: r#"command -v bash >/dev/null || exit 0
{ { awk '{for (i = 7; i < NF; i++) if ($i == "-") print $(i + 1) "\t" $(i + 2)}' /proc/self/mountinfo
awk '$1 !~ /^#/ && NF > 3 {print $3 "\t" $1}' /etc/fstab; } | sort -u | awk -F '\t' '
$1 ~ /^nfs4?$/ && $2 ~ /^[^[][^:]*:[/]/ {sub(/:.*/, "", $2); print $2 "\t2049"}
$1 ~ /glusterfs$/ && $2 ~ /:/ {sub(/:.*/, "", $2); print $2 "\t24007"}
$1 ~ /^(fuse[.]mfs|moosefs)$/ && $2 ~ /:/ {sub(/:.*/, "", $2); print $2 "\t9421"}'
cat /var/lib/glusterd/vols/*/bricks/* | awk -F= '$1 == "hostname" {h = $2} $1 == "listen-port" && $2 > 0 {print h "\t" $2}'; } |
sort -u | head -60 |
{ while IFS=$T read -r h p; do
  { e=$(timeout -s KILL "$WAIT" bash -c ': > "/dev/tcp/$1/$2"' sh "$h" "$p" 2>&1); s=$?
    case $e in *unreachable*|*'No route'*) s=none ;; esac
    printf '%s\t%s\t%s\n' "$h" "$p" "$s"; } &
done; wait; }"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&CLOSED, &NO_ROUTE],
    judge,
};

fn judge(answers: &Answers) -> Vec<Finding> {
    let rows = answers.each(CHECK.key);
    rows.filter_map(|(host, row)| {
        let [server, port, status] = row else { return None };
        let said = match status.as_str() {
            "0" => return None,
            "none" => {
                let found =
                    NO_ROUTE.on(host, format!("there is no way to {server}"), format!("connect {server}:{port}"));
                return Some(found.look(format!("ip route get {}; ip -br addr; ip -s link", word(server))));
            }
            "137" => "no answer in time",
            _ => "refused",
        };
        let what = format!("port {port} of {server} does not answer");
        let found = CLOSED.on(host, what, format!("connect {server}:{port}: {said}"));
        let look = format!("ss -ltn '( sport = :{} )'; systemctl --failed; nft list ruleset", word(port));
        Some(found.look(look).from_host(server))
    })
    .collect()
}
