//! A bank on a file system with few inodes.

use super::ground::Ground;
use crate::random::Random;
use std::process::Command;
use std::{fs, io};

/// Inodes of the bank.
const INODES: &str = "256";
/// Small files, more than the bank has inodes.
const MANY: u64 = 400;

/// Fills the bank: an image is refused with the reason. Makes room again: the next image is whole, and so is the first.
pub fn play(ground: &Ground, random: &mut Random) -> io::Result<()> {
    Ground::unshare()?;
    let (disk, bank) = (ground.at("disk"), ground.at("bank"));
    fs::File::create(&disk)?.set_len(16 << 20)?;
    let made = Command::new("mkfs.ext4").args(["-q", "-F", "-N", INODES]).arg(&disk).status()?;
    let mounted = Command::new("mount").args(["-o", "loop"]).args([&disk, &bank]).status()?;
    if !made.success() || !mounted.success() {
        return Err(io::Error::other("a bank with few inodes needs mkfs.ext4 and a loop device"));
    }
    ground.mounts.borrow_mut().push(bank);
    fs::write(ground.at("src/f"), "first")?;
    let first = ground.image()?;
    ground.must(first.status == 0, || format!("the first image: {}", first.text));
    let names = ground.images()?;

    // Either the source is too large, or another user has the bank's inodes.
    let crowded = random.percent(50);
    let folder = if crowded { ground.at("bank/others") } else { ground.at("src/many") };
    fs::create_dir(&folder)?;
    let small = (0..MANY).take_while(|n| fs::write(folder.join(n.to_string()), "small").is_ok()).count();
    fs::write(ground.at("src/f"), "second")?;
    for _ in 0..random.within(1, 3) {
        let refused = ground.image()?;
        let named = refused.text.contains("inodes are free");
        ground.must(refused.status == 254 && named, || {
            format!("{small} small files, full bank: {}: {}", refused.status, refused.text)
        });
    }
    fs::remove_dir_all(&folder)?;
    let second = ground.image()?;
    ground.must(second.status == 0, || format!("with room again: {}: {}", second.status, second.text));
    let all = ground.images()?;
    ground.must(all.starts_with(&names) && all.len() == names.len() + 1, || format!("images {all:?} after {names:?}"));
    for (name, content) in all.iter().zip(["first", "second"]) {
        let text = fs::read_to_string(ground.at("bank/src").join(name).join("tree/f")).unwrap_or_default();
        ground.must(text == content, || format!("image {name} has {text:?}, not {content:?}"));
    }
    ground.fine(&["snapshot", "verify", "src"]).map(drop)
}
