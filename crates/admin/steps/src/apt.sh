# Debian's packages: what is to be had for them, and files of them that another host has fetched.
# A file that somebody else put where apt looks for its downloads would be installed without a look at its hash.
C=/var/lib/homing/cache
apt_get() { apt-get -q -y ${R-} -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold "$@" </dev/null; }
apt_why() { grep -m 3 '^[EW]:' | tr '\n' ' '; }
# apt_plan PACKAGE...: what would be done, in $plan, and what would have to go, in $gone.
apt_plan() {
  plan=$(apt_get -s install "$@" 2>&1) || return 1
  gone=$(echo "$plan" | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ')
}
# apt_files PACKAGE...: 'URI' NAME SIZE SHA256:HASH of all that is to be fetched, as the signed index has it.
apt_files() {
  n=$(mktemp -d) && mkdir "$n/partial" || die "cannot make a folder in ${TMPDIR:-/tmp}"
  uris=$(apt_get -o Acquire::ForceHash=SHA256 -o Dir::Cache::archives="$n/" --print-uris install "$@" 2>&1); s=$?
  rm -rf "$n"
  [ $s = 0 ] || die "apt-get does not list its files: $(echo "$uris" | apt_why)"
  echo "$uris" | grep "^'" || true
}
# apt_folder FOLDER: a new one, of root's alone.
apt_folder() { mkdir -p /var/lib/homing && mkdir -p -m 700 $C && chmod 700 $C && rm -rf "$1" && mkdir -m 700 "$1" || die "cannot make the folder $1"; }
apt_end() { rm -rf "$1"; rmdir $C && rmdir /var/lib/homing; true; } 2>/dev/null
# apt_took FOLDER: a tar on standard input.
apt_took() {
  apt_folder "$1"
  tar -C "$1" --no-same-owner -xf - || { apt_end "$1"; die "the packages did not arrive completely"; }
}
# apt_same FOLDER ALL PACKAGE...: what is a file of the index, byte by byte, goes to FOLDER/same, and apt sees nothing else.
# ALL: none may lack.
apt_same() {
  f=$1 all=$2; shift 2
  mkdir -p "$f/same/partial" && list=$(apt_files "$@") || exit 1
  echo "$list" | { while read -r _ name _ hash; do
    if [ -z "$name" ] || [ -f "$f/same/$name" ]; then :
    elif [ ! -f "$f/$name" ] || [ -L "$f/$name" ]; then [ -z "$all" ] || { apt_end "$f"; die "$name did not arrive; nothing was installed"; }
    elif [ "SHA256:$(sha256sum <"$f/$name" | cut -d' ' -f1)" = "$hash" ]; then mv "$f/$name" "$f/same/$name" || exit 1
    else apt_end "$f"; die "$name has another hash than the signed index; nothing was installed"; fi
  done; } || exit 1
}
