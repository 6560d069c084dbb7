//! Do hosts and servers of NFSv4 map a name to the same user?

use super::mounted::mounts;
use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};

static DOMAIN: Code = Code {
    name: "HC-USER-11",
    severity: Severity::Error,
    what: "NFSv4 sends users' names, and hosts append different domains to them",
    means: "files belong to nobody there, and `chown` is refused, because a name of another domain matches no user",
    seen: "Domain in /etc/idmapd.conf, else `hostname -d`; nfs4_disable_idmapping of the modules nfs and nfsd, or a mount \
           with sec=krb5, decides whether names are used",
    mend: "set the same Domain in /etc/idmapd.conf everywhere, then nfsidmap -c",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "idmap",
    // `hostname -d` may query a name server. Hosts without NFSv4 do not run it.
    script: r#"grep -qE ' - (nfs4|nfsd) ' /proc/self/mountinfo || exit 0
for m in nfs nfsd; do f=/sys/module/$m/parameters/nfs4_disable_idmapping; [ ! -r $f ] || printf '%s\t%s\n' $m "$(cat $f)"; done
d=$(sed -n 's/^[[:space:]]*Domain[[:space:]]*=[[:space:]]*//p' /etc/idmapd.conf | head -1)
printf 'domain\t%s\n' "${d:-$(hostname -d || :)}""#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&DOMAIN],
    judge,
};

/// The domain that rpc.idmapd uses by default (idmapd.conf(5)).
const UNTOLD: &str = "localdomain";

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let named = answers.of(CHECK.key).filter(|(host, rows)| goes_by_names(host, rows));
    let domains = named.filter_map(|(host, rows)| Some((host, domain(rows)?)));
    let Some(split) = split(domains) else { return Vec::new() };
    let most = &split.most;
    let finding = |(host, own): &(&HostAnswers, String)| {
        let what = format!("NFSv4 uses the domain {own} for users, but {most} on {}", split.most_of());
        let line = format!("Domain = {most}");
        let mend = format!(
            "f=/etc/idmapd.conf; grep -qs '^\\[General\\]' $f || echo '[General]' >> $f; \
             sed -i -e '/^[[:space:]]*Domain[[:space:]]*=/d' -e {} $f && {{ nfsidmap -c; true; }}",
            word(&format!("/^\\[General\\]/a {line}"))
        );
        DOMAIN.on(host, what, format!("/etc/idmapd.conf: {own}")).mend(mend)
    };
    split.others.iter().map(finding).collect()
}

/// Returns the domain of a host; `None`: the host was not queried.
fn domain(rows: &[Vec<String>]) -> Option<String> {
    let told = rows.iter().find(|row| row[0] == "domain")?.get(1)?;
    Some(if told.is_empty() { UNTOLD.into() } else { told.to_ascii_lowercase() })
}

/// Whether the host sends names. By default NFSv4 sends numbers; it sends names if the kernel was set to, and with
/// Kerberos.
fn goes_by_names(host: &HostAnswers, rows: &[Vec<String>]) -> bool {
    let is_on = |module: &str| rows.iter().any(|row| row[0] == module && row.get(1).is_some_and(|value| value == "N"));
    let table = mounts(host).unwrap_or_default();
    let v4 = || table.iter().filter(|line| line.mount.fstype == "nfs4");
    let kerberos = |option: &String| option.starts_with("sec=krb5");
    is_on("nfsd") || (is_on("nfs") && v4().next().is_some()) || v4().any(|line| line.of_super.iter().any(kerberos))
}
