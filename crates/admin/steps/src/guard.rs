//! A way back that needs nobody: for what can cut the connection.

/// What a host is told with steps that it is to take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Seconds after which a host takes the steps back.
    pub seconds: u64,
    /// Letters, digits and `-`, a digit last, that no other homing uses for a guard on these hosts. One that begins with
    /// `net-` is of a network: a connection is no proof that its large packets pass.
    pub token: String,
}

/// What a host says whose guard has acted.
const GONE: &str = "the host has taken it back by itself";

impl Guard {
    /// Keeps the steps of all guards of a host, but takes those of a network back: to be run there over a connection that
    /// shows that the others are well.
    pub const CONFIRM: &str =
        "for g in /run/homing-up.net-*[0-9]; do ! mv $g $g.now 2>/dev/null || sh $g.now; done; rm -f /run/homing-up.*";
    /// The same, and fails where no guard is left: the host has taken the steps back meanwhile.
    pub const KEEP: &str = "rm /run/homing-up.*[0-9] && rm -f /run/homing-up.* /run/homing-net.*";
    /// Takes the steps of all guards of a host back now.
    pub const FIRE: &str =
        "for g in /run/homing-up.*[0-9]; do ! mv $g $g.now 2>/dev/null || sh $g.now; done; rm -f /run/homing-up.*";

    /// Gives the guards of a host more time, over a connection that shows that the steps cut nothing. It fails where none
    /// is left.
    pub fn extended(seconds: u64) -> String {
        format!(
            "for g in /run/homing-up.*[0-9]; do n=${{g}}0; mv $g $n 2>/dev/null || {{ echo '{GONE}' >&2; exit 1; }}; \
             echo \"sleep {seconds}; mv $n $n.now && sh $n.now; rm -f $n.now $n-timer\" >$n-timer; \
             if [ -d /run/systemd/system ]; then systemd-run --quiet --collect sh $n-timer; \
             else setsid sh $n-timer </dev/null >/dev/null 2>&1 & fi; done"
        )
    }
}
