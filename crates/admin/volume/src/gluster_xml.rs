//! Reads the XML of `gluster volume info`, `peer status` and `volume status all tasks` (GlusterFS 10.3; the fields
//! are the same since 3.8).

use roxmltree::{Document, Node};
use std::collections::BTreeMap;

/// A brick, as named in the volume's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brick {
    /// Its host.
    pub host: String,
    /// Its folder there.
    pub path: String,
    /// Whether it keeps names, but no bytes.
    pub arbiter: bool,
}

impl Brick {
    /// The form in which `gluster` writes it.
    pub fn word(&self) -> String {
        format!("{}:{}", self.host, self.path)
    }
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlusterVolume {
    /// Its name.
    pub name: String,
    /// Whether it is started.
    pub started: bool,
    /// Bricks in a set, arbiter included; 1 if there are no copies.
    pub set_size: usize,
    /// Arbiters in a set.
    pub arbiters: usize,
    /// The bricks in definition order: the bricks of a set are neighbours.
    pub bricks: Vec<Brick>,
    /// Options that were set.
    pub options: BTreeMap<String, String>,
}

impl GlusterVolume {
    /// Returns the copies of each file.
    pub fn copies(&self) -> usize {
        self.set_size.saturating_sub(self.arbiters).max(1)
    }

    /// Returns the sets of bricks that hold the same files.
    pub fn sets(&self) -> impl Iterator<Item = &[Brick]> {
        self.bricks.chunks(self.set_size.max(1))
    }
}

/// A long-running task of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The volume.
    pub volume: String,
    /// `Rebalance` or `Remove brick`.
    pub what: String,
    /// `in progress`, `completed`, `failed`, `stopped`, `not started`.
    pub status: String,
    /// The bricks to be emptied.
    pub bricks: Vec<String>,
}

/// Another host of the pool, as a daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The identity of its daemon; empty if it is not known.
    pub uuid: String,
    /// Its names.
    pub names: Vec<String>,
    /// Whether the daemons are connected, and both in the pool.
    pub connected: bool,
}

/// GlusterFS as one daemon sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Volumes.
    pub volumes: Vec<GlusterVolume>,
    /// Peers, without the queried host.
    pub peers: Vec<Peer>,
    /// Long actions; `None` if the daemon was too busy to list them.
    pub tasks: Option<Vec<Task>>,
}

impl Cluster {
    /// Returns the volume of this name.
    pub fn volume(&self, name: &str) -> Option<&GlusterVolume> {
        self.volumes.iter().find(|v| v.name == name)
    }

    /// Whether `host` is a peer under this name.
    pub fn knows(&self, host: &str) -> bool {
        self.peer(host).is_some()
    }

    fn peer(&self, host: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.names.iter().any(|n| n == host))
    }

    /// Whether it is connected with a host; `None` if it knows no peer of this name.
    pub fn is_connected(&self, host: &str) -> Option<bool> {
        Some(self.peer(host)?.connected)
    }
}

fn text<'a>(node: Node<'a, 'a>, name: &str) -> &'a str {
    node.children().find(|c| c.has_tag_name(name)).and_then(|c| c.text()).unwrap_or("").trim()
}

fn number(node: Node, name: &str) -> usize {
    text(node, name).parse().unwrap_or(0)
}

fn volume(node: Node) -> GlusterVolume {
    let bricks = node.descendants().filter(|n| n.has_tag_name("brick")).filter_map(|b| {
        let (host, path) = text(b, "name").split_once(':')?;
        Some(Brick { host: host.into(), path: path.into(), arbiter: text(b, "isArbiter") == "1" })
    });
    let options = node.descendants().filter(|n| n.has_tag_name("option"));
    GlusterVolume {
        name: text(node, "name").into(),
        started: text(node, "status") == "1",
        set_size: number(node, "replicaCount").max(number(node, "disperseCount")).max(1),
        arbiters: number(node, "arbiterCount"),
        bricks: bricks.collect(),
        options: options.map(|o| (text(o, "name").to_string(), text(o, "value").to_string())).collect(),
    }
}

fn peer(node: Node) -> Peer {
    let names = node.descendants().filter(|n| n.has_tag_name("hostname")).filter_map(|n| n.text());
    let mut names: Vec<String> = names.map(|n| n.trim().to_string()).collect();
    names.dedup();
    let connected = text(node, "connected") == "1" && text(node, "state") == "3";
    Peer { uuid: text(node, "uuid").into(), names, connected }
}

fn tasks(node: Node) -> Vec<Task> {
    let name = text(node, "volName");
    let tasks = node.descendants().filter(|n| n.has_tag_name("task"));
    let read = |t: Node| Task {
        volume: name.into(),
        what: text(t, "type").into(),
        status: text(t, "statusStr").into(),
        bricks: t
            .descendants()
            .filter(|n| n.has_tag_name("brick"))
            .filter_map(|b| b.text())
            .map(String::from)
            .collect(),
    };
    tasks.map(read).collect()
}

/// Reads the three texts; `None` if the daemon gave no list of volumes.
pub(crate) fn read(texts: &BTreeMap<String, String>) -> Option<Cluster> {
    let info = texts.get("volume info")?;
    let info = Document::parse(info.trim()).ok()?;
    let volumes = info.descendants().filter(|n| n.has_tag_name("volume")).map(volume).collect();
    let mut cluster = Cluster { volumes, ..Cluster::default() };
    if let Some(Ok(peers)) = texts.get("peer status").map(|t| Document::parse(t.trim())) {
        cluster.peers = peers.descendants().filter(|n| n.has_tag_name("peer")).map(peer).collect();
    }
    if let Some(Ok(status)) = texts.get("volume status all tasks").map(|t| Document::parse(t.trim())) {
        // An error message contains no list of volumes.
        let told = status.descendants().any(|n| n.has_tag_name("volumes"));
        let all = status.descendants().filter(|n| n.has_tag_name("volume")).flat_map(tasks);
        cluster.tasks = told.then(|| all.collect());
    }
    Some(cluster)
}
