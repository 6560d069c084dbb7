#!/bin/sh
# Raises a MooseFS of four chunkservers and its mounts for tests/moosefs.rs,
# then runs the test again inside. Everything ends with the process namespace
# that this runs in.
set -eu
base=$HOMING_TEST_BASE
chmod 755 "$base"
mount --make-rslave /
ip link set lo up
ip address add 10.98.0.9/32 dev lo
mkdir -p "$base/master" "$base/mnt"
printf 'MFSM NEW' >"$base/master/metadata.mfs"
# A chunkserver that goes away is not to be made up for while the test looks.
cat >"$base/mfsmaster.cfg" <<END
DATA_PATH = $base/master
EXPORTS_FILENAME = $base/mfsexports.cfg
TOPOLOGY_FILENAME = $base/mfstopology.cfg
REPLICATIONS_DELAY_INIT = 3600
WORKING_USER = root
END
echo '* / rw,alldirs,admin,maproot=0:0' >"$base/mfsexports.cfg"
: >"$base/mfstopology.cfg"
mfsmaster -c "$base/mfsmaster.cfg" start >"$base/log" 2>&1 || { cat "$base/log"; exit 1; }
for n in 1 2 3 4; do
    dir=$base/cs$n
    mkdir -p "$dir/state" "$dir/disk"
    ip address add 10.98.0.$n/32 dev lo
    [ $n -le 2 ] && label=A || label=B
    cat >"$dir/cs.cfg" <<END
DATA_PATH = $dir/state
HDD_CONF_FILENAME = $dir/hdd.cfg
HDD_LEAVE_SPACE_DEFAULT = 16MiB
MASTER_HOST = 10.98.0.9
MASTER_RECONNECTION_DELAY = 1
BIND_HOST = 10.98.0.$n
CSSERV_LISTEN_HOST = 10.98.0.$n
LABELS = $label
WORKING_USER = root
END
    echo "$dir/disk" >"$dir/hdd.cfg"
    mfschunkserver -c "$dir/cs.cfg" start >>"$base/log" 2>&1 || { cat "$base/log"; exit 1; }
done
tries=0
until [ "$(mfscli -H 10.98.0.9 -p -s '|' -SCS 2>/dev/null | awk -F'|' '/^chunk servers/ && $11 > 0' | wc -l)" = 4 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { cat "$base/log"; mfscli -H 10.98.0.9 -SCS; exit 1; }
    sleep 0.1
done
join() { # mount point, further words
    mkdir -p "$base/$1"
    mfsmount "$base/$1" -H 10.98.0.9 $2 >>"$base/log" 2>&1
}
join mnt ""
cd "$base/mnt"
mkdir folder contract
for goal in 1 2 3; do mkdir goal$goal && mfssetgoal $goal goal$goal >/dev/null; done
mfssetgoal 2 contract folder >/dev/null
mfsscadmin "$base/mnt" create A,B both >/dev/null
mfsscadmin "$base/mnt" create -K B onlyb >/dev/null
for class in both onlyb; do mkdir $class && mfssetsclass $class $class >/dev/null; done
chmod -R 777 .
cd /
join sub "-S folder"
# Seen through this one, the mount's own door to the master is shut.
mkdir "$base/shut"
mount --bind "$base/mnt" "$base/shut"
join closed ""
mount --bind /dev/null "$base/closed/.masterinfo"
exec "$1" --exact "$2" --nocapture
