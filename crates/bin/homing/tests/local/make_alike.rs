//! Compares `homing make` with make, on small makefiles of the kinds in GNU make's own suite. `tests/night/gnu-make`
//! runs that suite as a whole. Output, errors, status and files must be equal.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The files in the folder of each case: programs that cannot be started for several reasons, and a shell of no known
/// kind.
const FILES: [(&str, u32, &str); 7] = [
    ("shell", 0o755, "#!/bin/sh\nprintf '<%s>' \"$@\"\necho\ncase $* in *false*) exit 3;; esac\n"),
    ("script", 0o755, "#!/bin/sh\necho \"$0 $#: $*\"\n"),
    ("plain-text", 0o755, "echo \"$0 $#: $*\"\n"),
    ("not-executable", 0o644, "#!/bin/sh\necho no\n"),
    ("no-interpreter", 0o755, "#!/nonexistent/interpreter\n"),
    ("a.c", 0o644, "int a;\n"),
    (
        "sub/Makefile",
        0o644,
        "all: ; @echo \"sub $(MAKELEVEL) $(X)\" '$(MAKEFLAGS)' $$(env | grep -c -e HOMING -e LD_PRELOAD)\nbad: ; exit 5\n",
    ),
];

/// Calls of make, a line each, and the makefile.
const CASES: &[(&str, &str)] = &[
    // Shells.
    ("\n-k", "SHELL = ./shell\nall: a b\na: ; touch $@; false\nb: ; touch 'x y'\n"),
    ("", "all: ; @echo sh\nall: own\nown: SHELL := ./shell\nown: ; @echo 'own' \"$(SHELL)\"\n"),
    ("\n-i", ".POSIX:\nall:\n\t@cd nowhere; rm -f a.c\n\techo not reached\n"),
    ("", ".SHELLFLAGS += -e\nall: ; @echo hi\n"),
    ("\n-s", ".SHELLFLAGS = -ec\nall: ; false; echo not reached\n"),
    ("", "SHELL = /bin/sh\n.SHELLFLAGS = -e -u -c\nall:\n\t@echo $$nothing\n"),
    ("", "SHELL = $(warning $@)/bin/sh\nall: ; @echo one\n"),
    ("", "SHELL = /nonexistent/sh\nall: ; echo one\n"),
    (
        "",
        "A := $(shell exit 3)\nB != echo two\nall: ; @echo '$(.SHELLSTATUS) $(B) $(shell echo three >&2; echo four)'\n",
    ),
    // All lines of a recipe at once.
    ("\n-n\n-s", ".ONESHELL:\nall:\n\tx=1\n\techo $$x\n"),
    ("", ".ONESHELL:\nall:\n\t@cat <<X\n\tit's\n\tX\n\t-false\n\t@echo end\n"),
    (
        "\n-n\n-t\n-k",
        ".ONESHELL:\n.SHELLFLAGS = -ec\nall: one two three\none:\n\t-@false\n\techo no\ntwo:\n\t+@echo $@\n\techo more\nthree:\n\t@-echo $@; exit 4\n",
    ),
    ("", ".ONESHELL:\nSHELL = ./shell\nall:\n\tone $@\n\t\n\ttwo\n"),
    // Flags, as makefiles and recipes see them.
    (
        "\n-k\n-s\n-n\n-t\n-e X=1\n-rR\n--no-print-directory\n--eval=Y=2",
        "ifneq (,$(findstring t,$(firstword -$(MAKEFLAGS))))\n$(info touch)\nendif\nall: ; @echo '$(MAKEFLAGS)' \"$$MAKEFLAGS\" '$(MFLAGS)' '$(MAKEOVERRIDES)' '$(MAKE)'\n",
    ),
    ("\nX=1", "all: ; $(MAKE) $(MAKEFLAGS) sub\nsub: ; @echo $@\n"),
    ("", "MAKEFLAGS += -k --no-builtin-rules\nall: a b\na: ; false\nb: ; echo '$(MAKEFLAGS)'\n"),
    ("", "GNUMAKEFLAGS = -s\nexport GNUMAKEFLAGS\nall: ; $(MAKE) -f Makefile in\nin: ; echo in\n"),
    ("\n-s\n-w\n-n", "all: ; $(MAKE) -C sub X=3\n"),
    ("\n-k\n-k -j2", "all: a b\na: ; cd sub && $(MAKE) bad\nb: ; +@cd sub; $(MAKE) --no-print-directory\n"),
    ("", "M = $(MAKE)\nall: ; @for i in 1 2; do env X=$$i $(M) -s -C sub; done\n"),
    // Question mode and dry runs.
    (
        "-q\n-q five\n-q six\n-q seven\n-n five seven",
        "E =\nfive: ; \\\n $(E)\nsix: ; \\\n $(E) $(E)\nseven: ; \\\n : $(E)\na.c: ;\n",
    ),
    ("-n\n-t\n-q\n--trace\n-B\n-W a.c\n-o b\n--trace -n", "c: b ; cp b c\nb: a.c ; @cp a.c b\n"),
    ("-n\n-t\n-q\n", "all: ; @+echo plus $@\n\techo minus\n"),
    ("-k\n-i\n-S\n-s\n-k -j3", "all: a b c\na: ; @exit 2\nb: ; -exit 3\nc: b ; @echo $@\n"),
    ("-O\n-Oline\n-Orecurse\n-Otarget -k", "all:\n\t@echo one\n\t@echo two >&2\n\t@exit 6\n"),
    ("-C sub\n-w -C sub X=2\n-f sub/Makefile\n--dir sub --silent\n-C nowhere\n--nosuch\nnosuch", "all: ; pwd\n"),
    // Programs that make starts without a shell, and programs that cannot be started.
    ("", "all:\n\t./script a 'b c' \"d\" e\\ f\n\t@touch 'x y' \"p$$q\"\n\t./plain-text 1 2\n"),
    (
        "-k",
        "all: a b c d e f g h\na: ; nosuch x\nb: ; ./nosuch x\nc: ; ./not-executable\nd: ; ./no-interpreter x\ne: ; / x\nf: ; ./sub\ng: ; nosuch x; true\nh: ; -nosuch\n",
    ),
    ("-i", "PATH = /nonexistent\nexport PATH\nall:\n\ttouch a\n\t/bin/touch b\n\techo $$PATH\n"),
    ("", "export PATH := .:$(PATH)\nall:\n\tscript found\n\tcd sub && ../script\n"),
    ("", "all: ; @kill -9 $$$$\n"),
    ("-k", "all: a b\na: ; @kill -TERM $$$$\nb: ; @exit 300\n"),
    // The environment.
    (
        "\n-j2",
        "A := $(shell env | grep -c -e HOMING -e LD_PRELOAD)\nexport B = it's \"b\"\nall: ; @echo '$(A)' \"$$B\" $$MAKELEVEL; env | grep -e HOMING -e LD_PRELOAD; $(MAKE) -s -C sub; env | grep -e HOMING -e LD_PRELOAD; :\n\t@+env | grep -e HOMING -e LD_PRELOAD; :\n",
    ),
    ("", "$(info $(LD_PRELOAD) $(HOMING_MAKE) $(origin LD_PRELOAD) $(filter HOMING%,$(.VARIABLES)))\nall: ; @:\n"),
    (
        "",
        "unexport HOME\n.EXPORT_ALL_VARIABLES:\nx.y = 1\nZ = z$(notdir $@)\nall: ; @echo \"$$HOME $$Z\"; $(MAKE) -s -C sub\n",
    ),
    ("", "n := $(shell printf '%0100000d' 7)\nexport n\nexport m = $(n)\nall: ; @echo $${#n} $${#m}; true $(n)$(n)\n"),
    (
        "",
        "P := $(foreach i,$(shell seq 1000 1299),q$i$(shell printf '%0440d' 0))\n.PHONY: all $(P)\nall: $(P) ; @echo ok\n$(P): ;\n",
    ),
    // The order of make's work.
    (
        "\n-n",
        "include made.mk\nall: ; @echo $(V) $(MAKE_RESTARTS)\nmade.mk: ; @echo V = made > $@; env | grep -c -e HOMING -e LD_PRELOAD >> seen; :\n",
    ),
    ("\n-j4", "all: a b\n.PHONY: all\na b &: ; touch a b; echo $@\nd:: ; @echo d1\nd:: ; @echo d2\nall: d\n"),
    ("", ".DELETE_ON_ERROR:\nall: ; @echo half > $@; exit 1\n"),
    ("", ".RECIPEPREFIX = >\nall:\n> @echo 'prefix'; \\\n>   echo \"next  line\"\n"),
    ("", "define two\n@echo $(1)\n-@false $(1)\n@echo '  $(1)  # no comment'\nendef\nall: ; $(call two,$@)\n"),
    ("", ".SECONDEXPANSION:\nall: $$(patsubst %,%.x,a b) | c\n\t@echo '$^ $| $? $<'\n%.x c: ; @echo $@ > '$@'\n"),
    ("-s", "all: x\\ y it's $$d \\#e\nx\\ y it's $$d \\#e: ; echo '$(subst ','\\'',$@)'\n"),
    ("-f -\n", "all: ; @cat\n"),
    (
        "",
        "all: a b\n.NOTPARALLEL:\na b: ; @echo $@\n.IGNORE: c\nall: c\nc: ; @false\n.SILENT: d\nall: d\nd: ; echo d\n",
    ),
    ("-j2\n-j\n-j1 -O", "all: ; +@echo $$MAKEFLAGS | grep -c jobserver; $(MAKE) -s -C sub\n"),
    ("-j3", "all: a b\na b: ; @./script $@ > $@.out; cat $@.out > $@\nall: ; @cat a b\n"),
];

fn lay_out(at: &Path, makefile: &str) {
    std::fs::create_dir_all(at.join("sub")).unwrap();
    for (name, mode, text) in FILES.into_iter().chain([("Makefile", 0o644, makefile)]) {
        std::fs::write(at.join(name), text).unwrap();
        std::fs::set_permissions(at.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Collects the files below a folder, with their content.
fn tree(at: &Path, below: &str, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(at.join(below)).unwrap().flatten() {
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        match entry.file_type().unwrap().is_dir() {
            true => tree(at, &format!("{name}/"), all),
            false => {
                drop(all.insert(name.clone(), String::from_utf8_lossy(&std::fs::read(at.join(name)).unwrap()).into()))
            }
        }
    }
}

/// Returns all results of a call as text. Lines of recipes that run at once come in any order.
fn left(mut command: Command, at: &Path, makefile: &str, call: &str) -> String {
    let _ = std::fs::remove_dir_all(at);
    lay_out(at, makefile);
    command.args(call.split_ascii_whitespace()).current_dir(at).stdin(Stdio::null());
    for name in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GNUMAKEFLAGS", "MAKE_RESTARTS", "LD_PRELOAD"] {
        command.env_remove(name);
    }
    let output = command.env("LC_ALL", "C").env("HOMING_RUNS", at.with_file_name("runs")).output().unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut lines: Vec<&str> = text.lines().collect();
        if call.contains("-j") {
            lines.sort_unstable();
        }
        lines.join("\n")
    };
    let (mut all, mut left) = (BTreeMap::new(), String::new());
    tree(at, "", &mut all);
    let _ = write!(left, "{:?}\n{}\n{}\n{all:#?}", output.status, text(&output.stdout), text(&output.stderr));
    left
}

#[test]
fn makefiles_do_what_they_do_with_make_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("build");
    let mut wrong = String::new();
    for (calls, makefile) in CASES {
        for call in calls.split('\n') {
            let plain = left(Command::new("make"), &at, makefile, call);
            let mut homing = Command::new(env!("CARGO_BIN_EXE_homing"));
            homing.args(["make", "--assume-shared", "--hosts", "localhost", "--no-evidence"]);
            let ours = left(homing, &at, makefile, call);
            if plain != ours {
                let _ = write!(wrong, "=== make {call}\n{makefile}--- make\n{plain}\n--- homing make\n{ours}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Checks a program that does not load the library, or is no make. It builds as usual; here `true` has nothing to
/// build.
#[test]
fn a_make_that_cannot_be_served_builds_alone_and_homing_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut homing = Command::new(env!("CARGO_BIN_EXE_homing"));
    homing.args(["make", "--program", "true", "--hosts", "host.invalid"]).current_dir(dir.path());
    let output = homing.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(err.contains("true does not load homing's library") && err.contains("all recipes run here"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn makes_own_options_and_its_help_are_makes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("Makefile"), "all prog: ; @echo $@\n").unwrap();
    let run = |words: &[&str]| {
        let mut homing = Command::new(env!("CARGO_BIN_EXE_homing"));
        homing.args(["make"]).args(words).current_dir(dir.path()).env("HOMING_RUNS", dir.path().join("runs"));
        homing.args(["--assume-shared", "--hosts", "localhost", "--no-evidence"]);
        // Below another make, as in `make test`, it would print that it enters and leaves the folder.
        for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            homing.env_remove(name);
        }
        let output = homing.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    std::fs::write(dir.path().join("prog"), "keep").unwrap();
    assert!(run(&["-B", "--trace", "prog"]).ends_with("prog\n"));
    assert_eq!(std::fs::read_to_string(dir.path().join("prog")).unwrap(), "keep");
    for help in ["-h", "--help", "--hel"] {
        assert!(run(&[help]).contains("--print-data-base"), "{help}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_homing")).args(["help", "make"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("--trace-file <FILE>"));
}
