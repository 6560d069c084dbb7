//! HDFS, for words like `hdfs://nn/path` of programs that read HDFS themselves. HDFS has no mount. The NameNode
//! reports by WebHDFS, its HTTP interface, on which DataNodes the blocks of a file are.

mod answer;
mod http;
mod word;

use crate::{blank, local};
use homing_model::FileLayout;
use homing_model::text::shown;
use homing_os::threads::lock;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use word::{Door, encoded};

/// How long answers are used: the place of a file, and the silence of a NameNode. So ten thousand tasks do not wait
/// for it one by one.
const KEPT: Duration = Duration::from_secs(20);
/// The default time limit of a query.
const LIMIT: Duration = Duration::from_secs(2);
/// Schemes of words that name files of HDFS.
const SCHEMES: [&[u8]; 3] = [b"hdfs://", b"webhdfs://", b"swebhdfs://"];
const NOBODY: &str = "no name service knows the address of this host; if it is a logical name of Hadoop for several \
                      NameNodes, HOMING_WEBHDFS=HOST:9870 names the active one";

/// Whether a word names a file of HDFS, by its scheme alone. A path with a prepended `cwd` never does.
pub fn is_named(word: &Path) -> bool {
    SCHEMES.iter().any(|scheme| word.as_os_str().as_encoded_bytes().starts_with(scheme))
}

/// The addresses of a NameNode or why it cannot be queried, and since when that is known.
type NameNodeLookup = (Instant, Result<Vec<IpAddr>, String>);

/// All NameNodes that words name.
pub(crate) struct Hdfs {
    begun: Instant,
    limit: Duration,
    /// The address of WebHDFS for words that do not contain it.
    webhdfs: Option<String>,
    known: Mutex<HashMap<Door, NameNodeLookup>>,
    connections: http::NameNodeConnections,
}

impl Default for Hdfs {
    fn default() -> Hdfs {
        let (known, connections) = Default::default();
        Hdfs { begun: Instant::now(), limit: LIMIT, webhdfs: set("HOMING_WEBHDFS"), known, connections }
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Hdfs {
    /// Sets the time limit of a look.
    pub fn patient(self, limit: Duration) -> Hdfs {
        Hdfs { limit, ..self }
    }

    /// Returns the end of the time limit of a look that begins now.
    pub fn until(&self) -> Instant {
        Instant::now() + self.limit
    }

    /// Returns a number that changes when places must be queried again.
    pub fn turn(&self) -> i64 {
        (self.begun.elapsed().as_secs() / KEPT.as_secs()).cast_signed()
    }

    /// Returns the place of the file that a word names, or the reason why there is none. The error means that no
    /// NameNode answered.
    pub fn locate(&self, word: &Path, until: Instant) -> Result<FileLayout, String> {
        if !cfg!(feature = "hdfs") {
            return Err("this homing was built without the feature `hdfs`".into());
        }
        let (door, path) = word::parse(word.as_os_str().as_encoded_bytes(), self.webhdfs.as_deref())?;
        let mut layout = FileLayout { volume: format!("hdfs:{door}"), ..blank(word) };
        self.fill(&mut layout, &door, &path, until).map_err(|why| format!("the NameNode {door}: {why}"))?;
        Ok(layout)
    }

    fn fill(&self, layout: &mut FileLayout, door: &Door, path: &[u8], until: Instant) -> Result<(), String> {
        let addresses = self.addresses(door, until)?;
        let ask = |op| self.get(door, &addresses, path, op, until);
        match answer::size(&ask("GETFILESTATUS")?)? {
            Err((missing, reason)) => (layout.missing, layout.reason) = (missing, Some(reason)),
            Ok(0) => {}
            Ok(size) => {
                layout.size = size;
                let mut told = ask("GETFILEBLOCKLOCATIONS")?;
                if told.status == 400 {
                    // Hadoop 2 returns this status for an unknown operation.
                    told = ask("GET_BLOCK_LOCATIONS")?;
                }
                // DataNodes with loopback addresses run beside the NameNode.
                let here = addresses.iter().all(IpAddr::is_loopback);
                answer::blocks(layout, &told, &if here { local::host() } else { door.host.clone() })?;
            }
        }
        Ok(())
    }

    fn get(
        &self,
        door: &Door,
        to: &[IpAddr],
        path: &[u8],
        op: &str,
        until: Instant,
    ) -> Result<http::HttpResponse, String> {
        let account = || Some(homing_os::names::account(rustix::process::getuid().as_raw())?.name);
        // As Hadoop's own clients choose the user.
        let user = set("HADOOP_USER_NAME").or_else(account).unwrap_or_default();
        let target = format!("/webhdfs/v1{}?op={op}&user.name={}", encoded(path), encoded(user.as_bytes()));
        self.connections.get(to, door, &target, until).map_err(|error| {
            let silent = error.kind() == ErrorKind::TimedOut;
            let why = if silent { "it does not answer".into() } else { shown(&error.to_string()) };
            self.keep(door, Err(why)).err().unwrap_or_default()
        })
    }

    fn addresses(&self, door: &Door, until: Instant) -> Result<Vec<IpAddr>, String> {
        let known = lock(&self.known).get(door).cloned();
        if let Some((_, known)) = known.filter(|(since, _)| since.elapsed() < KEPT) {
            return known;
        }
        let (host, left) = (door.host.clone(), until.saturating_duration_since(Instant::now()));
        let found = homing_os::threads::within(left, move || addresses(&host)).filter(|found| !found.is_empty());
        self.keep(door, found.ok_or_else(|| NOBODY.into()))
    }

    fn keep(&self, door: &Door, known: Result<Vec<IpAddr>, String>) -> Result<Vec<IpAddr>, String> {
        let since = (Instant::now(), known.clone());
        lock(&self.known).insert(door.clone(), since);
        known
    }
}

/// Returns the addresses of a host. Loopback addresses are returned only if it has no others.
fn addresses(host: &str) -> Vec<IpAddr> {
    if let Ok(address) = host.parse() {
        return vec![address];
    }
    let (own, found): (Vec<_>, Vec<_>) =
        homing_os::names::addresses_and_loopback(host).into_iter().partition(IpAddr::is_loopback);
    if found.is_empty() { own } else { found }
}

#[cfg(all(test, feature = "hdfs"))]
mod tests;
