# Tells what a host is like, for one volume. Arguments: name, mount point, folders that may hold its bytes.
# A line is `key<TAB>value...`; texts of other programs stand between `begin KEY` and `end KEY`.
name=$1 point=$2; shift 2
T=$(printf '\t')
PATH=$PATH:/usr/sbin:/sbin
say() { printf '%s' "$1"; shift; for w; do printf '\t%s' "$w"; done; echo; }
for p in glusterd gluster mount.glusterfs mfsmaster mfschunkserver mfsmount mfscli exportfs mount.nfs lfs fio; do
  command -v "$p" >/dev/null 2>&1 && say program "$p"
done
command -v glusterfs >/dev/null 2>&1 && say gluster-version "$(glusterfs --version | awk 'NR == 1 {print $2}')"
for u in glusterd moosefs-master moosefs-chunkserver nfs-server; do
  systemctl is-active --quiet "$u" 2>/dev/null && say active "$u"
done
# A server that was started by other means than its unit.
[ "$(cat /proc/fs/nfsd/threads 2>/dev/null || echo 0)" -gt 0 ] && say active nfs-server
# With fsid=0 version 4 shows its clients that folder as /.
exportfs -s 2>/dev/null | awk '/[(,]fsid=(0|root)[,)]/ {print $1; exit}' | while read -r root; do say pseudo-root "$root"; done
[ -d "/var/lib/glusterd/vols/$name" ] && say glusterd-knows
for v in /var/lib/glusterd/vols/*/info; do [ -e "$v" ] && v=${v%/info} && say glusterd-volume "${v##*/}"; done
uuid=$(sed -n 's/^UUID=//p' /var/lib/glusterd/glusterd.info 2>/dev/null)
[ -n "$uuid" ] && say gluster-uuid "$uuid"
# Daemons that are asked on all hosts at the same time lock each other out.
ask() {
  i=0
  while :; do
    # shellcheck disable=SC2086
    out=$(timeout 30 gluster --mode=script $1 --xml 2>/dev/null)
    case $out in *"Another transaction"* | *"Locking failed"*) ;; *) break;; esac
    i=$((i + 1)); [ $i -ge 10 ] && break
    sleep "0.$(((i * 3 + $$) % 9 + 1))"
  done
  printf '%s\n' "$out"
}
device() { q=$1; while [ ! -e "$q" ]; do q=$(dirname -- "$q"); done; stat -L -c %d -- "$q"; }
for store; do
  q=$store; while [ ! -e "$q" ]; do q=$(dirname -- "$q"); done
  system=no
  for s in / /usr /var /boot; do [ "$(stat -L -c %d -- "$q")" = "$(stat -L -c %d -- "$s" 2>/dev/null)" ] && system=yes; done
  room=$(df -P -B1 -- "$q" | awk 'NR==2 {print $2 "\t" $4}')
  content=absent
  if [ -d "$store" ]; then
    content=empty
    if [ -n "$(find "$store" -mindepth 1 \( -path "$store/.glusterfs" -o -path "$store/.shard" \) -prune -o \( -type f ! \( -perm 1000 -size 0 \) -o -type l \) -print -quit 2>/dev/null)" ]; then content=files
    elif [ -d "$store/.glusterfs" ]; then content=gluster
    elif [ -n "$(ls -A -- "$store")" ]; then content=dirs; fi
  fi
  [ -n "$(find "$store" -name 'chunk_*.mfs' -print -quit 2>/dev/null)" ] && content=chunks
  # Entries that other bricks of the set lack.
  index=$store/.glusterfs/indices/xattrop behind=
  [ -d "$index" ] && behind=$(ls -U "$index" | grep -cE '^[0-9a-f]{8}-')
  own=; ! mountpoint -q -- "$store" 2>/dev/null || own=mounted
  say store "$store" "$system" "$content" "$room" "$behind" "$q" "$own"
done
line=$(awk -v p="$point" '$5 == p {l = $0} END {print l}' /proc/self/mountinfo)
if [ -n "$line" ]; then say mounted "$(printf '%s\n' "$line" | sed 's/.* - //' | awk '{print $1 "\t" $2}')"
elif [ -d "$point" ] && [ -n "$(ls -A -- "$point" 2>/dev/null)" ]; then say point files
fi
case $line in *" - fuse"*" mfs"*)
  # It asks the master, and waits for one that is down.
  echo "begin goal"; timeout -s KILL 5 mfsgetgoal "$point" 2>/dev/null; echo; echo "end goal";;
esac
grep -F "x-homing.$name," /etc/fstab 2>/dev/null | head -1 | while read -r a b c d e; do say fstab "$a" "$b" "$c" "$d"; done
if systemctl is-active --quiet glusterd 2>/dev/null; then
  for what in "volume info" "peer status" "volume status all tasks"; do
    echo "begin $what"; ask "$what"; echo; echo "end $what"
  done
fi
if systemctl is-active --quiet moosefs-master 2>/dev/null; then
  echo "begin chunks"
  for m in 0 1; do timeout 30 mfscli -H 127.0.0.1 -SIC -m$m 2>/dev/null; done; timeout 30 mfscli -H 127.0.0.1 -SHD 2>/dev/null
  echo; echo "end chunks"
fi
echo "begin addresses"; hostname -I 2>/dev/null; echo; echo "end addresses"
for f in mfsmaster.cfg mfsexports.cfg mfschunkserver.cfg mfshdd.cfg; do
  [ -f "/etc/mfs/$f" ] && { echo "begin $f"; cat "/etc/mfs/$f"; echo; echo "end $f"; }
done
command -v exportfs >/dev/null 2>&1 && { echo "begin exported"; exportfs -s 2>/dev/null; echo; echo "end exported"; }
if [ -f "/etc/exports.d/$name.exports" ]; then
  echo "begin exports"; cat "/etc/exports.d/$name.exports"; echo; echo "end exports"
  # The table of the server has the first name of a host.
  tr ' ' '\n' <"/etc/exports.d/$name.exports" | sed -n 's/^\([A-Za-z0-9][A-Za-z0-9._-]*\)(.*/\1/p' | while read -r c; do
    known=$(getent hosts "$c" | awk '{print $2; exit}')
    [ -n "$known" ] && say export-name "$c" "$known"
  done
fi
say done
