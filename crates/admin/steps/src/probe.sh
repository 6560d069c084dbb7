# Tells what a host is like. A line is `key<TAB>value...`; what may hold any byte is base64. It changes nothing, but for who leads.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
T=$(printf '\t')
say() { printf '%s' "$1"; shift; for w; do printf '\t%s' "$w"; done; echo; }
yes() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
J=/var/lib/homing/up
L=/run/homing-lead
# look LEAD: a change that is under way here, of a homing that was killed or is another's, is waited for. Who means to act
# on what is seen says so, and nobody who looked before acts any more.
look() {
  if [ -n "$1" ] && [ "$(id -u)" = 0 ]; then (umask 077; : >>$L); exec 9>>$L; w=-x; elif [ -r $L ]; then exec 9<$L; w=-s; else return 0; fi
  flock $w -w 300 9 || { echo "another homing up has been changing this host for 5 minutes" >&2; exit 1; }
  [ $w = -s ] || printf %s "$1" >$L
}
basics() {
  say uid "$(id -u)"
  say hostname "$(uname -n)"
  for g in /run/homing-up.*-timer; do [ ! -e "$g" ] || say guarded; done
  getent passwd | while IFS= read -r l; do say user "$l"; done
  getent group | while IFS= read -r l; do say group "$l"; done
  rests
  ip -o addr show scope global 2>/dev/null | while read -r _ _ _ a _; do say address "${a%/*}"; done
  # sudo drops the variable; a process on the way up to sshd has it.
  p=$$
  while [ "$p" -gt 1 ]; do
    c=$(tr '\0' '\n' </proc/"$p"/environ 2>/dev/null | sed -n 's/^SSH_CONNECTION=//p')
    [ -z "$c" ] || { say reached "$(echo "$c" | cut -d' ' -f3)"; break; }
    p=$(sed 's/.*) //' /proc/"$p"/stat | cut -d' ' -f2)
  done
  cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null | while read -r t k _; do say key "$t $k"; done
  (. /etc/os-release; say family "$ID ${ID_LIKE:-}")
}
# rests: names in the files beside passwd and group that these two do not have: a power cut amid userdel leaves them.
rests() {
  set --; for f in /etc/shadow /etc/gshadow /etc/subuid /etc/subgid; do [ ! -r $f ] || set -- "$@" $f; done
  awk -F: '
    FILENAME == "/etc/passwd" { p[$1]; next }
    FILENAME == "/etc/group" { g[$1]; next }
    FILENAME != "/etc/gshadow" { if (!($1 in p)) print "user", $1; next }
    { if (!($1 in g)) print "group", $1; c = split($4, all, ","); for (i = 1; i <= c; i++) if (!(all[i] in p)) print "user", all[i] }
  ' /etc/passwd /etc/group "$@" 2>/dev/null | sort -u | while read -r k n; do
    d=group; [ $k = group ] || d=passwd
    getent $d "$n" >/dev/null || say rest $k "$n"
  done
}
file() {
  if [ -f "$1" ] && [ ! -L "$1" ]; then
    say file "$1" "$(stat -c "%a$T%u$T%g$T%Y" -- "$1")" "$(base64 -w 0 <"$1")"
  elif [ -d "$1" ] && [ ! -L "$1" ]; then say file "$1" folder "$(stat -c %Y -- "$1")"
  elif [ -e "$1" ] || [ -L "$1" ]; then say file "$1" other
  else say file "$1" absent; fi
}
package() {
  if command -v dpkg-query >/dev/null; then
    [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | cut -c2)" != i ] || say package "$1"
  else ! rpm -q "$1" >/dev/null 2>&1 || say package "$1"; fi
}
unit() {
  [ "$(systemctl show -P LoadState "$1" 2>/dev/null)" = loaded ] || return 0
  at=$(systemctl show -P StateChangeTimestamp "$1")
  say unit "$1" "$(yes systemctl is-enabled "$1")" "$(yes systemctl is-active "$1")" "$(date -d "${at:-@0}" +%s)"
}
kernel() { v=$(sysctl -n "$1" 2>/dev/null) && say kernel "$1" "$v"; true; }
point() {
  say point "$1" "$(yes test -d "$1")" "$(yes mountpoint -q "$1")" "$(yes test -n "$(ls -A "$1" 2>/dev/null | head -1)")"
  m=$(mounted_at "$1"); [ -z "$m" ] || say mounted "$1" "${m%% *}" "$(echo "$m" | cut -d' ' -f2)" "${m##* }"
}
# mounted_at POINT: source, type and options of what is mounted there, of several the last.
mounted_at() { findmnt -nro SOURCE,FSTYPE,OPTIONS -M "$1" 2>/dev/null | tail -n 1; }
# source_is POINT SOURCE: whether what is mounted there is that source under another name: a device by a link or a UUID, a
# folder of this host, a server by another of its names.
source_is() {
  m=$(mounted_at "$1"); m=${m%% *}; [ -n "$m" ] || return 0
  case $2 in
    UUID=*|LABEL=*|PARTUUID=*|PARTLABEL=*) d=$(findfs "$2" 2>/dev/null) && [ "$(readlink -f -- "$d")" = "$(readlink -f -- "${m%%[*}")" ];;
    /dev/*) [ "$(readlink -f -- "$2")" = "$(readlink -f -- "${m%%[*}")" ];;
    /*) [ "$2" -ef "$1" ];;
    *:/*) a=" $(getent ahosts "${2%%:/*}" | cut -d' ' -f1 | sort -u | tr '\n' ' ')"; [ "${2#*:/}" = "${m#*:/}" ] &&
      for h in $(getent ahosts "${m%%:/*}" | cut -d' ' -f1 | sort -u); do case $a in *" $h "*) h=; break;; esac; done && [ -z "${h-x}" ];;
    *) false;;
  esac && say same "$1"
  true
}
link() {
  [ -d "/sys/class/net/$1" ] || return 0
  say link "$1" mtu "$( (cat "/sys/class/net/$1/mtu"; ip -d link show dev "$1" | grep -o 'm[a-z]*mtu [0-9]*') 2>/dev/null | base64 -w 0)"
  for p in g k c l; do say link "$1" $p "$(ethtool -$p "$1" 2>/dev/null | base64 -w 0)"; done
}
# carriers ADDRESS...: the interface of each of these that is this host's.
carriers() {
  ip -o addr show 2>/dev/null | while read -r _ i _ a _; do
    case " $* " in *" ${a%/*} "*) i=${i%@*}; say carrier "${a%/*}" "$i"; link "$i";; esac
  done
}
# output COMMAND: of several lines, too, so that it is base64 as well as what it prints.
output() { v=$(sh -c "$1" 2>/dev/null | base64 -w 0) && [ -z "$v" ] || say output "$(printf %s "$1" | base64 -w 0)" "$v"; }
# homes FOLDER COPY
homes() {
  [ ! -f "$2.homing" ] || say homes copied "$(cat "$2.homing")"
  if [ "$1" -ef "$2" ]; then say homes shared yes; return; fi
  for d in "$1"/*/; do
    d=${d%/}
    [ -d "$d" ] && [ ! -L "$d" ] && [ "${d##*/}" != lost+found ] || continue
    if diff -rq /etc/skel "$d" >/dev/null 2>&1; then k=bare; else k=holds; fi
    say homes $k "$(printf %s "${d##*/}" | tr -c '[:alnum:]_.@\n-' '?' | tr '\n' '?')"
  done
  in_use "$1" | while IFS= read -r l; do say homes used "$l"; done
}
disk() { say disk "$1" "$(disk_facts "$1" | base64 -w 0)"; }
# journal [KIND]
journal() { for e in $J/*.json; do [ ! -f "$e" ] || { [ -n "${1-}" ] && ! grep -q "^{\"kind\":\"$1\"" "$e"; } || say journal "$(basename "$e")" "$(base64 -w 0 <"$e")"; done; }
