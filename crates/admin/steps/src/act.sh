# Functions that change a host, one a kind of step. Each is told what is to be there before.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
# Who asked may be gone: what was begun is brought to its end.
trap '' PIPE HUP
umask 022
J=/var/lib/homing/up
die() { echo "$*" >&2; exit 1; }
did() { echo "did $1" 2>/dev/null; }
# What a plan was made from is no longer so, and nothing further is done: the last line, which asks for another look.
outdated() { printf 'outdated\t%s\n' "$*"; exit 0; }
# lock LEAD: of all who mean to act here, the last who looked. A script of a homing that was killed may arrive late. Root
# alone may open the file, or anybody could hold the lock.
lock() {
  [ "$(id -u)" = 0 ] || die "this needs root there, and you are $(id -un): use --sudo, or HOMING_SSH='ssh -l root'"
  (umask 077; : >>/run/homing-lead); exec 9>>/run/homing-lead; flock -w 300 9 || die "another homing up has been changing this host for 5 minutes"
  l=$(cat /run/homing-lead)
  [ -n "$l" ] || [ -z "$1" ] || outdated "this host was restarted after homing examined it"
  [ "$l" = "$1" ] || [ -z "$1" ] || outdated "another homing has begun to change this host since"
  mkdir -p /var/lib/homing && mkdir -p -m 700 $J || exit 1
}
# The entry is safe on the disk before the change begins.
note() {
  last=$(ls $J | grep '^[0-9]*\.json$' | tail -n 1); last=${last%.json}
  next=$(echo "${last:-0}" | awk '{ printf "%08d\n", $1 + 1 }')
  (umask 077; printf %s "$1" | base64 -d >$J/.new) && sync $J/.new && mv -f $J/.new "$J/$next.json" || die "cannot write the journal in $J"
}
forget() { for e; do rm -f -- "$J/$e"; done; }
# The lock of former versions lies in the journal.
tidy() { rm -f $J/.new; packages_end; [ -n "$(ls $J)" ] || { rm -f $J/.lock; rmdir $J; rmdir --ignore-fail-on-non-empty /var/lib/homing; }; }
hash() { if [ -f "$1" ] && [ ! -L "$1" ]; then sha256sum <"$1" | cut -d' ' -f1; elif [ -e "$1" ] || [ -L "$1" ]; then echo other; else echo -; fi; }
same() { [ "$(hash "$1")" = "$2" ] || outdated "$1 was changed after homing examined it"; }
# put PATH HASH MODE UID GID BASE64: HASH is that of the file before, - where there is none.
put() {
  same "$1" "$2"
  [ -d "$(dirname -- "$1")" ] || die "cannot write $1: the folder $(dirname -- "$1") is missing"
  t=$1.homing-new; rm -f -- "$t"
  if (umask 077; set -C; printf %s "$6" | base64 -d >"$t") && chown "$4:$5" "$t" && chmod "$3" "$t" && sync "$t"; then
    mv -f -T -- "$t" "$1" || { rm -f -- "$t"; exit 1; }
    ! command -v restorecon >/dev/null || restorecon -F "$1"
    # Else systemd goes by the old lines, and may unmount again what it takes for another's.
    [ "$1" != /etc/fstab ] || [ ! -d /run/systemd/system ] || systemctl daemon-reload || exit 1
  else rm -f -- "$t"; die "cannot write $1; it is unchanged"; fi
}
remove() { same "$1" "$2"; rm -f -- "$1" || exit 1; }
group_add() { groupadd -g "$2" -- "$1" || exit 1; }
# userdel takes a user's own group with it.
group_del() { ! getent group "$1" >/dev/null || groupdel -- "$1" || exit 1; rest_del "$1"; }
# Homes on NFS are made by its server: root is nobody elsewhere.
user_add() {
  case $(stat -f -c %T -- "$(dirname -- "$4")" 2>/dev/null) in nfs*) m=-M;; *) m=-m;; esac
  useradd $m -N -u "$2" -g "$3" -d "$4" -s "$5" -- "$1" || exit 1
}
# rest_del NAME: lines of a user or group that a power cut amid userdel has left in the files beside passwd and group.
rest_del() {
  for f in /etc/shadow /etc/gshadow /etc/subuid /etc/subgid; do
    [ -f $f ] || continue
    # Its own line goes, and in gshadow its name among the members of others.
    b=passwd; [ $f != /etc/gshadow ] || b=group
    if getent $b "$1" >/dev/null; then d=; else d=1; fi
    if getent passwd "$1" >/dev/null; then m=; else m=1; fi
    (umask 077; set -C; rm -f $f.homing-new; awk -F: -v OFS=: -v n="$1" -v d="$d" -v m="$m" -v g="$f" '
      d && $1 == n { next }
      m && g == "/etc/gshadow" && index("," $4 ",", "," n ",") { c = split($4, all, ","); $4 = ""; for (i = 1; i <= c; i++) if (all[i] != n) $4 = $4 ($4 == "" ? "" : ",") all[i] }
      { print }' $f >$f.homing-new) || die "cannot write $f.homing-new"
    if cmp -s $f $f.homing-new; then rm -f $f.homing-new; else
      chown --reference=$f $f.homing-new && chmod --reference=$f $f.homing-new && sync $f.homing-new && mv -f -T $f.homing-new $f || die "cannot write $f"
    fi
  done
}
# A home that holds more than it was made with stays.
user_del() {
  ! getent passwd "$1" >/dev/null || userdel -- "$1" || exit 1
  rest_del "$1"
  [ ! -d "$2" ] || ! diff -r /etc/skel "$2" >/dev/null 2>&1 || rm -rf --one-file-system -- "$2"
}
member_add() { gpasswd -a "$1" "$2" >/dev/null || exit 1; }
member_del() { gpasswd -d "$1" "$2" >/dev/null || exit 1; }
# unit NAME BOOT RUN
unit() {
  if [ "$2" = yes ]; then systemctl --quiet enable "$1" || exit 1; else systemctl --quiet disable "$1" 2>/dev/null; fi
  if [ "$3" = yes ]; then
    systemctl start "$1" && systemctl --quiet is-active "$1" ||
      die "unit $1 did not start: $(systemctl status --no-pager -n 3 "$1" 2>&1 | tail -n 3 | tr '\n' ' ')"
  else systemctl stop "$1" 2>/dev/null || ! systemctl --quiet is-active "$1" || die "cannot stop unit $1"; fi
}
# Where a process's stack begins, which is elsewhere each time that its program begins, and how many sockets it has.
stack() { cut -d' ' -f28 /proc/$1/stat; } 2>/dev/null
sockets() { ls -l /proc/$1/fd | grep -c socket:; } 2>/dev/null
# nudge UNIT VERB TEST: to reload sshd is to send it a signal, after which its program begins anew and listens anew. A
# connection that the former one has taken proves nothing, and one in between is refused: ten seconds are waited for that.
nudge() {
  [ -z "$3" ] || out=$(sh -c "$3" 2>&1) || die "$3 finds a fault, so unit $1 was not reloaded: $out"
  p=0; case $1 in ssh|sshd|ssh.service|sshd.service) p=$(systemctl show -P MainPID "$1");; esac
  former=$(stack $p); open=$(sockets $p); i=0
  systemctl "$2" "$1" || die "systemctl $2 $1 failed"
  while [ -n "$former" ] && [ -e /proc/$p ] && [ $i -lt 50 ] && { [ "$(stack $p)" = "$former" ] || [ "$(sockets $p)" -lt "$open" ]; }; do
    sleep 0.2; i=$((i + 1))
  done
}
# guard TOKEN SECONDS BASE64: a script that takes back what comes after, unless its file is gone by then. Whoever asked
# may be gone, too, or be locked out.
guard() {
  g=/run/homing-up.$1
  (umask 077; printf %s "$3" | base64 -d >"$g" && printf 'sleep %s; mv %s %s.now && sh %s.now; rm -f %s.now %s-timer\n' "$2" "$g" "$g" "$g" "$g" "$g" >"$g-timer") ||
    die "cannot write $g, which would undo the change; nothing was changed"
  if [ -d /run/systemd/system ]; then systemd-run --quiet --collect sh "$g-timer" </dev/null >/dev/null 2>&1 ||
    die "systemd-run did not start the timer that would undo the change; nothing was changed"
  else setsid sh "$g-timer" </dev/null >/dev/null 2>&1 9>&- & fi
}
# untaken THING WORDS: a setting that the system did not take. Steps that follow are done all the same.
untaken() { printf 'untaken\t%s\t%s\n' "$1" "$(printf %s "$2" | tr -s '[:cntrl:]' ' ')" 2>/dev/null; return 1; }
# kernel KEY VALUE: sysctl may end with 0 when the kernel took nothing, or took another value.
kernel() {
  e=$(sysctl -q -w "$1=$2" 2>&1); v=$(sysctl -n "$1" 2>&1 | tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//')
  [ "$v" = "$(printf %s "$2" | tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//')" ] ||
    untaken "sysctl $1" "$1 is $v after it was set to $2${e:+: $e}"
}
# link INTERFACE SETTING VALUE
link() {
  case $2 in
    mtu) ip link set dev "$1" mtu "$3" ;;
    "ring "*) ethtool -G "$1" "${2#ring }" "$3" ;;
    "offload "*) ethtool -K "$1" "${2#offload }" "$3" ;;
    "coalesce "*) ethtool -C "$1" "${2#coalesce }" "$3" ;;
    "channels "*) ethtool -L "$1" "${2#channels }" "$3" ;;
    *) false ;;
  esac >/dev/null || die "cannot set $2 of $1 to $3"
}
# save INTERFACE: its addresses and routes, for heal.
save() { ip addr save dev "$1" >"/run/homing-net.$1.addr" && ip route save dev "$1" >"/run/homing-net.$1.route" || die "cannot save the addresses of $1; nothing was changed"; }
heal() {
  ip link set dev "$1" up
  [ ! -s "/run/homing-net.$1.addr" ] || ip addr restore <"/run/homing-net.$1.addr"
  [ ! -s "/run/homing-net.$1.route" ] || ip route restore <"/run/homing-net.$1.route"
  rm -f "/run/homing-net.$1".*
} 2>/dev/null
name_host() { hostname "$1" || exit 1; }
mount_on() { mkdir -p -- "$1" && mount "$1" || exit 1; }
# mount_alone POINT: a file system that no later step needs.
mount_alone() { out=$(mkdir -p -- "$1" 2>&1 && mount "$1" 2>&1) || untaken "mount $1" "mounting $1: $out"; }
mount_off() { ! mountpoint -q "$1" || umount "$1" || exit 1; [ "$2" = yes ] || rmdir -- "$1" 2>/dev/null; true; }
# disk_same NAME HASH: of what was seen of it.
disk_same() { [ "$(disk_facts "$1" | sha256sum | cut -d' ' -f1)" = "$2" ] || outdated "disk $1 was changed after homing examined it"; }
# disk_ends DEVICE: zeros into its first and its last MiB.
disk_ends() {
  for a in 0 $(($(blockdev --getsize64 "$1") - 1048576)); do
    dd if=/dev/zero of="$1" bs=1M count=1 seek=$a oflag=seek_bytes conv=notrunc,fsync 2>/dev/null || die "cannot write to $1"
  done
}
# disk_unmade NAME WHY: where nothing was written nothing was begun, and what others write there later is theirs.
disk_unmade() { rm -f "$m" "$J/$next.json"; die "disk $1 is unchanged: $2"; }
# disk_clear KERNELNAME NAME: nothing is left on it that says of itself what it is.
disk_clear() {
  for p in $(disk_parts "$1") "$1"; do
    [ -n "$(disk_signs "$p")" ] || continue
    out=$(wipefs -a -q "$(disk_dev "$p")" 2>&1) || { [ -n "$w" ] || disk_unmade "$2" "$out"; die "disk $2 was not erased: $out"; }
    w=yes
  done
  v=$(disk_dev "$1"); [ -z "$(disk_zero "$v" "$(blockdev --getsize64 "$v")")" ] || disk_ends "$v"
}
# disk_make NAME KIND UUID: wipefs and mkfs take the disk for themselves alone, so that one that anybody has is refused by
# the kernel. That it was begun is safe before the first byte of it, and forgotten behind the last.
disk_make() {
  m=/var/lib/homing/disk.$3; w=
  case $1 in *" "*) i=$(array_id "$1");; *) i=$(disk_id "$(disk_node "$1")");; esac
  command -v "mkfs.$2" >/dev/null || disk_unmade "$1" "mkfs.$2 is missing"
  case $1 in raid*" "*) t=mdadm;; lvm" "*) t=lvm;; *) t=true;; esac
  command -v $t >/dev/null || disk_unmade "$1" "$t is missing"
  printf '%s\n' "${i:-$1}" >"$m" && sync "$m" /var/lib/homing || disk_unmade "$1" "cannot write $m"
  rm -f "/var/lib/homing/left.$3" "/var/lib/homing/left.$3".*
  case $1 in *" "*) array_make "$1";; *) disk_clear "$(disk_node "$1")" "$1";; esac
  n=$(disk_node "$1"); d=$(disk_dev "$n")
  case $2 in
    ext4) out=$(mkfs.ext4 -q -U "$3" "$d" 2>&1);;
    xfs) out=$(mkfs.xfs -q -f -m uuid="$3" "$d" 2>&1);;
    *) out="not known here"; false;;
  esac || {
    out="mkfs.$2: $(echo "$out" | tail -n 3 | tr '\n' ' ')"
    [ -n "$w$(disk_signs "$n"; disk_zero "$d" "$(blockdev --getsize64 "$d")")" ] || disk_unmade "$1" "$out"
    die "disk $1 has no file system yet: $out"
  }
  [ "$(blkid -p -s UUID -o value "$d")" = "$3" ] || die "disk $1 has no file system after mkfs.$2"
  sync "$d"; rm -f "$m"
  disk_settle
}
disk_settle() { [ ! -S /run/udev/control ] || udevadm settle -t 30; }
# array_make NAME: of its disks, unless it runs already.
array_make() {
  [ -z "$(array_node "$1")" ] || { w=yes; return; }
  l=$(array_label "$1"); k=$(array_disks "$1" | cut -d' ' -f1)
  array_leave "$1"
  for n in $k; do disk_clear "$n" "$1"; done
  # From here on there is something of it on its disks.
  w=yes; v=$(for n in $k; do disk_dev "$n"; done)
  # shellcheck disable=SC2086
  case $1 in
    lvm" "*) out=$(lvm_do pvcreate -q -y $v 2>&1 && lvm_do vgcreate -q -y "$l" $v 2>&1 && lvm_do lvcreate -q -y -W n -n data -l 100%FREE "$l" 2>&1);;
    *)
      [ -S /run/udev/control ] || export MDADM_NO_UDEV=1
      out=$(mdadm --create "/dev/md/$l" --run --metadata=1.2 --name="$l" --level="${1%% *}" --raid-devices="$(echo "$k" | wc -l)" $v 2>&1);;
  esac || die "disk $1 is not joined: $(echo "$out" | tail -n 3 | tr '\n' ' ')"
  disk_settle
  [ -n "$(array_node "$1")" ] || die "disk $1 is not joined: no array of this name runs"
}
# array_alone NAME: nobody has put another logical volume or another disk into it.
array_alone() {
  case $1 in lvm" "*) ;; *) return;; esac
  l=$(array_label "$1")
  v=$(lvm_do lvs --noheadings -o lv_name "$l" 2>/dev/null | tr -d ' \n'); p=$(lvm_do vgs --noheadings -o pv_count "$l" 2>/dev/null | tr -d ' ')
  [ "${v:-data}" = data ] && [ "${p:-0}" -le "$(array_disks "$1" | wc -l)" ] || die "disk $1 stays: $l has other volumes or disks by now"
}
# array_leave NAME: its disks are parts of it no more.
array_leave() {
  array_alone "$1"
  l=$(array_label "$1"); a=$(array_node "$1"); k=$(array_disks "$1" | cut -d' ' -f1 | grep -vx -- -)
  case $1 in
    lvm" "*)
      if lvm_do vgs "$l" >/dev/null 2>&1; then out=$(lvm_do vgremove -q -y -f "$l" 2>&1) || die "disk $1 is still joined: $out"; fi
      for n in $k; do
        v=$(disk_dev "$n"); [ "$(blkid -p -o value -s TYPE "$v")" != LVM2_member ] || [ -n "$(array_owner "$v")" ] || lvm_do pvremove -q -y "$v" >/dev/null 2>&1
      done;;
    *)
      [ -z "$a" ] || out=$(mdadm --stop "/dev/$a" 2>&1) || die "disk $1 is still joined: $out"
      for n in $k; do v=$(disk_dev "$n"); [ "$(array_owner "$v")" != "$l" ] || mdadm --zero-superblock "$v" >/dev/null 2>&1; done;;
  esac
}
# disk_blank KERNELNAME NAME FILE: what mkfs has written between the ends is zeros again where the disk can do that at once;
# else it is known by its hash.
disk_blank() {
  v=$(disk_dev "$1"); z=$(blockdev --getsize64 "$v")
  disk_ends "$v"; blkdiscard "$v" 2>/dev/null
  [ -z "$(disk_zero "$v" "$z")" ] || printf '%s\n%s\n' "$(i=$(disk_id "$1"); echo "${i:-$2}")" "$(disk_print "$v" "$z")" >"$3"
}
# disk_off NAME ID UUID: a file system that nobody has put anything into, or half of one.
disk_off() {
  m=/var/lib/homing/disk.$3; n=$(disk_node "$1")
  case $1 in *" "*) i=$(array_id "$1");; *) i=$(disk_id "$n");; esac
  [ "$i" = "$2" ] || outdated "disk $1 is another one"
  case $1 in *" "*) array_alone "$1";; esac
  # Of an array that was begun there may be nothing that runs.
  u=; [ -z "$n" ] || { d=$(disk_dev "$n"); u=$(blkid -p -s UUID -o value "$d"); }
  if [ "$u" = "$3" ]; then disk_empty "$n" || outdated "disk $1 holds files"
  elif [ -n "$u" ] || [ ! -f "$m" ]; then outdated "disk $1 was changed after homing examined it"; fi
  [ -z "$u" ] || out=$(wipefs -a -q "$d" 2>&1) || die "disk $1 was not erased: $out"
  case $1 in
    *" "*)
      k=$(array_disks "$1")
      printf '%s\n' "${i:-$1}" >"$m" && sync "$m" /var/lib/homing || die "cannot write $m"
      array_leave "$1"
      echo "$k" | while read -r n d; do [ "$n" = - ] || disk_blank "$n" "$d" "/var/lib/homing/left.$3.$n"; done || exit;;
    *) disk_blank "$n" "$1" "/var/lib/homing/left.$3";;
  esac
  rm -f "$m"
}
# tree FROM TO: equal to the last byte, owner, link and attribute, or it dies.
tree() {
  command -v rsync >/dev/null || die "rsync is missing, so $1 cannot be copied: install the package rsync"
  out=$(rsync -aHAX --numeric-ids --delete --one-file-system -- "$1/" "$2/" 2>&1) ||
    die "copying $1 to $2 failed; $1 is unchanged: $(echo "$out" | tail -n 3 | tr '\n' ' ')"
  out=$(rsync -aHAXni --numeric-ids --delete --one-file-system --checksum -- "$1/" "$2/" 2>&1) && [ -z "$out" ] ||
    die "the copy of $1 in $2 differs from it; $1 is unchanged: $(echo "$out" | head -n 3 | tr '\n' ' ')"
}
# What is said of a copy stands beside it, where all hosts read it.
mark() { rm -f -- "$1.homing-new"; (set -C; printf '%s\n' "$2" >"$1.homing-new") && sync "$1.homing-new" && mv -f -- "$1.homing-new" "$1.homing" || die "cannot write $1.homing"; }
# copy_tree FROM TO HOST
copy_tree() {
  for t in "$2" "$2.homing"; do
    [ ! -L "$t" ] && { [ ! -e "$t" ] || [ -O "$t" ]; } || die "$t is a link or another user's: nothing was written into it"
  done
  [ ! -e "$2" ] || [ -f "$2.homing" ] || die "$2 exists and is not a copy that homing made: nothing was written into it"
  case $(cat "$2.homing" 2>/dev/null) in used*) die "other hosts used $2 after homing examined it";; esac
  mark "$2" "copying $3"; mkdir -p -- "$2" || exit 1
  tree "$1" "$2"; mark "$2" "copied $3"
}
# mount_over FOLDER COPY IS_SOURCE: nobody gets in meanwhile, and only when nobody is in.
mount_over() {
  n=/run/nologin
  [ -e $n ] || { trap 'rm -f /run/nologin' EXIT; echo "Homes are being moved by homing up. Try again in a minute." >$n; }
  u=$(in_use "$1" | tr '\n' ' '); [ -z "$u" ] || die "$1 is in use ($u); nothing was moved"
  [ -d "$2" ] || die "$2, to be mounted on $1, is missing"
  if [ "$3" = yes ]; then
    case $(cat "$2.homing") in copied*) tree "$1" "$2";; *) die "$2 is not an unused copy";; esac
  fi
  mkdir -p -- "$1" && mount "$1" || exit 1
  [ "$3" != yes ] || mark "$2" "used $(sed 's/^[^ ]* //' "$2.homing")"
}
# took: files of packages for the steps that follow, as a tar on standard input.
took() { apt_took $C/up; }
# package NAME REPLACED...: nothing else may have to go for it. Files that another host has fetched are used, where some came.
package() {
  p=$1; shift; R=--no-install-recommends; cache=
  if command -v apt-get >/dev/null; then w=apt; elif command -v dnf >/dev/null; then w=dnf
  else die "cannot install $p: apt-get and dnf are missing"; fi
  ${w}_plan "$p" || die "package $p is not available: $(echo "$plan" | ${w}_why)"
  for g in $gone; do
    case " $* " in *" $g "*) ;; *) die "package $p would remove $g; nothing was installed";; esac
  done
  if [ $w = dnf ]; then out=$(dnf_do -q -y install "$p" 2>&1) || die "package $p: $(echo "$out" | dnf_why)"; return; fi
  [ ! -d $C/up ] || { apt_same $C/up '' "$p"; cache="-o Dir::Cache::archives=$C/up/same/"; }
  out=$(apt_get $cache install "$p" 2>&1) || die "package $p: $(echo "$out" | grep '^E:' | tr '\n' ' ')"
}
packages_end() { apt_end $C/up; }
