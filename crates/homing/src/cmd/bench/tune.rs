//! `--tune nfs`: mounts the export with one set of options after another,
//! measures each from empty caches, and tells the best.

use super::fio::{Case, Op};
use super::plot::{self, Series};
use super::{Bench, sh};
use crate::failure::Failure;
use std::str::FromStr;

/// What can be tuned.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A mount of NFS.
    Nfs,
}

impl FromStr for Kind {
    type Err = String;
    fn from_str(s: &str) -> Result<Kind, String> {
        if s == "nfs" { Ok(Kind::Nfs) } else { Err(format!("no {s:?} to tune; there is nfs")) }
    }
}

/// A setting must be this much better than the default to be worth a change; less is noise.
const WORTH: f64 = 1.05;

/// What is set.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    /// The server's max_block_size, when it was set.
    block: Option<u64>,
    /// Bytes of a read or write on the wire; 0: left to both sides.
    size: u64,
    /// TCP connections.
    connections: u32,
}

impl Setting {
    const DEFAULT: Setting = Setting { block: None, size: 0, connections: 1 };
}

/// One setting and what it gave.
#[derive(Clone, Debug)]
struct Try {
    setting: Setting,
    write: f64,
    read: f64,
    /// What client and server settled on, from the mount table.
    settled: String,
}

impl Try {
    fn options(&self) -> String {
        let mut options = format!("hard,vers=4.2,nconnect={}", self.setting.connections);
        if self.setting.size > 0 {
            options += &format!(",rsize={0},wsize={0}", self.setting.size);
        }
        options
    }

    /// Geometric mean: neither direction may pay for the other.
    fn score(&self) -> f64 {
        (self.write * self.read).sqrt()
    }
}

/// Prints source and server of an NFS mount.
const SOURCE: &str = r#"findmnt -n -o SOURCE,FSTYPE --target "$1" | awk '$2 ~ /^nfs/ {print $1}' | grep ."#;
const MOUNT: &str = r#"
umount "$3" 2>/dev/null; mkdir -p -- "$3" && mount -t nfs4 -o "nosharecache,$2" -- "$1" "$3" || exit
findmnt -n -o OPTIONS --target "$3" | tr , '\n' | grep -E '^(rsize|wsize|nconnect)=' | tr '\n' ' '
"#;
/// The size is read when the first thread starts; rpc.nfsd works with and without systemd.
const SERVER_BLOCK: &str = r#"
PATH=$PATH:/usr/sbin:/sbin; n=$(cat /proc/fs/nfsd/threads) || exit
rpc.nfsd 0 || exit; echo "$1" > /proc/fs/nfsd/max_block_size; s=$?; rpc.nfsd "$n" || exit
[ $s = 0 ] && [ "$(cat /proc/fs/nfsd/max_block_size)" = "$1" ]
"#;

/// Runs the sweep from the first host.
pub fn run(bench: &Bench) -> Result<i32, Failure> {
    let client = &bench.hosts[..1];
    let source = bench.all(client, |_, _| sh(SOURCE, &[&bench.path]), "looking for an NFS mount")?.remove(0);
    let source = source.trim().to_string();
    let server = source.split(':').next().unwrap_or("").to_string();
    let mut blocks: Vec<Option<u64>> = bench.args.server_block.iter().copied().map(Some).collect();
    blocks.insert(0, None);
    let mut tries: Vec<Try> = Vec::new();
    // What comes first pays for programs that are read for the first time, and is thrown away.
    one(bench, &source, Setting::DEFAULT, &[])?;
    for block in blocks {
        set_block(bench, &server, block)?;
        // 0 is the default: what both sides agree on.
        for size in std::iter::once(0).chain(bench.args.tune_sizes.iter().copied()) {
            let next = Setting { block, size, connections: 1 };
            tries.extend(one(bench, &source, next, &tries)?);
        }
    }
    let best_size = best(&tries).map_or((None, 0), |i| (tries[i].setting.block, tries[i].setting.size));
    for connections in &bench.args.tune_connections {
        let next = Setting { block: best_size.0, size: best_size.1, connections: *connections };
        tries.extend(one(bench, &source, next, &tries)?);
    }
    again(bench, &source, &mut tries, &server)?;
    let done = sh("umount \"$1\"; rmdir \"$1\"", &["/run/homing-tune"]);
    bench.all(client, |_, _| done.clone(), "taking the trial mount away")?;
    tell(bench, &tries, &server)
}

fn set_block(bench: &Bench, server: &str, block: Option<u64>) -> Result<(), Failure> {
    let Some(block) = block else { return Ok(()) };
    let script = sh(SERVER_BLOCK, &[&block.to_string()]);
    bench.all(&[server.to_string()], |_, _| script.clone(), "setting max_block_size").map(drop)
}

/// One measurement of one setting is no evidence: the default and the best are measured
/// a second time, one after the other, and each counts with its mean.
fn again(bench: &Bench, source: &str, tries: &mut [Try], server: &str) -> Result<(), Failure> {
    let Some(best) = best(tries) else { return Ok(()) };
    // The server keeps a size that was set: the default is then no longer to be had.
    let with = tries[best].setting.block;
    for i in [0, best] {
        if best == 0 || (i == 0 && with.is_some()) {
            continue;
        }
        set_block(bench, server, tries[i].setting.block)?;
        let Some(second) = one(bench, source, tries[i].setting, &[])? else { continue };
        tries[i].write = (tries[i].write + second.write) / 2.0;
        tries[i].read = (tries[i].read + second.read) / 2.0;
    }
    Ok(())
}

/// Measures a setting; `None` when both sides settle on what was measured already.
fn one(bench: &Bench, source: &str, setting: Setting, before: &[Try]) -> Result<Option<Try>, Failure> {
    let mut t = Try { setting, write: 0.0, read: 0.0, settled: String::new() };
    let client = &bench.hosts[..1];
    let point = "/run/homing-tune";
    let options = t.options();
    t.settled = bench
        .all(client, |_, _| sh(MOUNT, &[source, &options, point]), "mounting for a trial")?
        .remove(0)
        .trim()
        .into();
    if before.iter().any(|b| b.settled == t.settled && b.setting.block == setting.block) {
        return Ok(None);
    }
    let folder = format!("{point}/.homing-tune");
    bench.all(client, |_, _| sh("mkdir -p -- \"$1\"", &[&folder]), "preparing")?;
    for op in [Op::Write, Op::Read] {
        let case = Case { op, bs: "1M".into(), clients: 1, copies: None };
        if op == Op::Read {
            // A new mount knows nothing of the file that was written through the old one.
            bench.all(client, |_, _| sh(MOUNT, &[source, &options, point]), "mounting again")?;
            bench.drop_caches();
        }
        let texts = bench.all(client, |_, _| super::fio::argv(&case, &folder, bench, 0), "measuring")?;
        let row = super::fio::row(&case, &texts).ok_or_else(|| Failure::system("fio's answer is not understood"))?;
        if op == Op::Write { t.write = row.mb_per_s } else { t.read = row.mb_per_s }
    }
    bench.all(client, |_, _| sh("rm -rf --one-file-system -- \"$1\"", &[&folder]), "cleaning up")?;
    eprintln!("{options}: write {:.1} MB/s, read {:.1} MB/s ({})", t.write, t.read, t.settled);
    Ok(Some(t))
}

/// The place of the best.
fn best(tries: &[Try]) -> Option<usize> {
    (0..tries.len()).max_by(|a, b| tries[*a].score().total_cmp(&tries[*b].score()))
}

fn tell(bench: &Bench, tries: &[Try], server: &str) -> Result<i32, Failure> {
    let most = tries.iter().map(|t| t.write.max(t.read)).fold(1e-9, f64::max);
    println!("{:>10} {:>8} {:>8} {:>9} {:>9}  SETTLED ON", "SERVER", "SIZE", "NCONNECT", "WRITE", "READ");
    for t in tries {
        let bar = |v: f64| "#".repeat((20.0 * v / most).round() as usize);
        let block = t.setting.block.map_or("as it is".into(), |b| b.to_string());
        let size = if t.setting.size == 0 { "default".into() } else { t.setting.size.to_string() };
        println!("{block:>10} {size:>8} {:>8} {:>9.1} {:>9.1}  {}", t.setting.connections, t.write, t.read, t.settled);
        println!("{:>28} w {:<20} r {:<20}", "", bar(t.write), bar(t.read));
    }
    if let Some(file) = &bench.args.html {
        super::show::write(file, page(bench, tries))?;
    }
    let (Some(default), Some(best)) = (tries.first(), best(tries).map(|i| &tries[i])) else { return Ok(0) };
    let gain = best.score() / default.score();
    if gain < WORTH {
        println!("the default is best: nothing that was tried is more than {:.0} % ahead of it", (WORTH - 1.0) * 100.0);
        return Ok(0);
    }
    println!("best: {} ({gain:.2} times the default)", best.options());
    if let Some(block) = best.setting.block {
        println!("on {server}, at each boot: rpc.nfsd 0; echo {block} > /proc/fs/nfsd/max_block_size; rpc.nfsd 8");
    }
    if !bench.args.apply {
        println!(
            "to use it, put these options into the line of {} in /etc/fstab, unmount and mount; or say --apply",
            bench.path
        );
        return Ok(0);
    }
    apply(bench, &best.options())
}

/// The curves: sizes for each size of the server's, then connections.
fn page(bench: &Bench, tries: &[Try]) -> String {
    let mut body = String::new();
    let mut blocks: Vec<Option<u64>> = tries.iter().map(|t| t.setting.block).collect();
    blocks.dedup();
    for block in blocks {
        let sizes: Vec<&Try> =
            tries.iter().filter(|t| t.setting.block == block && t.setting.connections == 1).collect();
        let title = match block {
            Some(block) => format!("one connection, max_block_size of the server {}", bytes(block)),
            None => "one connection".into(),
        };
        let places: Vec<String> = sizes.iter().map(|t| bytes(t.setting.size)).collect();
        body += &curve(&title, "rsize and wsize", &places, &sizes);
    }
    let several = tries.iter().find(|t| t.setting.connections > 1).map(|t| (t.setting.block, t.setting.size));
    if let Some(size) = several {
        let of_size: Vec<&Try> = tries.iter().filter(|t| (t.setting.block, t.setting.size) == size).collect();
        let places: Vec<String> = of_size.iter().map(|t| t.setting.connections.to_string()).collect();
        body += &curve(&format!("rsize and wsize {}", bytes(size.1)), "nconnect", &places, &of_size);
    }
    let about = [
        format!(
            "{}: {} MB written and read in blocks of 1 MiB, from empty caches",
            bench.hosts[0],
            bench.args.size / 1_000_000
        ),
        "the default and the best are means of two measurements".into(),
    ];
    plot::page(&format!("NFS at {}", bench.path), &about, &body)
}

fn curve(title: &str, below: &str, places: &[String], tries: &[&Try]) -> String {
    let series = |name, colour, value: fn(&Try) -> f64| Series {
        name,
        colour,
        values: tries.iter().map(|t| value(t)).collect(),
    };
    let both = [series("write", plot::DARK, |t| t.write), series("read", plot::LIGHT, |t| t.read)];
    plot::lines(title, below, places, &both, "MB/s")
}

/// A size of the sweep for a person.
fn bytes(size: u64) -> String {
    match size {
        0 => "default".into(),
        s if s >= 1 << 20 => format!("{} MiB", s >> 20),
        s => format!("{} KiB", s >> 10),
    }
}

/// The line of this mount point is changed, all others stay.
fn apply(bench: &Bench, options: &str) -> Result<i32, Failure> {
    let text = r#"
        p=$(findmnt -n -o TARGET --target "$1") || exit
        awk -v p="$p" -v o="$2" '$2 == p && $3 ~ /^nfs/ { n = split($4, a, ","); k = "";
        for (i = 1; i <= n; i++) if (a[i] !~ /^(rsize|wsize|nconnect|vers|hard|soft)/) k = k a[i] ",";
        $4 = k o; f = 1 } {print} END {exit !f}' /etc/fstab > /etc/fstab.homing || { echo "no line of $p in /etc/fstab"; exit 1; }
        chmod 644 /etc/fstab.homing && mv /etc/fstab.homing /etc/fstab && umount "$p" && mount "$p""#;
    bench.all(&bench.hosts, |_, _| sh(text, &[&bench.path, options]), "applying the options")?;
    println!("applied on {}", bench.hosts.join(", "));
    Ok(0)
}
