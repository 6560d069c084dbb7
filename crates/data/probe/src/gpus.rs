//! Graphics processors of this host: their number, and how busy they are.

use std::ffi::OsString;
use std::path::Path;

/// The words of the command that prints how busy each NVIDIA device is, in percent.
pub const GPU_USE: [&str; 3] = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"];
/// The index under which that is in [`homing_model::HostFacts::indices`]: the mean of all devices, percent.
pub const GPU_INDEX: &str = "gpu_ut";

/// Returns how many graphics processors a process here may use: those that the environment makes visible, as in a job
/// of Slurm, or else the devices.
pub fn gpus() -> u32 {
    let visible = homing_model::resource::VISIBLE_DEVICES.iter().find_map(std::env::var_os);
    visible.map_or_else(|| devices(Path::new("/dev")), |list| visible_in(&list))
}

/// Counts the devices of NVIDIA (`nvidia0`), or else the render nodes that all drivers of the kernel make (AMD, Intel).
fn devices(dev: &Path) -> u32 {
    let count = |folder: &Path, prefix: &str| {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_one = |name: &OsString| {
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        names.filter(is_one).count() as u32
    };
    match count(dev, "nvidia") {
        0 => count(&dev.join("dri"), "renderD"),
        found => found,
    }
}

/// Counts the entries of a list such as `0,1` or `GPU-1234`. CUDA ignores all entries from an invalid one on, such as
/// -1. Slurm writes `NoDevFiles` for none.
fn visible_in(list: &OsString) -> u32 {
    let list = list.to_string_lossy();
    let is_valid = |entry: &&str| !entry.is_empty() && !entry.starts_with('-') && *entry != "NoDevFiles";
    list.split(',').map(str::trim).take_while(is_valid).count() as u32
}

/// Reads the output of [`GPU_USE`]. Returns the mean of all devices, percent.
pub fn gpu_use(printed: &str) -> Option<f64> {
    let each: Vec<f64> = printed.lines().filter_map(|line| line.trim().parse().ok()).collect();
    (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_counted_and_not_their_controls() {
        let dev = tempfile::tempdir().unwrap();
        let make = |name: &str| std::fs::write(dev.path().join(name), "").unwrap();
        assert_eq!(devices(dev.path()), 0);
        std::fs::create_dir(dev.path().join("dri")).unwrap();
        ["dri/card0", "dri/renderD128", "dri/renderD129", "dri/by-path", "nvidiactl", "nvidia-uvm"]
            .iter()
            .for_each(|name| make(name));
        assert_eq!(devices(dev.path()), 2, "of other makers");
        ["nvidia0", "nvidia1", "nvidia10", "nvidia-caps"].iter().for_each(|name| make(name));
        assert_eq!(devices(dev.path()), 3);
    }

    #[test]
    fn lists_of_the_environment_end_at_the_first_invalid_entry() {
        for (list, count) in [("0,1", 2), ("", 0), ("NoDevFiles", 0), ("GPU-8a, MIG-3", 2), ("1,-1,2", 1)] {
            assert_eq!(visible_in(&list.into()), count, "{list}");
        }
    }

    #[test]
    fn the_use_is_the_mean_of_all_devices() {
        assert_eq!(gpu_use("10\n 30\n"), Some(20.0));
        assert_eq!(gpu_use("[N/A]\n"), None);
    }
}
