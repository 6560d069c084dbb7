//! Can hosts connect to the servers of their network file systems?

use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static CLOSED: Code = Code {
    name: "HC-NET-07",
    severity: Severity::Error,
    what: "a port that a network file system needs does not answer",
    means: "existing mounts may work for a while; the next mount fails, and a lost connection stays lost",
    seen: "a connection to the server's port: NFS 2049, GlusterFS 24007 and those of bricks, MooseFS 9421 (master), 9422 \
           (chunk servers), 9420 and 9419 (master, from chunk servers and metaloggers)",
    mend: "start the server's daemon, or let its port through the firewall of both ends",
};

static NO_ROUTE: Code = Code {
    name: "HC-NET-09",
    severity: Severity::Error,
    what: "a file server is unreachable",
    means: "its files cannot be read; often the interface of the storage network is down, or has lost its address",
    seen: "a connection to the server: \"No route to host\", \"Network is unreachable\"",
    mend: "ip route get SERVER; ip link set dev INTERFACE up; set its address as on the other hosts",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "ports",
    // Servers of GlusterFS know the ports of their own bricks (root may read them), MooseFS's master those of its
    // chunk servers. Debian's client of MooseFS has the type `fuse`, and the kernel writes its `#` as \043.
    script: r#"command -v bash >/dev/null || exit 0
{ { awk '{for (i = 7; i < NF; i++) if ($i == "-") print $(i + 1) "\t" $(i + 2)}' /proc/self/mountinfo
awk '$1 !~ /^#/ && NF > 3 {print $3 "\t" $1}' /etc/fstab; } | sort -u | awk -F '\t' '
$1 ~ /^nfs4?$/ && $2 ~ /^[^[][^:]*:[/]/ {sub(/:.*/, "", $2); print $2 "\t2049\t-"}
$1 ~ /glusterfs$/ && $2 ~ /:/ {sub(/:.*/, "", $2); print $2 "\t24007\t-"}
$1 ~ /^(fuse[.]mfs|moosefs)$/ && $2 ~ /:/ || $1 == "fuse" && sub(/^mfs(#|\\043)/, "", $2) {
  split($2, a, /[:\/]/); print a[1] "\t" (a[2] ~ /^[0-9]+$/ ? a[2] : 9421) "\tmaster"}'
awk -F= 'FNR == 1 {split(FILENAME, v, "/")} $1 == "hostname" {h = $2} $1 == "listen-port" && $2 > 0 {print h "\t" $2 "\tbrick " v[6]}' /var/lib/glusterd/vols/*/bricks/*
for d in chunkserver:9420 metalogger:9419; do
  pidof "mfs${d%:*}" >/dev/null && awk -F= -v p="${d#*:}" 'BEGIN {h = "mfsmaster"} {gsub(/[ \t]/, "")} $1 == "MASTER_HOST" {h = $2}
  $1 == "MASTER_PORT" {p = $2} END {print h "\t" p "\t-"}' "/etc/mfs/mfs${d%:*}.cfg"
done; } |
sort -u | { while IFS=$T read -r h p k; do
  printf '%s\t%s\t%s\n' "$h" "$p" "$k"
  [ "$k" = master ] && timeout -s KILL "$WAIT" mfscli -H "$h" -P "$p" -p -s "$T" -SCS | awk -F '\t' '$3 ~ /^[0-9]+$/ {print $2 "\t" $3 "\t-"}'
done; } | sort -u | head -60 |
{ while IFS=$T read -r h p k; do
  { e=$(timeout -s KILL "$WAIT" bash -c ': > "/dev/tcp/$1/$2"' sh "$h" "$p" 2>&1); s=$?
    case $e in *unreachable*|*'No route'*) s=none ;; esac
    printf '%s\t%s\t%s\t%s\n' "$h" "$p" "$s" "$k"; } &
done; wait; }"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&CLOSED, &NO_ROUTE],
    judge,
};

/// The port of GlusterFS's own daemon, which starts a server's bricks.
const GLUSTERD: &str = "24007";

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.of(CHECK.key).flat_map(|(host, rows)| rows.iter().filter_map(|row| of_port(host, row, rows))).collect()
}

fn of_port(host: &HostAnswers, row: &[String], rows: &[Vec<String>]) -> Option<HostFinding> {
    let [server, port, status, kind] = row else { return None };
    let said = match status.as_str() {
        "0" => return None,
        "none" => {
            let found = NO_ROUTE.on(host, format!("{server} is unreachable"), format!("connect {server}:{port}"));
            return Some(found.look(format!("ip route get {}; ip -br addr; ip -s link", word(server))));
        }
        "137" => "no answer in time",
        _ => "refused",
    };
    let seen = format!("connect {server}:{port}: {said}");
    if let Some(volume) = kind.strip_prefix("brick ") {
        // Starting the daemon starts its bricks.
        let daemon_is_gone = rows
            .iter()
            .any(|row| matches!(row.as_slice(), [s, p, how, _] if s == server && p == GLUSTERD && how != "0"));
        let what = format!("a brick of volume {volume} on {server} does not answer");
        let start = format!("gluster --mode=script volume start {} force", word(volume));
        return (!daemon_is_gone).then(|| CLOSED.on(host, what, seen).mend(start).from_host(server));
    }
    let look = format!("ss -ltn '( sport = :{} )'; systemctl --failed; nft list ruleset", word(port));
    Some(CLOSED.on(host, format!("port {port} of {server} does not answer"), seen).look(look).from_host(server))
}
