#!/bin/sh
# Raises glusterd, volumes and mounts for tests/gluster.rs, then runs the test
# again inside. Everything ends with the process namespace that this runs in.
set -eu
base=$HOMING_TEST_BASE
chmod 755 "$base"
mkdir -p "$base/state" "$base/log" "$base/run" "$base/mnt" /var/lib/glusterd /var/log/glusterfs /run/gluster
# Slave, not private: a copy of the mounts of others must not outlive theirs.
mount --make-rslave /
mount --bind "$base/state" /var/lib/glusterd
mount --bind "$base/log" /var/log/glusterfs
mount --bind "$base/run" /run/gluster
ip link set lo up
hostname gxhost
cp /etc/hosts "$base/hosts"
# Each brick has a name and an address of its own, though all are served here.
for n in 1 2 3 4 5 6; do
    ip address add 10.99.0.$n/32 dev lo
    echo "10.99.0.$n g$n.cluster" >>"$base/hosts"
done
mount --bind "$base/hosts" /etc/hosts

glusterd --no-daemon --log-level ERROR >"$base/glusterd.log" 2>&1 &
gluster() { command gluster --mode=script --log-file=/dev/null "$@"; }
tries=0
until gluster volume list >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { cat "$base/glusterd.log"; exit 1; }
    sleep 0.2
done

make() { # volume, its kind (words), numbers of its bricks
    volume=$1 kind=$2
    shift 2
    bricks=
    for n; do
        mkdir -p "$base/bricks/$n"
        bricks="$bricks g$n.cluster:$base/bricks/$n/$volume"
    done
    # shellcheck disable=SC2086 # words are meant
    gluster volume create "$volume" $kind $bricks force >/dev/null
    # On a disk that is nine tenths full all new files and shards would go to one brick.
    gluster volume set "$volume" cluster.min-free-disk 1% >/dev/null
}
join() {
    mkdir -p "$base/mnt/$1"
    glusterfs --log-file=/dev/null --volfile-server=g1.cluster --volfile-id="/$2" $3 "$base/mnt/$1"
    chmod 777 "$base/mnt/$1"
}
make rep "replica 2" 1 2 3 4
make arb "replica 2 arbiter 1" 1 2 3
make dis "disperse 3 redundancy 1" 1 2 3
make di2 "disperse 3 redundancy 1" 1 2 3 4 5 6
make sh "" 1 2
make shrep "replica 2" 1 2 3 4
make shdis "disperse 3 redundancy 1" 1 2 3 4 5 6
make alone "" 1
for volume in sh shrep shdis; do
    gluster volume set $volume features.shard on >/dev/null
    gluster volume set $volume features.shard-block-size 4MB >/dev/null
done
for volume in rep arb dis di2 sh shrep shdis alone; do
    gluster volume start $volume >/dev/null
    join $volume $volume ""
done
gluster volume status alone --xml | sed -n 's:.*<pid>\([0-9]*\)</pid>.*:\1:p' | head -n 1 >"$base/alone.pid"
mkdir "$base/mnt/rep/folder"
join sub rep --subdir-mount=/folder
mkdir "$base/bound"
mount --bind "$base/mnt/rep/folder" "$base/bound"
exec "$1" --exact "$2" --nocapture
