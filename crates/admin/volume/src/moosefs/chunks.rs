//! Reads the master's report on its chunks, as `mfscli` prints it (MooseFS 3.0.117).

/// The number of chunks of one goal that have this many valid copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    goal: u64,
    copies: u64,
    chunks: u64,
}

/// A disk of a chunkserver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkDisk {
    /// Address of its host, as the master sees it.
    pub(crate) ip: String,
    /// Chunks on it.
    pub(crate) chunks: u64,
    /// Whether it is marked for removal.
    pub(crate) leaves: bool,
    /// Whether the master no longer needs it. Just after the mark this is an old value: "ready" was seen with every
    /// only copy still on the disk.
    pub(crate) ready: bool,
    /// Used bytes.
    pub(crate) used: u64,
    /// Size in bytes.
    pub(crate) size: u64,
}

/// The chunks and disks of a volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunks {
    /// Copies on all disks.
    all: Vec<Cell>,
    /// Copies on disks that are not marked for removal.
    regular: Vec<Cell>,
    pub(crate) disks: Vec<ChunkDisk>,
    /// Chunks without any copy on a host that is up.
    pub(crate) missing: u64,
}

/// Prints it, on a host that reaches the master by the name `$1`.
pub(crate) const QUESTION: &str = r#"for m in 0 1; do mfscli -H "$1" -SIC -m$m || exit; done; mfscli -H "$1" -SHD"#;

/// Reads it; `None` if the tables of chunks are missing.
pub(crate) fn read(text: &str) -> Option<Chunks> {
    let mut chunks = Chunks::default();
    let mut counted = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
        let number = |i: usize| fields.get(i).and_then(|f| f.parse().ok());
        match fields[..] {
            [table, "goal/copies/chunks:", ..] => {
                let (Some(goal), Some(copies), Some(n)) = (number(2), number(3), number(4)) else { continue };
                // Chunks with goal 0 are no longer needed by any file.
                let cell = Cell { goal, copies, chunks: if goal == 0 { 0 } else { n } };
                if table.starts_with("all") { chunks.all.push(cell) } else { chunks.regular.push(cell) }
            }
            ["all chunks matrix:", "chunkclass missing:", n] => {
                chunks.missing = n.parse().ok()?;
                counted += 1;
            }
            ["regular chunks matrix:", "chunkclass missing:", _] => counted += 1,
            ["disks:", place, n, _, state, ..] => chunks.disks.push(ChunkDisk {
                ip: place.split(':').next()?.into(),
                chunks: n.parse().ok()?,
                leaves: state.contains("for removal"),
                ready: state.contains("(ready)"),
                used: number(fields.len() - 2).unwrap_or(0),
                size: number(fields.len() - 1).unwrap_or(0),
            }),
            _ => {}
        }
    }
    (counted == 2).then_some(chunks)
}

fn copies(cells: &[Cell]) -> u64 {
    cells.iter().map(|c| c.copies * c.chunks).sum()
}

impl Chunks {
    /// Returns the copies that have still to be made on disks that stay.
    pub(crate) fn behind(&self) -> u64 {
        self.regular.iter().map(|c| c.goal.saturating_sub(c.copies) * c.chunks).sum()
    }

    /// Returns the mean bytes of a chunk, from the used bytes of the disks.
    pub(crate) fn average(&self) -> u64 {
        let used: u64 = self.disks.iter().map(|d| d.used).sum();
        used / self.disks.iter().map(|d| d.chunks).sum::<u64>().max(1)
    }

    /// Returns how full the emptiest and the fullest disk are, percent, and the bytes that disks hold above the mean.
    /// `None` without disks.
    pub(crate) fn spread(&self) -> Option<(f64, f64, u64)> {
        let disks: Vec<&ChunkDisk> = self.disks.iter().filter(|d| d.size > 0 && !d.leaves).collect();
        let full = |d: &&ChunkDisk| d.used as f64 / d.size as f64;
        let mean = disks.iter().map(|d| d.used).sum::<u64>() as f64 / disks.iter().map(|d| d.size).sum::<u64>() as f64;
        let above = disks.iter().map(|d| (d.used as f64 - mean * d.size as f64).max(0.0)).sum::<f64>();
        let least = disks.iter().map(full).min_by(f64::total_cmp)?;
        let most = disks.iter().map(full).max_by(f64::total_cmp)?;
        Some((100.0 * least, 100.0 * most, above as u64))
    }

    /// Returns the largest goal of a file.
    pub(crate) fn largest_goal(&self) -> u64 {
        self.all.iter().filter(|c| c.chunks > 0).map(|c| c.goal).max().unwrap_or(0)
    }

    /// Whether every chunk has all its copies without the disks of the host with these addresses. The master's own
    /// "ready" comes two or three loops over all chunks later, and is wrong for a moment before the first loop. The
    /// counts of copies are right at both times.
    pub(crate) fn can_go(&self, ips: &[String]) -> bool {
        let its = |d: &&ChunkDisk| ips.contains(&d.ip);
        let there: u64 = self.disks.iter().filter(its).map(|d| d.chunks).sum();
        if self.behind() > 0 || self.missing > 0 {
            return false;
        }
        if there == 0 {
            return true;
        }
        let marked = copies(&self.all).saturating_sub(copies(&self.regular));
        let others_leave = self.disks.iter().any(|d| d.leaves && !ips.contains(&d.ip));
        let leaves = self.disks.iter().filter(its).all(|d| d.leaves);
        let ready = self.disks.iter().filter(its).all(|d| d.ready);
        leaves && marked > 0 && ((marked >= there && !others_leave) || ready)
    }
}
