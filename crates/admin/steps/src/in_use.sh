# in_use FOLDER: processes that work below it, and those of users who own a folder in it, as `USER: PROGRAM`.
in_use() {
  {
    find /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd -lname "$1/*" 2>/dev/null | cut -d/ -f3
    for d in "$1"/*/; do
      [ -d "$d" ] && [ ! -L "${d%/}" ] || continue
      u=$(stat -c %u -- "$d")
      # What a service has as its home is no sign that a person is there.
      [ "$u" -lt 1000 ] || find /proc -maxdepth 1 -type d -name '[0-9]*' -uid "$u" 2>/dev/null | cut -d/ -f3
    done
  } | sort -un | while read -r p; do
    o=$(stat -c %U "/proc/$p" 2>/dev/null) && echo "$o: $(cat "/proc/$p/comm" 2>/dev/null)"
  done | sort -u
}
