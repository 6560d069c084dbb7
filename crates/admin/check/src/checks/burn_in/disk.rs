//! The disk below `/var/tmp`, without the cache.

use super::slow;
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

static SLOW: Code = Code {
    name: "HC-DISK-11",
    severity: Severity::Warning,
    what: "a disk is slower than on others of the model, or than before",
    means: "a disk often becomes slow before it fails; a volume is as slow as its slowest disk",
    seen: "fio (or dd) in /var/tmp, without the cache",
    mend: "smartctl -x DEVICE; check the cable, the controller's cache and battery",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "burn_disk",
    script: r#"d=$(mktemp -d /var/tmp/homing-check-XXXXXX) || exit 1
trap 'rm -rf "$d"' EXIT; trap 'exit 1' HUP INT TERM
if command -v fio >/dev/null; then
  for w in read randread; do
    f=$(fio --name=f --filename="$d/f" --size=256M --direct=1 --ioengine=psync --time_based --runtime="$BURN" --rw=$w \
      --bs=$([ $w = read ] && echo 1M || echo 4k) --output-format=terse --terse-version=3 | awk -F ';' 'NF > 9 {print $7; exit}')
    [ -z "$f" ] || awk -v w=$w -v f="$f" 'BEGIN {printf "rate\tdisk %s\t%.2f\n", w, f / 1000}'
  done
else
  a=$(date +%s%3N) e=$(($(date +%s) + BURN)) n=0
  while dd if=/dev/zero of="$d/f" bs=1M count=256 oflag=direct status=none && n=$((n + 1)) && [ "$(date +%s)" -lt "$e" ]; do :; done
  awk -v n="$n" -v t=$(($(date +%s%3N) - a)) 'BEGIN {printf "rate\tdisk write\t%.2f\n", n * 268.4 * 1000 / (t > 0 ? t : 1)}'
fi"#,
    waits: false,
    slow: true,
    root: None,
    codes: &[&SLOW],
    judge,
};

fn judge(answers: &Answers) -> Vec<HostFinding> {
    slow(answers, &SLOW, "disk", "lsblk -d -o NAME,ROTA,MODEL; dmesg | tail -20")
}
