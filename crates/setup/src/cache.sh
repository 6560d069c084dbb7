# Packages from another host's download: what is wanted here, the fetching of it, and the installing of what came.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
umask 022
C=/var/lib/homing/cache
die() { echo "$*" >&2; exit 1; }
ready() {
  [ "$(id -u)" = 0 ] || die "this needs root there, and you are $(id -un): --sudo, or HOMING_SSH='ssh -l root'"
  command -v apt-get >/dev/null || die "there is no apt-get"
  # A file that somebody else put where apt looks for its downloads would be installed without a look at its hash.
  mkdir -p /var/lib/homing && mkdir -p -m 700 $C && chmod 700 $C && exec 9>$C/.lock && flock -w 300 9 || die "$C cannot be used"
  A="apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold"
  mkdir -p $C/none/partial && rm -f $C/none/*.deb
}
# wanted PACKAGE...: files that are to be had for them, as the signed index has them, and what else would be done.
wanted() {
  plan=$($A -s install "$@" 2>&1) || { $A update >/dev/null 2>&1; plan=$($A -s install "$@" 2>&1); } ||
    die "it cannot be had: $(echo "$plan" | grep -m 2 '^[EW]:' | tr '\n' ' ')"
  gone=$(echo "$plan" | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ')
  [ -z "$gone" ] || die "it would remove $gone; nothing was installed"
  $A -o Acquire::ForceHash=SHA256 -o Dir::Cache::archives=$C/none/ --print-uris install "$@" | grep "^'" || true
}
# fetch URI NAME SHA256 ...: into a folder, as a tar on standard output. apt compares the hash.
fetch() {
  rm -rf $C/fetched && mkdir -m 700 $C/fetched || exit 1
  while [ $# -gt 0 ]; do
    out=$(/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$1" "$C/fetched/$2" "SHA256:$3" 2>&1) ||
      die "$1 cannot be fetched: $(echo "$out" | grep -m 2 '^[EW]:' | tr '\n' ' ')"
    shift 3
  done
  tar -C $C/fetched -chf - . ; s=$?; rm -rf $C/fetched; exit $s
}
# came PACKAGE...: a tar on standard input, to be installed. What is no file of the index, byte by byte, is not.
came() {
  rm -rf $C/came && mkdir -m 700 $C/came && tar -C $C/came --no-same-owner -xf - || die "the packages did not arrive whole"
  mkdir -p $C/came/partial
  wanted "$@" >$C/list || exit 1
  while read -r _ name _ hash; do
    [ -f "$C/came/$name" ] && [ ! -L "$C/came/$name" ] || die "$name did not come; nothing was installed"
    [ "SHA256:$(sha256sum <"$C/came/$name" | cut -d' ' -f1)" = "$hash" ] ||
      { rm -rf $C/came; die "$name is not the one that the signed index names; nothing was installed"; }
  done <$C/list
  out=$($A -o Dir::Cache::archives=$C/came/ --no-download install "$@" </dev/null 2>&1) ||
    die "$(echo "$out" | grep -m 3 '^E:' | tr '\n' ' ')"
  rm -rf $C/came $C/list
}
