//! Lustre: sets how the files of a directory are striped. Making a Lustre file system needs kernel modules and
//! formatted targets, and is left to its own tools.

use crate::step::{CommandStep, VolumePlan, words};

/// Sets the layout of new files below `path`: `count` objects (-1: as many as
/// there are targets), `size` bytes each in turn.
pub fn set_stripe(host: &str, path: &str, count: Option<i32>, size: Option<u64>) -> VolumePlan {
    let mut argv = words(&["lfs", "setstripe"]);
    if let Some(count) = count {
        argv.extend(words(&["-c", &count.to_string()]));
    }
    if let Some(size) = size {
        argv.extend(words(&["-S", &size.to_string()]));
    }
    argv.extend(words(&["--", path]));
    let mut plan = VolumePlan::default();
    plan.phase("set the stripes", vec![CommandStep::new(host, argv, format!("stripe new files below {path}"))]);
    plan.notes.push("files that exist keep their layout; lfs migrate moves them".into());
    plan
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_for_lfs() {
        let plan = super::set_stripe("n1", "/lustre/fast", Some(2), Some(1 << 20));
        let line = crate::shown(&plan.phases[0].steps[0].argv);
        assert_eq!(line, "lfs setstripe -c 2 -S 1048576 -- /lustre/fast");
    }
}
