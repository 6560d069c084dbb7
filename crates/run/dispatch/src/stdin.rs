//! Sends tasks their standard input: reads it from the run's copy, and sends it before the task.

use homing_launch::wire::{CHUNK, ToWorker};
use homing_model::Block;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Appends the frames of these blocks to `out`. On an error, `out` stays as it was.
pub(crate) fn feed(ticket: u64, blocks: &[Block], out: &mut Vec<u8>) -> io::Result<()> {
    let before = out.len();
    let fed = blocks.iter().try_for_each(|block| feed_block(ticket, block, out));
    fed.inspect_err(|_| out.truncate(before))
}

fn feed_block(ticket: u64, block: &Block, out: &mut Vec<u8>) -> io::Result<()> {
    let file = File::open(&block.path)?;
    let (mut at, end) = (block.offset, block.offset + block.length);
    while at < end {
        let mut bytes = vec![0; (end - at).min(CHUNK as u64) as usize];
        file.read_exact_at(&mut bytes, at)?;
        at += bytes.len() as u64;
        homing_launch::wire::encode(&ToWorker::Input { ticket, bytes }, out).map_err(io::Error::other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_travel_whole_and_in_order_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stdin");
        let text: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
        std::fs::write(&path, &text).unwrap();
        let block = |offset, length| Block { path: path.clone(), offset, length };
        let mut out = Vec::new();
        feed(7, &[block(0, 3), block(100, 300_000)], &mut out).unwrap();
        let (mut from, mut got) = (out.as_slice(), Vec::new());
        while let Some(message) = homing_launch::wire::receive::<ToWorker>(&mut from).unwrap() {
            let ToWorker::Input { ticket: 7, bytes } = message else { panic!("{message:?}") };
            got.extend(bytes);
        }
        assert!(got == [&text[..3], &text[100..300_100]].concat());
        let sent = out.clone();
        assert!(feed(8, &[block(0, 70_000), block(700_000, 200_000)], &mut out).is_err());
        assert!(out == sent);
    }
}
