# Sourced by tests/run and tests/lab: steps with a log each, and the last lines of a run.

# begin NAME   Logs go to the folder of that name where cargo builds; those of the last run are removed.
begin() {
  target=$(tests/target) && [ -n "$target" ] || exit
  logs=$target/$1
  rm -rf "$logs" && mkdir -p "$logs" || exit
  export HOMING_LEFT_OUT="$logs/left-out"
  : >"$HOMING_LEFT_OUT"
}

# step NAME COMMAND...   Runs a command, prints its output and keeps it in NAME.log; NAME.failed names a command that failed.
step() {
  name=$1 began=$(date +%s) what=passed
  shift
  { "$@" </dev/null 2>&1 || echo "$*" >"$logs/$name.failed"; } | tee "$logs/$name.log"
  [ ! -e "$logs/$name.failed" ] || what=FAILED
  echo "$name: $what, $(($(date +%s) - began)) s"
}

# Prints a line for each failed test of a log of cargo: the test, a TAB, the command that repeats it. Where a program
# ended before it could name one, the line is the program's.
failed_tests() {
  awk '
    / Running / || / Doc-tests / {
      program = $0
      sub(/.*\//, "", program); sub(/\).*/, "", program); sub(/-[0-9a-f]*$/, "", program)
      which = "--test " program
      if (/ Doc-tests /) program = $NF
      crate = program; gsub(/_/, "-", crate)
      if (/unittests src\/lib/) which = "-p " crate " --lib"
      else if (/unittests src\/main/) which = "-p " crate " --bin " crate
      else if (/ Doc-tests /) which = "-p " crate " --doc"
    }
    # The list is the last of two sections with this title.
    /^failures:$/ { delete listed; listing = 1 }
    listing && /^    [A-Za-z0-9_:]+$/ { listed[$1] }
    /^test result:/ {
      for (test in listed) { print test "\tcargo test " which " -- --include-ignored --exact " test; named[which] }
      delete listed; listing = 0
    }
    /^    `-p .*`$/ { target = $0; gsub(/^ *`|`$/, "", target); targets[target] }
    END {
      for (target in targets) {
        short = target
        if (short ~ /--test /) sub(/^-p [^ ]* /, "", short)
        if (!(short in named)) print target "\tcargo test " target
      }
    }
  ' "$1" | sort
}

# Prints the tests that were left out, then those that failed. Ends the script, with status 1 where any failed.
report() {
  count=$(sort -u "$HOMING_LEFT_OUT" | wc -l)
  if [ "$count" != 0 ]; then
    echo "$count tests were left out on this machine:"
    sort -u "$HOMING_LEFT_OUT" | awk '{ print "  " NR ". " $0 }'
  fi
  for failed in "$logs"/*.failed; do
    [ -e "$failed" ] || { echo "all steps passed"; exit 0; }
    log=${failed%.failed}.log
    found=$(failed_tests "$log")
    [ -n "$found" ] || found="$(basename "${failed%.failed}")	$(cat "$failed")"
    printf '%s\n' "$found" | while IFS='	' read -r test repeat; do
      echo "FAILED $test, log: $log, repeat: $repeat"
    done
  done
  exit 1
}
