//! A restore onto a tree that differs in kind.

use super::ground::Ground;
use super::planted::{self, PlantedKind};
use crate::random::Random;
use std::{fs, io};

/// Names in the tree.
const NAMES: u64 = 24;

/// Restores onto files of other kinds. Existing files stay, the rest comes back, and homing names each file that it
/// left.
pub fn play(ground: &Ground, random: &mut Random) -> io::Result<()> {
    let (src, back, victims) = (ground.at("src"), ground.at("back"), ground.at("victims"));
    planted::make_victims(&victims)?;
    fs::create_dir(&back)?;
    let mut pairs = Vec::new();
    for number in 0..NAMES {
        let name = format!("{}{number}", random.of(&["n", "-n", "n+", "$(touch pwned)", "new\nline"]));
        let kind = random.of(&PlantedKind::ALL);
        kind.make(&src.join(&name), "from the image", &victims)?;
        let there = random.percent(75).then(|| random.of(&PlantedKind::ALL));
        if let Some(there) = there {
            there.make(&back.join(&name), "precious", &victims)?;
        }
        pairs.push((name, kind, there));
    }
    let within = |name: &str| back.join(name).join("within");
    let before: Vec<_> =
        pairs.iter().map(|(name, ..)| (planted::look(&back.join(name)), planted::look(&within(name)))).collect();
    let image = ground.image()?;
    ground.must(image.status == 0, || format!("the image: {}", image.text));
    let into = back.display().to_string();
    let answer = ground.homing(&["snapshot", "restore", "src", "--into", &into])?;
    ground.must([0, 1].contains(&answer.status), || format!("restore ended with {}: {}", answer.status, answer.text));

    for ((name, kind, there), (look, look_within)) in pairs.iter().zip(before) {
        let after = planted::look(&back.join(name));
        let pair = format!("{name:?}, {kind:?} in the image, {there:?} there");
        if there.is_some() {
            ground.must(after == look, || format!("{pair}: {look:?} became {after:?}"));
            let kept = look_within.is_none() || planted::look(&within(name)) == look_within;
            ground.must(kept, || format!("{pair}: the content of the folder changed"));
        } else {
            let wanted = planted::look(&src.join(name));
            let same = after.as_deref().map(planted::sort) == wanted.as_deref().map(planted::sort);
            ground.must(same, || format!("{pair}: the restore gave {after:?} instead of {wanted:?}"));
        }
        let folders = [PlantedKind::Folder, PlantedKind::Empty];
        let is_folder = |kind: &PlantedKind| folders.contains(kind);
        let goes_in = *kind == PlantedKind::Folder && there.as_ref().is_none_or(is_folder);
        ground
            .must(!goes_in || within(name).exists(), || format!("{pair}: the content of the folder was not restored"));
        let other = there.is_some_and(|there| there != *kind && !(is_folder(&there) && is_folder(kind)));
        // A name with a line break is printed with an escape.
        let printed = name.split('\n').next_back().unwrap_or(name);
        ground.must(!other || answer.text.contains(printed), || {
            format!("{pair}: the output does not name it: {}", answer.text)
        });
        ground.must(!other || answer.status == 1, || {
            format!("{pair}: not replaced, but the status is {}", answer.status)
        });
    }
    planted::harm(&victims).into_iter().for_each(|harm| ground.violated(harm));
    ground.must(!ground.at("home/pwned").exists(), || "a name was run by a shell".into());
    Ok(())
}
