//! Groups of users of this machine.

use std::sync::OnceLock;

/// Returns all groups that have members, with these, from `getent group` or else the group file. Users whose first
/// group it is are only in the table of users, and are not included.
pub fn groups() -> Vec<(String, Vec<String>)> {
    let of_file = || Some(String::from_utf8_lossy(&std::fs::read("/etc/group").ok()?).into_owned());
    parse(&crate::names::printed(crate::names::GETENT, &["group"]).or_else(of_file).unwrap_or_default())
}

/// Returns the groups of this process's user. They are queried once.
pub fn own_groups() -> Vec<String> {
    static KNOWN: OnceLock<Vec<String>> = OnceLock::new();
    let ask = || {
        let told = crate::names::printed("id", &["-Gnz"]).unwrap_or_default();
        told.split('\0').filter(|name| !name.is_empty()).map(String::from).collect()
    };
    KNOWN.get_or_init(ask).clone()
}

fn parse(text: &str) -> Vec<(String, Vec<String>)> {
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, _, members] = fields[..] else { return None };
        let members: Vec<String> = members.split(',').filter(|m| !m.is_empty()).map(String::from).collect();
        (!name.is_empty() && !members.is_empty()).then(|| (name.to_string(), members))
    };
    text.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn groups_without_members_and_broken_lines_are_left_out() {
        let text = "root:x:0:\nwheel:x:10:ann,bob\n:x:1:eve\nhalf:x\nlab:x:100:ann\n";
        let want = [("wheel", vec!["ann", "bob"]), ("lab", vec!["ann"])];
        let want = want.map(|(name, members)| (name.to_string(), members.into_iter().map(String::from).collect()));
        assert_eq!(super::parse(text), want);
    }
}
