//! clush's options, row by row. Options that name hosts and connections are in [`crate::cmd::targets`].

use crate::peer::Meaning::{Absent, Acts, Repeats};
use crate::peer::{Meaning, PeerOption};

const fn row(id: &'static str, names: &'static str, argument: &'static str, means: Meaning) -> PeerOption {
    PeerOption { id, names, argument, means }
}

const COPIES: &str = "homing push copies to hosts, homing pull fetches from them";

/// The options, in the order of the help.
pub const CLUSH: &[PeerOption] = &[
    row("gather", "-b --dshbak --gather", "", Acts("Gather equal output under one header")),
    row("gather_all", "-B", "", Acts("As -b, standard error included")),
    row("line_mode", "-L", "", Acts("Print lines in the order of hosts; with -b equal lines together")),
    row("diff", "--diff", "", Acts("Show the differences from the output of most hosts")),
    row("no_label", "-N", "", Acts("Print no headers and no host names")),
    row("regroup", "-r --regroup", "", Acts("Print groups in headers where they fit: @io,n9")),
    row("groupbase", "-G --groupbase", "", Acts("Print groups without the name of their source")),
    row("groupsource", "-s --groupsource", "SOURCE", Acts("Source of groups that name none")),
    row("groupsconf", "--groupsconf", "FILE", Acts("ClusterShell's file of groups")),
    row("pick", "--pick", "N", Acts("Use N of the hosts, chosen at random")),
    row("quiet", "-q --quiet", "", Acts("Report no failed commands, and print no counts in headers")),
    row(
        "verbose",
        "-v --verbose",
        "",
        Acts("Also print lines as they come with -b, -B, -L and --diff, and the hosts of --pick"),
    ),
    row("progress", "-P --progress", "", Acts("Show progress from the start; without a terminal as lines")),
    row("color", "--color", "WHEN", Acts("Colours: never, always or auto [default: auto, on a terminal]")),
    row("maxrc", "-S --maxrc", "", Acts("Exit with the largest status of the commands")),
    row("nostdin", "-n --nostdin", "", Acts("Do not pass on standard input")),
    row("outdir", "--outdir", "DIR", Acts("Write each host's standard output to DIR/HOST too")),
    row("errdir", "--errdir", "DIR", Acts("Write each host's standard error to DIR/HOST too")),
    row(
        "worker",
        "-R --worker",
        "ssh|exec",
        Acts("exec: the command runs here, once for each host; %h is the host, %n its number [default: ssh]"),
    ),
    row(
        "settings",
        "-O --option",
        "KEY=VALUE",
        Repeats("A setting of clush.conf, such as fanout=16, command_prefix='sudo -n' or node_count=no"),
    ),
    row(
        "mode",
        "-m --mode",
        "MODE",
        Absent("-O command_prefix='sudo -S -p \"\"' -O password_prompt=yes is clush's mode sudo"),
    ),
    row("conf", "--conf", "FILE", Absent("homing reads no clush.conf; -O KEY=VALUE, or an alias of the shell")),
    row("debug", "-d --debug", "", Absent("-v, or --dry-run for the hosts and the command")),
    row("engine", "-E --engine", "ENGINE", Absent("homing has one engine; leave the option out")),
    row("topology", "--topology", "FILE", Absent("--tree N goes through other hosts, without a file")),
    row("remote", "--remote", "yes|no", Absent("-R exec runs the command here, once for each host")),
    row("grooming", "--grooming", "SECONDS", Absent("homing has no such delay; -f N limits the hosts at work")),
    row("copy", "-c --copy", "", Absent(COPIES)),
    row("rcopy", "--rcopy", "", Absent(COPIES)),
    row("dest_path", "--dest", "PATH", Absent(COPIES)),
    row("preserve", "-p", "", Absent("homing push and pull keep modes and times always")),
];
