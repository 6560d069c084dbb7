# A timer of this user's systemd: on PROGRAM SERVICE TIMER sets it, off takes it away.
set -eu
fail() { echo "$1" >&2; exit 1; }
[ -d "${HOMING_SYSTEMD:-/run/systemd/system}" ] || fail 'systemd does not run on this host'
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
folder="${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user" unit=homing-history
systemctl --user show-environment >/dev/null 2>&1 ||
  fail "this user's own systemd does not answer: log in to the host by ssh, or run loginctl enable-linger"
for kind in service timer; do
  file=$folder/$unit.$kind
  # Somebody's own unit of that name is left alone.
  [ ! -e "$file" ] || head -n 1 "$file" | grep -q '^# Made by homing' || fail "$file was not made by homing, and was left as it is"
done
if [ "$1" = off ]; then
  [ ! -e "$folder/$unit.timer" ] || systemctl --user disable --now "$unit.timer" >/dev/null 2>&1 ||
    fail "systemctl --user disable --now $unit.timer failed"
  rm -f "$folder/$unit.service" "$folder/$unit.timer"
  systemctl --user daemon-reload
  exit 0
fi
[ -x "$2" ] || fail "$2, which the timer would run, is missing: homing push $2 copies it"
mkdir -p "$folder"
write() {
  printf '%s' "$2" > "$folder/.$unit.$$"
  mv "$folder/.$unit.$$" "$folder/$unit.$1"
}
write service "$3"
write timer "$4"
systemctl --user daemon-reload
systemctl --user enable "$unit.timer" >/dev/null 2>&1 || fail "systemctl --user enable $unit.timer failed"
# One that runs reads its file again.
systemctl --user restart "$unit.timer" || fail "systemctl --user restart $unit.timer failed"
case $(loginctl show-user "$(id -un)" --property=Linger --value 2>/dev/null) in
  yes) ;;
  *) echo 'only while you are logged in to the host; for always: loginctl enable-linger' ;;
esac
