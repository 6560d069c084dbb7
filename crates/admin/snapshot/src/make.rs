//! Makes an image: beside the good ones, under a temporary name until it is complete and on disk. The next call takes
//! over the folder of an interrupted copy, unless the host restarted meanwhile and a good image exists.

use crate::ask::{Expired, ImageReport, Make, ReplySender, SnapshotReply};
use crate::doubt::ClockReading;
use crate::image::{EXPIRED, HISTORY_HEAD, Image, PARTIAL, Summary};
use crate::instant;
use crate::journal::{self, VaultEvent};
use crate::plan::{ImagePlan, Unfit, links_work, plan};
use crate::remove;
use crate::rsync::{Copy, CopyOutcome};
use crate::run::Reins;
use crate::split::{CopyPart, Deal, PartResult};
use crate::transfer;
use crate::tree::{self, Tally};
use crate::vault::{Refused, Vault, full, full_words, sync_folder, write_synced};
use crate::{index, manifest, parts};
use homing_os::folder::lock::FileLock;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// The most names of files that are reported; the lists on disk have all.
const TOLD: usize = 20;

/// Makes an image. `parts`: receives the parts that other hosts read first, once requested.
pub fn make(
    order: &Make,
    reins: &Reins,
    parts: &Receiver<Vec<CopyPart>>,
    send: ReplySender,
) -> Result<ImageReport, Refused> {
    let (since, begun) = (Instant::now(), Timestamp::now());
    let mut readings = ClockReading::of_hosts(&order.clocks, begun);
    let zone = TimeZone::system();
    let vault = Vault::make(&order.site)?;
    let held = vault.lock()?;
    have_room(&vault, &mut |text| drop(send(SnapshotReply::Note(text))))?;
    let plan = plan(order, &vault, &zone)?;
    let course = Course { vault: &vault, bank: &order.site.bank, plan: &plan, zone: &zone, held: &held, reins };
    let images = vault.images(&zone);
    let reference = images.iter().rev().find(|image| image.is_good() && image.branch == plan.branch);
    let (resumed, distrust) = course.begin(reference, &mut |text| drop(send(SnapshotReply::Note(text))))?;
    let exclude = course.exclude();
    // If all bytes are compared, this host reads them again anyway.
    let parts = if order.split && !distrust { course.deal(reference, &exclude, parts, send) } else { Vec::new() };
    let (reads, copied) = course.copy(reference, distrust, &exclude, &parts, send)?;
    let mut note = |text: String| drop(send(SnapshotReply::Note(text)));
    let tally = course.hash(reference)?;
    if copied.end == CopyOutcome::Whole && copied.stats.entries != tally.entries && copied.vanished == 0 {
        let why = format!("the image has {} entries, but the source has {}", tally.entries, copied.stats.entries);
        return Err(course.stop(why).into());
    }
    course.not_emptied(reference, &tally)?;
    course.finish(order, &images, reference, &copied, &tally)?;
    readings.push(ClockReading::since(begun, since.elapsed(), Timestamp::now()));
    let expired = match copied.end {
        CopyOutcome::Whole => remove::expire(&vault, &readings, false, &zone).unwrap_or_else(|e| {
            note(format!("removing expired images: {e}"));
            Expired::default()
        }),
        _ => Expired::default(),
    };
    remove::begin(&vault).unwrap_or_else(|e| note(format!("starting the removal of old images: {e}")));
    let first = |lines: &[String]| lines.iter().take(TOLD).cloned().collect();
    Ok(ImageReport {
        image: plan.name.clone(),
        reference: reference.map(|image| image.name.clone()),
        resumed,
        instant: plan.read != plan.source,
        files: tally.entries,
        bytes: tally.bytes,
        read_files: copied.stats.files + reads.iter().map(|read| read.files).sum::<u64>(),
        read: Some(copied.stats.bytes + reads.iter().map(|read| read.bytes).sum::<u64>()),
        local: plan.source.host.is_none(),
        network: network(&plan, &copied, &reads),
        own_bytes: tally.own_bytes,
        parts: reads,
        took_us: since.elapsed().as_micros() as u64,
        paused_us: reins.paused().as_micros() as u64,
        excluded: first(&copied.excluded),
        excluded_count: copied.excluded_count,
        unreadable: if copied.end == CopyOutcome::Incomplete { first(&copied.unreadable) } else { Vec::new() },
        expired: expired.names,
        doubt: expired.doubt,
        folder: vault.folder(&plan.name),
    })
}

/// Makes room on a full bank. If not even an empty file can be made, the remains of an interrupted copy block the
/// bank. Its source may have shrunk since, and continuing the copy needs files, too. Such a copy is begun anew.
fn have_room(vault: &Vault, note: &mut dyn FnMut(String)) -> Result<(), Refused> {
    let advised = |why: String| {
        let bank = vault.path.parent().unwrap_or(&vault.path).display();
        Refused::Advised(
            why,
            format!("df -i {bank}; homing snapshot list; then remove images or other files of {bank}"),
        )
    };
    match links_work(vault) {
        Ok(()) => return Ok(()),
        Err(Unfit::Other(why)) => return Err(why.into()),
        Err(Unfit::Full(why)) if vault.ending(PARTIAL).is_empty() && vault.ending(EXPIRED).is_empty() => {
            return Err(advised(why));
        }
        Err(Unfit::Full(why)) => note(format!("{why}; homing removes the remains of interrupted and expired images")),
    }
    for name in vault.ending(PARTIAL) {
        remove::aside(vault, &name).map_err(|e| format!("{}: {e}", vault.folder(&name).display()))?;
        note(format!("{name} starts again from the beginning"));
    }
    for name in vault.ending(EXPIRED) {
        // The removal in the background may be deleting the same folder.
        let _ = remove::delete(&vault.folder(&name));
    }
    links_work(vault).map_err(|unfit| match unfit {
        Unfit::Full(why) => advised(why),
        Unfit::Other(why) => why.into(),
    })
}

/// Returns the bytes over the network; `None`: the bank's host has read all.
fn network(plan: &ImagePlan, copied: &transfer::TransferResult, reads: &[PartResult]) -> Option<u64> {
    let last = plan.source.host.is_some().then_some(copied.stats.sent);
    let all = reads.iter().filter_map(|read| read.network).chain(last);
    all.reduce(|sum, sent| sum + sent)
}

struct Course<'a> {
    vault: &'a Vault,
    bank: &'a Path,
    plan: &'a ImagePlan,
    zone: &'a TimeZone,
    held: &'a FileLock,
    reins: &'a Reins,
}

impl Course<'_> {
    fn partial(&self) -> PathBuf {
        self.vault.folder(&format!("{}{PARTIAL}", self.plan.name))
    }

    /// Makes the folder, or takes over the one of an interrupted copy. Returns whether it took one over, and whether
    /// files there may be damaged.
    fn begin(&self, reference: Option<&Image>, note: &mut dyn FnMut(String)) -> Result<(bool, bool), String> {
        let failed =
            |e: std::io::Error| format!("making the folder {}: {}", self.partial().display(), full(self.bank, &e));
        let boot = homing_os::names::boot_id();
        let mut left = self.vault.ending(PARTIAL);
        let last = left.pop();
        for old in &left {
            remove::aside(self.vault, old).map_err(failed)?;
        }
        let same_boot = last.as_ref().is_some_and(|name| self.begun_since(name, &boot));
        let resumed = match last {
            // After a power cut new files may be shorter than they look. Copying the changed files again is cheap.
            Some(old) if !same_boot && reference.is_some() => {
                note(format!("{old} was interrupted by a reboot of this host, and starts again from the beginning"));
                remove::aside(self.vault, &old).map(|()| false)
            }
            Some(old) => {
                note(format!("{old} was interrupted; homing continues it"));
                fs::rename(self.vault.folder(&old), self.partial()).map(|()| true)
            }
            None => Ok(false),
        };
        let resumed = resumed.map_err(failed)?;
        let reference = reference.map(|image| image.name.clone());
        let event = VaultEvent::Begun { image: self.plan.name.clone(), reference, boot };
        journal::add(&self.vault.own(), event).map_err(failed)?;
        if !resumed {
            let made = DirBuilder::new().mode(0o700).create(self.partial());
            made.and_then(|()| DirBuilder::new().mode(0o755).create(self.partial().join("tree"))).map_err(failed)?;
        }
        Ok((resumed, resumed && !same_boot))
    }

    /// Whether the host has run without a reboot since this copy was last begun or continued.
    fn begun_since(&self, partial: &str, boot: &str) -> bool {
        let name = partial.strip_suffix(PARTIAL).unwrap_or(partial);
        let events = journal::read(&self.vault.own()).unwrap_or_default();
        let begun = events.into_iter().rev().find_map(|event| match event {
            VaultEvent::Begun { image, boot, .. } if image == name => Some(boot),
            _ => None,
        });
        begun.is_some_and(|then| then == boot)
    }

    /// Returns the excluded patterns: those of the plan, and the file server's leases and instant copies, which are
    /// no data.
    fn exclude(&self) -> Vec<String> {
        self.plan.exclude.iter().cloned().chain(instant::own_patterns()).collect()
    }

    /// Requests the parts that other hosts read first.
    fn deal(
        &self,
        reference: Option<&Image>,
        exclude: &[String],
        parts: &Receiver<Vec<CopyPart>>,
        say: ReplySender,
    ) -> Vec<CopyPart> {
        let since = reference.and_then(|image| image.created);
        let asked = say(SnapshotReply::Deal(Deal { exclude: exclude.to_vec(), since }));
        asked.ok().and_then(|()| parts.recv().ok()).unwrap_or_default()
    }

    fn copy(
        &self,
        reference: Option<&Image>,
        distrust: bool,
        exclude: &[String],
        parts: &[CopyPart],
        say: ReplySender,
    ) -> Result<(Vec<PartResult>, transfer::TransferResult), String> {
        let folder = self.partial();
        let exclude_from = folder.join("exclude");
        let patterns: String = exclude.iter().map(|pattern| format!("{pattern}\n")).collect();
        let kept = fs::write(&exclude_from, patterns);
        kept.map_err(|e| self.stop(full(self.bank, &e)))?;
        let tree = reference.map(|image| self.vault.folder(&image.name).join("tree"));
        let copy = Copy {
            from: &self.plan.read,
            to: &folder.join("tree"),
            reference: tree.as_deref(),
            exclude_from: &exclude_from,
            xdev: self.plan.xdev,
            distrust,
            exact: tree::keeps_nanoseconds(&folder).map_err(|e| self.stop(full(self.bank, &e)))?,
            ssh: &self.plan.ssh,
            options: &self.plan.options,
            mark: self.plan.mark.as_deref(),
        };
        let reads = parts::copy(&copy, parts, &folder, self.held, self.reins, say);
        let copied = transfer::copy(&copy, &folder, self.held, self.reins);
        let copied = copied.map_err(|e| self.stop(full(self.bank, &e)))?;
        match &copied.end {
            CopyOutcome::Full => Err(self.stop(full_words(self.bank))),
            CopyOutcome::Failed(why) => Err(self.stop(why.clone())),
            CopyOutcome::Whole | CopyOutcome::Incomplete => Ok((reads, copied)),
        }
    }

    /// Writes the manifest of the image, on disk beside its tree.
    fn hash(&self, reference: Option<&Image>) -> Result<Tally, String> {
        let before = reference.map(|image| self.vault.folder(&image.name));
        let to = self.partial().join(manifest::NAME);
        tree::write_manifest(&self.partial().join("tree"), before.as_deref(), &to)
            .map_err(|e| self.stop(format!("reading the copied files back: {}", full(self.bank, &e))))
    }

    /// Fails if the source is empty and was not before: most likely it is not mounted. Its empty image would be the
    /// one that stays.
    fn not_emptied(&self, reference: Option<&Image>, tally: &Tally) -> Result<(), String> {
        let before = reference.and_then(|image| image.files).filter(|files| *files > 1 && tally.entries == 1);
        let Some(files) = before else { return Ok(()) };
        let source = self.plan.source.word().to_string_lossy().into_owned();
        let why = self.stop(format!("{source} is empty, but had {files} entries before: is it mounted?"));
        // Nothing was interrupted: nothing of this copy is kept for the next one.
        let partial = format!("{}{PARTIAL}", self.plan.name);
        let removed = remove::aside(self.vault, &partial).and_then(|()| remove::begin(self.vault));
        Err(match removed {
            Ok(()) => why,
            Err(e) => format!("{why} (removing {partial}: {e})"),
        })
    }

    /// Records why a copy ended early; the next copy continues it.
    fn stop(&self, why: String) -> String {
        let event = VaultEvent::Stopped { image: self.plan.name.clone(), why: why.clone() };
        let _ = journal::add(&self.vault.own(), event);
        why
    }

    /// Names the image when all of it is on disk, and never replaces another image.
    fn finish(
        &self,
        order: &Make,
        images: &[Image],
        reference: Option<&Image>,
        copied: &transfer::TransferResult,
        tally: &Tally,
    ) -> Result<(), String> {
        let bank = self.bank.to_string_lossy();
        let tree = self.plan.source.path.display();
        let whole = copied.end == CopyOutcome::Whole;
        let older = images.iter().filter(|image| image.sequence.is_none()).map(|image| image.name.clone());
        let older: Vec<String> = older.collect();
        let summary = Summary {
            client: self.plan.source.host.as_deref().unwrap_or(&order.server),
            tree: &tree,
            server: &order.server,
            bank: &bank,
            vault: &order.site.vault,
            branch: &self.plan.branch,
            image: &self.plan.name,
            reference: reference.map(|image| image.name.as_str()),
            sequence: self.vault.next_number(images),
            older: &older,
            begun: self.plan.begun,
            completed: Timestamp::now(),
            expiry: &self.plan.expiry,
            exclude: &self.plan.exclude,
            xdev: self.plan.xdev,
            status: if whole { "success" } else { "error (23) -- some of it could not be read" },
            files: tally.entries,
            bytes: tally.bytes,
            own_bytes: tally.own_bytes,
            manifest: &tally.manifest,
        };
        let named = self.name_it(&summary).and_then(|()| if whole { self.remember(&summary) } else { Ok(()) });
        named.map_err(|e| self.stop(format!("finishing {}: {}", self.partial().display(), full(self.bank, &e))))
    }

    fn name_it(&self, summary: &Summary) -> std::io::Result<()> {
        let folder = self.partial();
        write_synced(&folder.join("summary"), summary.text(self.zone).as_bytes())?;
        index::write(&folder, &self.plan.alias, self.plan.index.as_deref())?;
        fs::set_permissions(&folder, Permissions::from_mode(self.plan.mode))?;
        rustix::fs::syncfs(fs::File::open(&folder)?)?;
        let (from, to) = (folder, self.vault.folder(&self.plan.name));
        let whole = rustix::fs::RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(rustix::fs::CWD, &from, rustix::fs::CWD, &to, whole)?;
        sync_folder(&self.vault.path)
    }

    fn remember(&self, summary: &Summary) -> std::io::Result<()> {
        let own = self.vault.own();
        let path = own.join(format!("{}.hist", self.plan.branch));
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        if file.metadata()?.len() == 0 {
            file.write_all(HISTORY_HEAD.as_bytes())?;
        }
        file.write_all(summary.history(self.zone).as_bytes())?;
        journal::add(
            &own,
            VaultEvent::Finished {
                image: self.plan.name.clone(),
                sequence: summary.sequence,
                manifest: Some(summary.manifest.into()),
            },
        )
    }
}
