//! Functions of POSIX shell for scripts that homing runs beside files of other users. Each is a macro, so that a
//! constant script can contain it by `concat!`. They have no single quotes, backslashes or exclamation marks: a
//! script may be one quoted word of any login shell.

/// `own FOLDER`: whether it is a folder of this user, not a link, and no other user may write into it.
#[macro_export]
macro_rules! sh_own {
    () => {
        "own() { [ -L \"$1\" ] && return 1; [ -d \"$1\" ] && [ -O \"$1\" ] || return 1; \
         case $(ls -ldn \"$1\" 2>/dev/null) in d????-??-*) return 0;; esac; return 1; }; "
    };
}

/// `fresh FOLDER`: makes a folder in it with a random name, for this user alone, and enters it; `$d` is its name.
/// Files made in the current folder are then safe even if others rename that folder and put a link in its place.
/// `stale` leaves and removes it.
#[macro_export]
macro_rules! sh_fresh {
    () => {
        "fresh() { cd -P -- \"$1\" && d=$(mktemp -d ./.homing-XXXXXXXXXX) && cd -P -- \"$d\" && \
         case $(pwd -P) in */\"${d#./}\") ;; *) echo \"$1 has been changed by others meanwhile\" >&2; false;; esac; }; \
         stale() { cd -P .. && rm -rf -- \"$d\"; }; "
    };
}

/// `digits WORD`: whether it consists of decimal digits alone, so that no shell evaluates it.
#[macro_export]
macro_rules! sh_digits {
    () => {
        "digits() { expr \"x$1\" : \"x[0-9][0-9]*$\" > /dev/null; }; "
    };
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Runs a script by `/bin/sh`, then by bash in POSIX mode, in a folder of its own. Both must succeed.
    fn all(script: &str) {
        for shell in [&["/bin/sh"][..], &["bash", "--posix"]] {
            let folder = std::env::temp_dir().join(format!("homing-shell-{}-{:p}", std::process::id(), script));
            std::fs::create_dir(&folder).unwrap();
            let ran = Command::new(shell[0]).args(&shell[1..]).args(["-c", script]).current_dir(&folder).output();
            std::fs::remove_dir_all(&folder).unwrap();
            let ran = ran.unwrap();
            assert!(ran.status.success(), "{shell:?} {script}: {ran:?}");
        }
    }

    #[test]
    fn a_folder_of_ones_own_is_no_link_and_open_to_nobody_else() {
        let own = |rest: &str| all(&[crate::sh_own!(), rest].concat());
        own("mkdir -m 755 a && own a && ln -s a b && ! own b && ! own none && touch f && ! own f");
        own("mkdir a && chmod 775 a && ! own a && chmod 757 a && ! own a && chmod 711 a && own a");
        own("[ \"$(id -u)\" != 0 ] || { mkdir a && chown 61184 a && ! own a; }");
    }

    #[test]
    fn a_fresh_folder_is_left_empty_of_traces_and_a_swapped_one_is_refused() {
        let fresh = |rest: &str| all(&[crate::sh_fresh!(), rest].concat());
        fresh("mkdir 'a b' && fresh 'a b' && echo x > f && [ -e \"../$d/f\" ] && stale && [ \"$(ls -A)\" = '' ]");
        fresh("! fresh none 2>/dev/null");
        // Other users put a link in the place of the folder as soon as it is made.
        fresh(
            "mkdir etc; mktemp() { m=$(command mktemp \"$@\"); mv \"$m\" gone; ln -s etc \"$m\"; echo \"$m\"; }; \
               ! fresh . 2>/dev/null",
        );
    }

    #[test]
    fn digits_are_nothing_that_a_shell_evaluates() {
        let digits = |rest: &str| all(&[crate::sh_digits!(), rest].concat());
        digits("digits 0 && digits 42 && ! digits '' && ! digits -1 && ! digits 1x && ! digits 'a[$(id>pwned)]'");
    }
}
