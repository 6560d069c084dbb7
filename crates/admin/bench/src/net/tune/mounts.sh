# What a mount of NFS of its own carries: $1 source, $2 version, $3 options besides, $4 connections that it is to have, $5 a word
# that nobody else uses, $6 MiB of each stream; of 0 nothing is measured.
PATH=$PATH:/usr/sbin:/sbin
point=/run/homing-tune.$5
folder=$point/.homing-tune.$5.$(hostname)
die() { echo "$*" >&2; exit 1; }
away() {
  rm -rf -- "$folder" 2> /dev/null
  ! mountpoint -q "$point" || umount "$point" || umount -l "$point"
  rm -f "$point.slow"
  rmdir "$point"
}
# Soft: a server that falls silent is no reason to wait for it. The kernel gives all mounts of one server and version the
# connections of the first one.
mounted() {
  mount -t nfs4 -o "soft,timeo=50,nosharecache,vers=$2$3" -- "$1" "$point" || exit 1
  n=$(findmnt -n -o OPTIONS --mountpoint "$point" | tr , '\n' | sed -n 's/^nconnect=//p')
  [ "${n:-1}" = "$4" ] || die "a mount by NFS $2 has ${n:-1} connections instead of $4"
}
# Others may write where the folder is, and root would follow a link that they put in its place.
streams() {
  for n in 1 2 3 4; do (cd -P -- "$folder" && [ "$(pwd -P)" = "$folder" ] && "$@" "$n") & done
  wait
}
writes() { timeout -k 2 "$LONGEST" dd if=/dev/zero of="$1" bs=1M count="$size" conv=fsync 2> /dev/null; }
reads() { timeout -k 2 "$LONGEST" dd if="$1" of=/dev/null bs=1M 2> /dev/null || : > "$point.slow"; }
whole() { [ "$(stat -c %s "$folder"/[1-4] 2> /dev/null | awk '{ n += $1 } END { printf "%.0f", n }')" = $((size * 4194304)) ]; }
# Mbit/s: bits a nanosecond are a thousand times as many.
rate() { echo "$1 $((size * 4194304 * 8 * 1000 / ($(date +%s%N) - begun)))"; }

size=$6 LONGEST=20
mkdir -m 700 "$point" || exit 1
trap away EXIT
trap 'exit 1' HUP INT TERM
# Whoever asked may be gone: what was mounted goes all the same.
trap '' PIPE
mounted "$@"
[ "$size" -gt 0 ] || exit 0
mkdir -m 700 "$folder" || die "root may not write to $1, so homing cannot measure it"
begun=$(date +%s%N); streams writes; rate written
whole || die "writing to $1 did not end in $LONGEST s, or it is full"
# A new mount knows nothing of what the old one wrote.
umount "$point" && mounted "$@"
begun=$(date +%s%N); streams reads; rate read
[ ! -e "$point.slow" ] || die "reading from $1 did not end in $LONGEST s"
exit 0
