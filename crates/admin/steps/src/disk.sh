# Functions that look at disks. What disk_facts tells is compared, byte by byte, right before a disk is written to.
# disk_dev KERNELNAME: the path of a disk or a partition.
disk_dev() { echo "/dev/$(echo "$1" | tr '!' /)"; }
# disk_id KERNELNAME: what its maker calls it, or the file behind a loop device; nothing where it has no name of its own.
disk_id() {
  b=/sys/block/$1
  for i in "$(lsblk -dno SERIAL "$(disk_dev "$1")" 2>/dev/null)" "$(cat "$b/serial" "$b/device/serial" 2>/dev/null | head -n 1)" \
    "$(lsblk -dno WWN "$(disk_dev "$1")" 2>/dev/null)" "$(cat "$b/wwid" "$b/device/wwid" 2>/dev/null | head -n 1)" "$(cat "$b/loop/backing_file" 2>/dev/null)"; do
    i=$(printf %s "$i" | tr -s '[:space:]' _ | tr -dc '[:alnum:]_.:/+=-' | sed 's/^_*//; s/_*$//')
    [ -z "$i" ] || { echo "$i"; return; }
  done
}
# disk_known NAME: the id of the disk that homing has made a file system on under this name.
disk_known() {
  k=
  for e in "$J"/*.json; do
    [ -f "$e" ] || continue
    v=$(sed -n "s|^{\"kind\":\"disk\",\"name\":\"$1\",\"id\":\"\([^\"]*\)\".*|\1|p" "$e"); [ -z "$v" ] || k=$v
  done
  echo "$k"
}
# disk_node NAME: the kernel's name of the disk that was known by this name, wherever it is now; else of what the name leads to.
disk_node() {
  n=; p=$(readlink -f -- "$1")
  if [ -b "$p" ]; then
    n=/sys/dev/block/$(printf '%d:%d' "0x$(stat -c %t -- "$p")" "0x$(stat -c %T -- "$p")")
    if [ -e "$n" ]; then n=$(basename "$(readlink -f "$n")"); else n=; fi
  fi
  k=$(disk_known "$1")
  if [ -n "$k" ] && { [ -z "$n" ] || [ "$(disk_id "$n")" != "$k" ]; }; then
    f=$(for b in /sys/block/*; do b=${b##*/}; [ "$(disk_id "$b")" != "$k" ] || echo "$b"; done)
    [ -z "$f" ] || [ "$(echo "$f" | wc -l)" != 1 ] || n=$f
  fi
  echo "$n"
}
# disk_bases KERNELNAME: the whole disks below it.
disk_bases() {
  if [ -n "$(ls "/sys/class/block/$1/slaves" 2>/dev/null)" ]; then
    for s in "/sys/class/block/$1/slaves/"*; do (disk_bases "${s##*/}"); done
  elif [ -e "/sys/class/block/$1/partition" ]; then basename "$(dirname "$(readlink -f "/sys/class/block/$1")")"
  else echo "$1"; fi
}
# Those of the root file system. One without a device of its own, as btrfs has it, tells a path.
disk_roots() {
  m=$(findmnt -nro MAJ:MIN / | head -n 1); p=$(findmnt -nvro SOURCE / | head -n 1)
  if [ -e "/sys/dev/block/$m" ]; then disk_bases "$(basename "$(readlink -f "/sys/dev/block/$m")")"
  elif [ -b "$p" ]; then disk_bases "$(basename "$(readlink -f "$p")")"; fi
}
# disk_use KERNELNAME: who has it.
disk_use() {
  v=$(disk_dev "$1"); m=$(cat "/sys/class/block/$1/dev")
  cat /proc/self/mountinfo /proc/1/mountinfo 2>/dev/null | while read -r _ _ k _ p r; do
    r=${r#* - }; r=${r#* }
    [ "$k" != "$m" ] && [ "${r%% *}" != "$v" ] || echo "use mounted at $p"
  done | sort -u
  while read -r p _; do [ "$(readlink -f -- "$p")" != "$v" ] || echo "use swap"; done </proc/swaps
  ls "/sys/class/block/$1/holders" | sed 's/^/use part of /'
  for f in /sys/fs/btrfs/*/devices/"$1"; do [ ! -e "$f" ] || echo "use part of a btrfs that is mounted"; done
  ! zpool status -LP 2>/dev/null | grep -qw -- "$v" || echo "use part of a pool of ZFS"
}
# disk_signs KERNELNAME: what says of itself what it is.
disk_signs() {
  v=$(disk_dev "$1")
  w=$(wipefs -p "$v" 2>/dev/null) || { echo "unread $v"; return; }
  case $w in *0x*) echo "$w" | while read -r l; do
      case $l in 0x*) u=${l#*,}; echo "sign ${l##*,} $v ${u%%,*}";; esac
    done; return;;
  esac
  # A second opinion: 2 is nothing found, 8 is more than one thing.
  w=$(blkid -p -o value -s TYPE -s PTTYPE "$v" 2>/dev/null)
  case $? in
    0|2) for t in $w; do echo "sign $t $v"; done;;
    8) echo "sign several-things $v";;
    *) echo "unread $v";;
  esac
}
# disk_parts KERNELNAME
disk_parts() { for p in "/sys/block/$1"/*/partition; do [ ! -e "$p" ] || basename "$(dirname "$p")"; done; }
# disk_places BYTES: where a disk is looked at, `OFFSET LENGTH` a line: its first 64 MiB, in which partitions begin (at sector
# 63 and at 1 MiB) and file systems keep most of what they are found by, 200 places over the rest, and its last 8 MiB.
disk_places() {
  f=67108864; e=8388608
  [ "$1" -gt $((f + e)) ] || { echo "0 $1"; return; }
  echo "0 $f"
  i=1
  while [ $i -le 200 ]; do
    echo "$((f + ($1 - f - e - 65536) / 200 * i / 4096 * 4096)) 65536"; i=$((i + 1))
  done
  echo "$(($1 - e)) $e"
}
# disk_zero DEVICE BYTES: bytes other than zero at these places, the first three of them, and what begins where partitions do.
disk_zero() {
  o=$(disk_places "$2" | {
    k=0
    while read -r a l; do
      out=$(cmp -n "$l" -i "$a:0" "$1" /dev/zero 2>&1)
      case $? in
        0) continue;;
        # `DEVICE /dev/zero differ: char N, line M`, or `byte N`.
        1) b=${out##* differ: }; b=${b#* }; b=${b%%,*}; case $b in ''|*[!0-9]*) b=1;; esac
          echo "data at byte $((a + b - 1)) and behind it"; k=$((k + 1));;
        *) echo "unread $1"; break;;
      esac
      [ $k -lt 3 ] || break
    done
  })
  [ -n "$o" ] || return 0
  for a in 32256 1048576; do
    t=$(blkid -p -O $a -o value -s TYPE "$1" 2>/dev/null); [ -z "$t" ] || echo "hidden $t that begins at byte $a"
  done
  echo "$o"
}
# disk_print DEVICE BYTES: a hash of what is at these places.
disk_print() {
  disk_places "$2" | while read -r a l; do
    dd if="$1" bs=65536 iflag=skip_bytes,count_bytes skip="$a" count="$l" 2>/dev/null || echo unread
  done | sha256sum | cut -d' ' -f1
}
# disk_left NAME DEVICE BYTES: what is on it is what a file system of homing's has left there that was taken away again.
disk_left() {
  for f in /var/lib/homing/left.*; do
    [ -f "$f" ] && [ "$(head -n 1 "$f")" = "$1" ] || continue
    [ "$(sed -n 2p "$f")" != "$(disk_print "$2" "$3")" ] || return 0
  done
  return 1
}
# disk_taken COUNT FREE: inodes in use, by the two lines of standard input that begin so. The text is of a disk that anybody may
# have made: awk reads numbers, a shell would evaluate what is none.
disk_taken() { awk -v c="$1" -v f="$2" 'index($0, c) == 1 { a = $NF } index($0, f) == 1 { b = $NF } END { printf "%d\n", a - b }'; }
# disk_empty KERNELNAME: the file system on it holds no file: 11 inodes of ext4 and 3 of XFS are there from the beginning.
disk_empty() {
  d=$(disk_dev "$1"); p=$(disk_use "$1" | sed -n 's/^use mounted at //p' | head -n 1)
  if [ -n "$p" ]; then [ -z "$(ls -A -- "$p" | grep -vx 'lost+found')" ]; return; fi
  case $(blkid -p -s TYPE -o value "$d" 2>/dev/null) in
    # After a power cut the numbers are those of before, and files are in the journal alone.
    ext4) h=$(dumpe2fs -h "$d" 2>/dev/null)
      ! echo "$h" | grep -q needs_recovery && [ "$(echo "$h" | disk_taken 'Inode count:' 'Free inodes:')" = 11 ];;
    xfs) xfs_logprint -t "$d" 2>/dev/null | grep -q '<CLEAN>' || return 1
      h=$(xfs_db -r -c 'sb 0' -c 'p icount ifree' "$d" 2>/dev/null)
      [ "$(echo "$h" | disk_taken 'icount =' 'ifree =')" = 3 ];;
    *) false;;
  esac
}
# disk_facts NAME: nothing where there is none.
disk_facts() {
  n=$(disk_node "$1"); [ -n "$n" ] || return 0
  s=/sys/class/block/$n; d=$(disk_dev "$n"); z=$(($(cat "$s/size") * 512)); i=$(disk_id "$n")
  echo "node $d"; echo "id $i"; echo "model $(lsblk -dno MODEL "$d" 2>/dev/null | sed 's/ *$//')"; echo "bytes $z"
  [ "$(cat "$s/ro")" = 0 ] || echo "not writable"
  case $n in dm-*|md*|zd*|zram*|ram*|sr*|fd*|drbd*) echo "not a disk, but made of other devices";; esac
  [ ! -e "$s/partition" ] || { echo "not a whole disk, but a partition"; return; }
  [ $z -ge 16777216 ] || { echo "not large enough"; return; }
  ! disk_roots | grep -qx -- "$n" || echo root
  u=$(for m in "$n" $(disk_parts "$n"); do disk_use "$m"; done)
  # Who has it in another namespace, or by no means that is known here, is told by the kernel alone.
  [ -n "$u" ] || ! mke2fs -n "$d" </dev/null 2>&1 | grep -q 'in use by the system' || u="use somebody's, the kernel says"
  [ -z "$u" ] || echo "$u"
  w=$(for m in "$n" $(disk_parts "$n"); do disk_signs "$m"; done)
  if [ -n "$w" ]; then echo "$w"; elif [ -z "$u" ]; then
    w=$(disk_zero "$d" $z); [ -z "$w" ] || if disk_left "${i:-$1}" "$d" $z; then echo left; else echo "$w"; fi
  fi
  for f in /var/lib/homing/disk.*; do [ ! -f "$f" ] || [ "$(cat "$f")" != "${i:-$1}" ] || echo "begun ${f##*/disk.}"; done
  ! disk_empty "$n" || echo empty
}
