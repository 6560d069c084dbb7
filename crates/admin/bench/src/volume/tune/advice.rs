//! Derives advice from a sweep.

use super::kept::Sweep;

/// A setting must be this much better than the default to be worth a change; less is noise.
pub const WORTH: f64 = 1.05;

/// Returns the result of the sweep and the recommended change.
pub fn advice(sweep: &Sweep) -> Vec<String> {
    let (Some(best), Some(gain)) = (sweep.best(), sweep.gain()) else { return Vec::new() };
    if gain < WORTH {
        let percent = (WORTH - 1.0) * 100.0;
        return vec![format!("the default is best: no other setting was more than {percent:.0} % faster")];
    }
    let mut lines = vec![format!("best: {} ({gain:.2} times the default)", best.setting.options(&sweep.export.base))];
    lines.extend(best.setting.block.map(|block| {
        let server = sweep.server();
        format!("on {server}, at each boot: rpc.nfsd 0; echo {block} > /proc/fs/nfsd/max_block_size; rpc.nfsd 8")
    }));
    lines
}
