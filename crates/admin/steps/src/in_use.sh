# in_use FOLDER: processes that work below it, and those of users who own a folder in it, as `USER: PROGRAM`.
in_use() {
  tries=0
  # A login of a moment, such as homing's own proof of ssh from another host, is no user at work.
  while pids=$(pids_at "$1"); [ -n "$pids" ] && [ $tries -lt 15 ] && are_young $pids; do sleep 1; tries=$((tries + 1)); done
  for p in $pids; do
    o=$(stat -c %U "/proc/$p" 2>/dev/null) && echo "$o: $(cat "/proc/$p/comm" 2>/dev/null)"
  done | sort -u
}
# are_young PID...: all of them began in the last 20 seconds, or have ended.
are_young() {
  now=$(cut -d. -f1 /proc/uptime)
  for p; do
    # The 22nd field is the start, in hundredths of a second since the boot; the name before may hold blanks.
    began=$(sed 's/.*) //' "/proc/$p/stat" 2>/dev/null | cut -d' ' -f20)
    [ -z "$began" ] || [ $((now - began / 100)) -lt 20 ] || return 1
  done
}
pids_at() {
  {
    find /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd -lname "$1/*" 2>/dev/null | cut -d/ -f3
    for d in "$1"/*/; do
      [ -d "$d" ] && [ ! -L "${d%/}" ] || continue
      u=$(stat -c %u -- "$d")
      # What a service has as its home is no sign that a person is there.
      [ "$u" -lt 1000 ] || find /proc -maxdepth 1 -type d -name '[0-9]*' -uid "$u" 2>/dev/null | cut -d/ -f3
    done
  } | sort -un
}
