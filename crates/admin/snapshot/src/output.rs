//! Formats results about snapshots: as text for users, and as JSON for programs.

use crate::ask::{ImageReport, Listed, Obstacle, Proof, Restored};
use crate::destination::Presence;
use crate::expiry;
use crate::instant::InstantMethod;
use crate::manifest::{ChangeKind, EntryChange};
use crate::order::{TOLERANCE, misdated};
use crate::rsync::HostFolder;
use crate::split::PartResult;
use crate::target::Target;
use homing_model::text::shown;
use homing_model::{document, units};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::io::{self, Write};

fn date(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".into(), |at| expiry::written(at, &TimeZone::system()))
}

fn entries(n: u64) -> String {
    units::count(n, "entry").replace("entrys", "entries")
}

fn place(target: &Target) -> String {
    format!("{}:{}/{}", target.host, target.site.bank.display(), target.site.vault)
}

/// Returns the summary of a run.
pub fn made(target: &Target, source: &str, way: Option<InstantMethod>, made: &ImageReport) -> String {
    let bytes = units::bytes;
    let network = match made.network {
        Some(sent) => bytes(sent),
        None if made.local => "none".into(),
        None => "not measured".into(),
    };
    let read = way.map_or_else(String::new, |way| format!(" from an instant copy ({})", way.name()));
    let mut lines = vec![format!(
        "snapshot {}: {} in {}: {}, {}; read on {}{read}: {}, {}; over the network: {network}; new in the bank: {}; {}{}",
        target.name,
        made.image,
        place(target),
        entries(made.files),
        bytes(made.bytes),
        readers(source, &made.parts),
        units::count(made.read_files, "file"),
        made.read.map_or("bytes not counted".into(), bytes),
        bytes(made.own_bytes),
        units::span(made.took_us),
        stood(made.paused_us),
    )];
    let each = |names: &[String]| names.iter().map(|name| format!("  {}", shown(name))).collect::<Vec<_>>();
    let folder = made.folder.display();
    if made.excluded_count > 0 {
        let count = units::count(made.excluded_count, "name");
        lines.push(format!("excluded by patterns: {count} ({}:{folder}/excluded)", target.host));
        lines.extend(each(&made.excluded));
    }
    if !made.unreadable.is_empty() {
        let why = "this image is not good, and later images do not share its files";
        lines.push(format!("unreadable ({}:{folder}/rsync_error); {why}:", target.host));
        lines.extend(each(&made.unreadable));
    }
    lines.extend(made.doubt.iter().map(|why| format!("homing removed no expired image: {why}")));
    if !made.expired.is_empty() {
        lines.push(format!("expired and removed: {}", shown(&made.expired.join(", "))));
    }
    lines.join("\n") + "\n"
}

/// Names the hosts that have read, with the bytes of each if several had a part.
fn readers(source: &str, parts: &[PartResult]) -> String {
    if parts.is_empty() {
        return source.into();
    }
    let part = |read: &PartResult| {
        let lost = if read.why.is_some() { ", part incomplete" } else { "" };
        format!("{} ({}{lost})", read.host, units::bytes(read.bytes))
    };
    format!("{}, the rest on {source}", parts.iter().map(part).collect::<Vec<_>>().join(", "))
}

/// Returns how long the copy paused, if it was at least a second.
fn stood(paused_us: u64) -> String {
    if paused_us < 1_000_000 {
        String::new()
    } else {
        format!(", of which {} paused for other users", units::span(paused_us))
    }
}

/// The same for programs.
pub fn made_json(target: &Target, way: Option<InstantMethod>, made: &ImageReport) -> String {
    document::line(json!({ "vault": target.name, "bank": target.section.bank, "instant": way, "made": made }))
}

/// Returns a table for each vault.
pub fn list(vaults: &[(Target, Listed)]) -> String {
    vaults.iter().map(|(target, listed)| table(target, listed)).collect::<Vec<_>>().join("\n")
}

/// Returns the images that would be removed, for the prompt before it; `None`: there is none. Images past their date
/// that stay, as the last good ones of their branch, are counted.
pub fn expirable(target: &Target, listed: &Listed) -> Option<String> {
    let images = crate::order::ordered(listed.images.clone());
    let names: Vec<String> =
        crate::keep::expired(&images, listed.now).iter().map(|image| shown(&image.name).to_string()).collect();
    let due = images.iter().filter(|image| image.expires.is_some_and(|at| at <= listed.now)).count();
    let stays = match due - names.len() {
        0 => String::new(),
        more => {
            format!("\nkept past the date, as the last good ones: {}", units::count(more as u64, "image"))
        }
    };
    let text = || {
        let count = units::count(names.len() as u64, "image");
        format!("{} in {}: {count} would be removed:\n  {}{stays}", target.name, place(target), names.join("\n  "))
    };
    (!names.is_empty()).then(text)
}

fn table(target: &Target, listed: &Listed) -> String {
    let mut lines = vec![format!("{} in {}", target.name, place(target))];
    if !listed.images.is_empty() {
        lines.push(format!(
            "  {:<20} {:<19}  {:<19}  {:>9} {:>10}  {}",
            "IMAGE", "MADE", "EXPIRES", "ENTRIES", "SIZE", "STATUS"
        ));
    }
    let unknown = |number: Option<String>| number.unwrap_or_else(|| "-".into());
    for image in &listed.images {
        let expires = image.expires.map_or_else(|| "never".into(), |at| date(Some(at)));
        let (entries, size) = (unknown(image.files.map(|n| n.to_string())), unknown(image.bytes.map(units::bytes)));
        let (name, made, status) = (shown(&image.name), date(image.created), shown(&image.status));
        lines.push(format!("  {name:<20} {made:<19}  {expires:<19}  {entries:>9} {size:>10}  {status}"));
    }
    lines.extend(
        listed.unfinished.iter().map(|name| format!("  {}: interrupted; the next run continues it", shown(name))),
    );
    lines.extend(listed.removing.iter().map(|name| format!("  {}: removal in progress", shown(name))));
    let wrong = misdated(&listed.images);
    lines.extend(
        wrong.iter().map(|name| format!("  {}: its date is wrong, by comparison with its neighbours", shown(name))),
    );
    lines.extend(shared(listed));
    lines.push(match &listed.proved {
        Some(proof) => format!("  last trial restore: {}", proved(proof)),
        None if !listed.journal => "  last trial restore: only the owner of the vault can see it".into(),
        None => format!("  last trial restore: none yet; run homing snapshot verify {}", target.name),
    });
    lines.extend(overdue(target, listed).map(|what| format!("  {what}")));
    lines.push(format!("  free in the bank: {}\n", units::bytes(listed.free)));
    lines.join("\n")
}

/// Returns the size of the images as whole copies, their real size, and their growth, if homing has made all of them.
fn shared(listed: &Listed) -> Option<String> {
    let (space, newest) = (listed.space()?, listed.images.last()?.own_bytes?);
    let (whole, taken, newest) =
        (units::bytes(space.whole_bytes), units::bytes(space.taken_bytes), units::bytes(newest));
    let daily = space.added_bytes_per_day.map_or_else(String::new, |added| {
        format!(", and those of the last month {} a day", units::bytes(added as u64))
    });
    Some(format!("  {whole} of images in {taken}; the newest one added {newest}{daily}"))
}

fn proved(proof: &Proof) -> String {
    let files = units::count(proof.files, "file");
    let ended = match (&proof.manifest, proof.bad.len()) {
        (Some(_), _) => "its manifest is damaged".into(),
        (None, 0) => "all identical".into(),
        (None, bad) => format!("{bad} differ"),
    };
    let tree = proof.tree.as_ref().map_or_else(String::new, |tree| match tree.count {
        0 => format!(", {} as in the manifest", entries(tree.entries)),
        wrong => format!(", {wrong} differences in {}", entries(tree.entries)),
    });
    format!("{} of {} on {}, {ended}{tree}", files, shown(&proof.image), date(Some(proof.at)))
}

/// Returns a message if the newest good image is older than its window.
pub fn overdue(target: &Target, listed: &Listed) -> Option<String> {
    let window = target.section.window.as_ref()?;
    let newest = listed.newest_good().and_then(|image| image.created);
    let Some(made) = newest else { return Some("there is no good image".into()) };
    if made.duration_since(listed.now) > TOLERANCE {
        let now = date(Some(listed.now));
        return Some(format!(
            "the last good image is of {}, but the clock of its host shows {now}: its age is unknown",
            date(newest)
        ));
    }
    let due = expiry::moment(window, made, &TimeZone::system());
    let told = || format!("the last good image is of {}, which is older than {window}", date(newest));
    due.is_none_or(|due| due < listed.now).then(told)
}

/// The same for programs.
pub fn list_json(vaults: &[(Target, Listed)]) -> String {
    let row = |(target, listed): &(Target, Listed)| {
        let mut row = figures(target, listed);
        row["holds"] = json!(listed);
        row
    };
    document::line(json!({ "vaults": vaults.iter().map(row).collect::<Vec<_>>() }))
}

/// Returns the figures of a vault for monitoring.
pub fn figures(target: &Target, listed: &Listed) -> Value {
    let good = listed.newest_good();
    let age = |at: Timestamp| listed.now.duration_since(at).as_secs();
    json!({
        "vault": target.name,
        "bank": target.section.bank,
        "overdue": overdue(target, listed).is_some(),
        "last_good": good.map(|image| &image.name),
        "age_s": good.and_then(|image| image.created).map(age),
        "space": listed.space(),
    })
}

/// Prints a line for a difference.
pub fn change(out: &mut impl Write, change: &EntryChange, as_json: bool) -> io::Result<()> {
    if as_json {
        return out.write_all(document::line(change).as_bytes());
    }
    let what = match change.what {
        ChangeKind::New => "new    ",
        ChangeKind::Gone => "gone   ",
        ChangeKind::Changed => "changed",
        ChangeKind::Touched => "touched",
    };
    writeln!(out, "{what}  {}", change.path.display())
}

/// Describes a restore or its trial run.
pub fn restored(target: &Target, into: &HostFolder, restored: &Restored) -> String {
    let into = shown(&into.word().to_string_lossy());
    let done = if restored.trial { "would be written" } else { "written" };
    let (image, count) = (shown(&restored.image), entries(restored.written));
    let mut lines = vec![format!("{image} of {}: {count} {done} to {into}", target.name)];
    lines.extend(restored.names.iter().map(|name| format!("  {}", name.display())));
    if restored.left > 0 {
        let count = entries(restored.left);
        let how = "--overwrite replaces all but folders that are not empty";
        lines.push(format!("not replaced, because they differ from the image ({how}): {count}"));
        lines.extend(restored.obstacles.iter().map(obstacle));
    }
    if restored.beneath > 0 {
        let count = entries(restored.beneath);
        lines.push(format!("not restored, because a folder above them exists as another kind of file: {count}"));
    }
    if !restored.failed.is_empty() {
        lines.push("failed to restore:".into());
        lines.extend(restored.failed.iter().map(|why| format!("  {}", shown(why))));
    }
    lines.join("\n") + "\n"
}

fn obstacle(obstacle: &Obstacle) -> String {
    let path = obstacle.path.display();
    match &obstacle.there {
        Presence::InTheWay(kind) => {
            format!("  {path}: {} exists, the image has {}", kind.name(), obstacle.wanted.name())
        }
        Presence::Unknown(why) => format!("  {path}: cannot be examined: {}", shown(why)),
        _ => format!("  {path}"),
    }
}

/// Describes the result of a trial restore.
pub fn verified(target: &Target, proof: &Proof) -> String {
    let mut lines = vec![format!("{}: {}, {}", target.name, proved(proof), units::bytes(proof.bytes))];
    lines.extend(proof.manifest.iter().map(|why| format!("  the manifest: {why}; homing compared nothing else")));
    lines.extend(proof.bad.iter().map(|path| format!("  differs after the restore: {}", path.display())));
    if let Some(tree) = &proof.tree {
        lines.extend(tree.first.iter().map(|flaw| format!("  {} {}", flaw.path.display(), flaw.what)));
        if !tree.attributes {
            lines.push("  hard links and attributes were not compared: this image has no record of them".into());
        }
    }
    lines.join("\n") + "\n"
}

/// Names the images that are removed.
pub fn expired(target: &Target, names: &[String]) -> String {
    match names {
        [] => format!("{}: nothing has expired\n", target.name),
        names => format!("{}: expired and removed: {}\n", target.name, shown(&names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::section::Section;

    #[test]
    fn the_question_before_an_expiry_has_the_images_that_go_and_none_if_none_goes() {
        let section = Section { bank: "b:/bank".into(), ..Section::default() };
        let target = Target::all([("home".to_string(), section)].into()).map_err(|f| f.message).unwrap().remove(0);
        let of = |count: usize| {
            let image = |n: usize| Image {
                name: format!("image{n}"),
                created: format!("2026-01-0{n}T00:00:00Z").parse().ok(),
                expires: "2026-02-01T00:00:00Z".parse().ok(),
                status: "success".into(),
                has_tree: true,
                ..Image::default()
            };
            let (images, now) = ((1..=count).map(image).collect(), "2026-03-05T02:00:00Z".parse().unwrap());
            let none = Vec::new();
            let listed =
                Listed { images, unfinished: none.clone(), removing: none, proved: None, journal: true, free: 0, now };
            expirable(&target, &listed)
        };
        assert_eq!(of(3), None, "the last three good images stay");
        let text = of(5).unwrap();
        assert!(text.contains("2 images would be removed:\n  image1\n  image2"), "{text}");
        assert!(
            text.contains("kept past the date, as the last good ones: 3 images") && !text.contains("image3"),
            "{text}"
        );
    }

    #[test]
    fn an_image_of_the_future_does_not_keep_a_vault_from_being_overdue() {
        let section = Section { bank: "b:/bank".into(), window: Some("26 hours".into()), ..Section::default() };
        let target = Target::all([("home".to_string(), section)].into()).map_err(|f| f.message).unwrap().remove(0);
        let of = |made: &str| {
            let created = made.parse().ok();
            let image = Image { created, status: "success".into(), has_tree: true, ..Image::default() };
            let now = "2026-03-05T02:00:00Z".parse().unwrap();
            let (images, none) = (vec![image], Vec::new());
            overdue(
                &target,
                &Listed { images, unfinished: none.clone(), removing: none, proved: None, journal: true, free: 0, now },
            )
        };
        assert_eq!(of("2026-03-04T02:00:00Z"), None);
        assert!(of("2026-03-03T02:00:00Z").unwrap().contains("older than 26 hours"));
        assert!(of("2027-03-05T02:00:00Z").unwrap().contains("its age is unknown"));
    }
}
