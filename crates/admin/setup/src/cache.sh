# Packages from another host's download: what is wanted here, the fetching of it, and the installing of what came.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
umask 022
die() { echo "$*" >&2; exit 1; }
ready() {
  [ "$(id -u)" = 0 ] || die "this needs root there, and you are $(id -un): use --sudo, or HOMING_SSH='ssh -l root'"
  command -v apt-get >/dev/null || die "apt-get is missing: only hosts with apt can share packages"
  # Root alone may open it, or anybody could hold the lock.
  (umask 077; : >>/run/homing-cache); exec 9>>/run/homing-cache; flock -w 300 9 || die "another homing cache has been running there for 5 minutes"
}
# planned MODE PACKAGE...: what is to be done for them. Where the indexes do not have one: ask: says so, for another to fetch
# them; anew: fetches them; keep: that is all.
planned() {
  mode=$1; shift
  ! apt_plan "$@" || return 0
  [ "$mode" != ask ] || { echo stale; exit 0; }
  [ "$mode" != anew ] || { apt_get update >/dev/null 2>&1; ! apt_plan "$@" || return 0; }
  die "apt cannot install it: $(echo "$plan" | apt_why)"
}
# stays: nothing may have to go.
stays() { [ -z "$gone" ] || die "it would remove $gone; nothing was installed"; }
# wanted MODE PACKAGE...: files that are to be had for them.
wanted() { planned "$@"; stays; shift; apt_files "$@"; }
# needed MODE PACKAGE...: those of a step of packages, which looks itself at what has to go.
needed() { R=--no-install-recommends; planned "$@"; shift; apt_files "$@"; }
# way [PACKAGE...]: `way` if their files are at hand, or a mirror gives its index within seconds; else `none` and why. Without
# packages a mirror is needed. All mirrors are tried at the same time. The index is that of apt's own list, by apt's own proxy.
way() {
  R=--no-install-recommends
  [ $# = 0 ] || ! uris=$(apt_get --print-uris install "$@" 2>/dev/null) || echo "$uris" | grep "^'" | grep -qv "^'\(file\|copy\|cdrom\):" || { echo way; return 0; }
  indexes=$(apt_get --print-uris update 2>/dev/null)
  # A folder or a disc of this host is a source, too.
  ! echo "$indexes" | grep -q "^'\(file\|copy\|cdrom\):" || { echo way; return 0; }
  w=$(mktemp -d) || die "cannot make a folder in ${TMPDIR:-/tmp}"
  echo "$indexes" | sed -n "s/^'\([a-z+]*:\/\/[^/]*\)\([^']*InRelease\)'.*/\1 \1\2/p" | sort -u -k1,1 | head -n 4 >"$w/mirrors"
  tried
}
# reach URI...: as way, for these indexes of other hosts' mirrors.
reach() {
  w=$(mktemp -d) || die "cannot make a folder in ${TMPDIR:-/tmp}"
  for uri; do echo "$(echo "$uri" | cut -d/ -f1-3) $uri"; done >"$w/mirrors"
  tried
}
# tried: one of the mirrors in $w/mirrors gives its index; else the reason of each, and the indexes, for another to try.
tried() {
  while read -r mirror uri; do
    { out=$(timeout 10 /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=0 -o Acquire::http::Timeout=8 \
      -o Acquire::https::Timeout=8 download-file "$uri" "$w/index.$$.$(echo "$mirror" | cksum | cut -d' ' -f1)" 2>&1 </dev/null); s=$?
    # A server without that file has answered.
    case "$out" in *" 404 "*) s=0 ;; esac
    case $s in
      0) : >"$w/way" ;;
      124) echo "$mirror: no answer in 10 s" >>"$w/why" ;;
      *) echo "$mirror: $(echo "$out" | apt_why | sed 's/.*InRelease  *//; s/ *$//')" >>"$w/why" ;;
    esac; } &
  done <"$w/mirrors"
  wait
  if [ -e "$w/way" ]; then echo way
  elif [ -s "$w/why" ]; then echo "none $(sort "$w/why" | tr '\n' ';' | sed 's/;$//; s/;/; /g')"; sed 's/^[^ ]* /at /' "$w/mirrors"
  else echo "none its apt has no package source"; fi
  rm -rf "$w"
}
# fetched URI FILE [HASH]: tried twice, since where this host has no way out another has.
fetched() { /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=1 download-file "$@" 2>&1; }
# fetch URI NAME SHA256 ...: into a folder, as a tar on standard output. apt compares the hash.
fetch() {
  apt_folder $C/fetched
  while [ $# -gt 0 ]; do
    out=$(fetched "$1" "$C/fetched/$2" "SHA256:$3") ||
      { apt_end $C/fetched; die "fetching $1 failed: $(echo "$out" | apt_why)"; }
    shift 3
  done
  tar -C $C/fetched -chf - . ; s=$?; apt_end $C/fetched; exit $s
}
# came PACKAGE...: a tar on standard input, to be installed.
came() {
  apt_took $C/came
  planned keep "$@"; stays
  apt_same $C/came all "$@"
  out=$(apt_get -o Dir::Cache::archives=$C/came/same/ --no-download install "$@" 2>&1) ||
    { apt_end $C/came; die "$(echo "$out" | apt_why)"; }
  apt_end $C/came
}
