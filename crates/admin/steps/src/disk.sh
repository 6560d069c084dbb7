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
  case $1 in *" "*) array_node "$1"; return;; esac
  disk_at "$1" "$(disk_known "$1")"
}
# disk_at NAME ID
disk_at() {
  n=; p=$(readlink -f -- "$1")
  if [ -b "$p" ]; then
    n=/sys/dev/block/$(printf '%d:%d' "0x$(stat -c %t -- "$p")" "0x$(stat -c %T -- "$p")")
    if [ -e "$n" ]; then n=$(basename "$(readlink -f "$n")"); else n=; fi
  fi
  k=$2
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
# A name of several words is an array: the way in which its disks are joined, and the disks. Its id has the ids of all of
# them in this order, with commas; it has none where a disk has none.
# array_disks NAME: `KERNELNAME DISK` a line, `-` for a disk that is gone.
array_disks() {
  k=$(disk_known "$1"); [ -z "$k" ] || k=$k,
  for d in ${1#* }; do
    n=$(disk_at "$d" "${k%%,*}"); echo "${n:--} $d"; k=${k#*,}
  done
}
# array_id NAME
array_id() {
  k=$(disk_known "$1")
  if [ -z "$k" ]; then
    k=$(array_disks "$1" | while read -r n d; do v=$(disk_id "$n"); [ -n "$v" ] || { echo ' '; break; }; printf '%s,' "$v"; done)
    case $k in *" "*) k=;; esac
  fi
  echo "${k%,}"
}
# array_label NAME: what the array is called on its disks. Another one has another name.
array_label() { i=$(array_id "$1"); echo "homing_$(printf %s "${i:-$1}" | sha256sum | cut -c 1-12)"; }
# array_called KERNELNAME: what an array that runs is called.
array_called() {
  case $1 in
    md*) mdadm --detail --export "/dev/$1" 2>/dev/null | sed -n 's/^MD_NAME=//p' | sed 's/^.*://';;
    dm-*) sed 's/-data$//' "/sys/class/block/$1/dm/name" 2>/dev/null;;
  esac
}
# array_owner DEVICE: what the array is called that it was a part of, as it says of itself.
array_owner() {
  case $(blkid -p -o value -s TYPE "$1" 2>/dev/null) in
    linux_raid_member) mdadm --examine --export "$1" 2>/dev/null | sed -n 's/^MD_NAME=//p' | sed 's/^.*://';;
    LVM2_member) lvm_do pvs --noheadings -o vg_name "$1" 2>/dev/null | tr -d ' ';;
  esac
}
# lvm_do WORD...: without udev it makes the nodes of devices itself.
lvm_do() {
  if [ -S /run/udev/control ]; then lvm "$@"; else
    lvm "$@" --config 'activation{udev_sync=0 udev_rules=0 verify_udev_operations=1} devices{obtain_device_list_from_udev=0}'
  fi
}
# array_node NAME: the kernel's name of the array that homing has made of these disks, if it runs.
array_node() {
  l=$(array_label "$1")
  array_disks "$1" | while read -r n d; do
    for h in "/sys/class/block/$n/holders/"*; do
      h=${h##*/}; [ "$(array_called "$h")" != "$l" ] || echo "$h"
    done
  done | sort -u | head -n 1
}
# array_begun NAME: it was begun and is incomplete.
array_begun() {
  i=$(array_id "$1")
  for f in /var/lib/homing/disk.*; do [ -f "$f" ] && [ "$(cat "$f")" = "${i:-$1}" ] && return; done
  false
}
# array_bytes WAY BYTES...: what is left of its disks for files.
array_bytes() {
  w=$1; shift; t=0; least=$1
  for z; do t=$((t + z)); [ "$z" -ge "$least" ] || least=$z; done
  case $w in raid1) echo "$least";; raid5) echo $((least * ($# - 1)));; raid6) echo $((least * ($# - 2)));; raid10) echo $((least * $# / 2));; *) echo $t;; esac
}
# array_facts NAME
array_facts() {
  a=$(array_node "$1"); i=$(array_id "$1"); rows=$(array_disks "$1")
  case $(echo "$rows" | cut -d' ' -f1 | grep -vx -- - | sort -u | wc -l) in 0) return 0;; esac
  if [ -n "$a" ]; then
    d=$(disk_dev "$a"); z=$(($(cat "/sys/class/block/$a/size") * 512))
    echo "node $d"; echo "id $i"; echo "bytes $z"
    [ "$(cat "/sys/class/block/$a/ro")" = 0 ] || echo "not writable"
    disk_content "$a" "${i:-$1}"
    return
  fi
  echo "node $(echo "$rows" | while read -r n _; do [ "$n" = - ] || printf '%s,' "$(disk_dev "$n")"; done | sed 's/,$//')"; echo "id $i"
  # shellcheck disable=SC2046
  echo "bytes $(array_bytes "${1%% *}" $(echo "$rows" | while read -r n _; do [ "$n" = - ] || echo $(($(cat "/sys/class/block/$n/size") * 512)); done))"
  echo "$rows" | cut -d' ' -f1 | grep -vx -- - | sort | uniq -d | sed 's/^/not of different disks: two names mean /'
  l=$(array_label "$1"); b=; ! array_begun "$1" || b=yes
  echo "$rows" | while read -r n d; do
    [ "$n" != - ] || { echo "not complete: there is no disk $d"; continue; }
    v=$(disk_dev "$n")
    # What homing has begun there is its own; an LVM without a name is not joined yet.
    o=$(array_owner "$v"); own=
    if [ -n "$b" ] && { [ "$o" = "$l" ] || { [ -z "$o" ] && [ "${1%% *}" = lvm ] && blkid -p -o value -s TYPE "$v" | grep -qx LVM2_member; }; }; then own=yes; fi
    (disk_state "$n" "$d") | while read -r key rest; do
      case $key in
        node|id|model|bytes|begun|empty|left) ;;
        sign) [ -n "$own" ] || echo "sign $rest";;
        data|hidden) [ -n "$b" ] || echo "$key $rest on $v";;
        use|not) echo "$key $rest ($v)";;
        *) echo "$key${rest:+ $rest}";;
      esac
    done
  done
  disk_begun "${i:-$1}"
}
# disk_begun ID: file systems of homing that were begun on it and are incomplete.
disk_begun() { for f in /var/lib/homing/disk.*; do [ ! -f "$f" ] || [ "$(cat "$f")" != "$1" ] || echo "begun ${f##*/disk.}"; done; }
# disk_facts NAME: nothing where there is none.
disk_facts() {
  case $1 in *" "*) array_facts "$1"; return;; esac
  n=$(disk_node "$1"); [ -z "$n" ] || disk_state "$n" "$1"
}
# disk_state KERNELNAME NAME: of a whole disk.
disk_state() {
  n=$1; s=/sys/class/block/$n; d=$(disk_dev "$n"); z=$(($(cat "$s/size") * 512)); i=$(disk_id "$n")
  echo "node $d"; echo "id $i"; echo "model $(lsblk -dno MODEL "$d" 2>/dev/null | sed 's/ *$//')"; echo "bytes $z"
  [ "$(cat "$s/ro")" = 0 ] || echo "not writable"
  case $n in dm-*|md*|zd*|zram*|ram*|sr*|fd*|drbd*) echo "not a disk, but made of other devices";; esac
  [ ! -e "$s/partition" ] || { echo "not a whole disk, but a partition"; return; }
  [ $z -ge 16777216 ] || { echo "not large enough"; return; }
  ! disk_roots | grep -qx -- "$n" || echo root
  disk_content "$n" "${i:-$2}"
}
# disk_content KERNELNAME ID: who has it, and what is on it.
disk_content() {
  n=$1; d=$(disk_dev "$n"); z=$(($(cat "/sys/class/block/$n/size") * 512))
  u=$(for m in "$n" $(disk_parts "$n"); do disk_use "$m"; done)
  # Who has it in another namespace, or by no means that is known here, is told by the kernel alone.
  [ -n "$u" ] || ! mke2fs -n "$d" </dev/null 2>&1 | grep -q 'in use by the system' || u="use somebody's, the kernel says"
  [ -z "$u" ] || echo "$u"
  w=$(for m in "$n" $(disk_parts "$n"); do disk_signs "$m"; done)
  if [ -n "$w" ]; then echo "$w"; elif [ -z "$u" ]; then
    w=$(disk_zero "$d" $z); [ -z "$w" ] || if disk_left "$2" "$d" $z; then echo left; else echo "$w"; fi
  fi
  disk_begun "$2"
  ! disk_empty "$n" || echo empty
}
