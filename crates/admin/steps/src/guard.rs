//! An undo that a host runs by itself, for steps that can cut the connection.

/// A request to a host to undo steps after a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Seconds after which a host undoes the steps.
    pub seconds: u64,
    /// Letters, digits and `-`, ending with a digit, that no other homing uses for a guard on these hosts. A token
    /// that begins with `net-` is of a network: a working connection does not prove that large packets pass.
    pub token: String,
}

/// The message of a host whose guard has acted.
const GONE: &str = "the host has undone the change by itself";

impl Guard {
    /// Keeps the steps of all guards of a host, except those of a network, which are undone. It runs over a
    /// connection that shows that the other steps are harmless.
    pub const CONFIRM: &str =
        "for g in /run/homing-up.net-*[0-9]; do ! mv $g $g.now 2>/dev/null || sh $g.now; done; rm -f /run/homing-up.*";
    /// Keeps all steps. It fails if no guard is left: the host has undone the steps meanwhile.
    pub const KEEP: &str = "rm /run/homing-up.*[0-9] && rm -f /run/homing-up.* /run/homing-net.*";
    /// Undoes the steps of all guards of a host now.
    pub const FIRE: &str =
        "for g in /run/homing-up.*[0-9]; do ! mv $g $g.now 2>/dev/null || sh $g.now; done; rm -f /run/homing-up.*";

    /// Gives the guards of a host more time, over a connection that shows that the steps cut nothing. It fails if no
    /// guard is left.
    pub fn extended(seconds: u64) -> String {
        format!(
            "for g in /run/homing-up.*[0-9]; do n=${{g}}0; mv $g $n 2>/dev/null || {{ echo '{GONE}' >&2; exit 1; }}; \
             echo \"sleep {seconds}; mv $n $n.now && sh $n.now; rm -f $n.now $n-timer\" >$n-timer; \
             if [ -d /run/systemd/system ]; then systemd-run --quiet --collect sh $n-timer; \
             else setsid sh $n-timer </dev/null >/dev/null 2>&1 & fi; done"
        )
    }
}
