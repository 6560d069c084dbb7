#!/bin/bash
# A task of the campaign. Its beats lie on its host's own disk: they tell when
# it ran, by a clock that nobody sets. Its effects lie where the user's data
# would: a line when it begins, and one when it has done all that it does. GlusterFS
# tells of a write that failed when the file is closed, where a shell does not look:
# so they are written by a program that does. No pipe feeds it: a strike may end the process
# that writes into one, and dd would end well without a byte.
n=$((10#${1#t}))
read -r up _ </proc/uptime
me="$$-$up"
beat() { read -r up _ </proc/uptime && echo "$me $up" >>"$CAMPAIGN_BEATS/$1"; }
effect() { dd of="$CAMPAIGN_EFFECTS/$1" oflag=append conv="notrunc$CAMPAIGN_KEEP" status=none <<<"$2" || exit 9; }
beat "$1"
effect "$1" "b $me"
for ((i = 0; i < 1 + n % 4; i++)); do
  sleep "$CAMPAIGN_NAP"
  beat "$1"
done
if ((n % 9 == 4)); then exit 3; fi
if ((n % 7 == 2)) && mkdir "$CAMPAIGN_EFFECTS/$1.tried" 2>/dev/null; then exit 1; fi
seq -f "$n %.0f" 1 "$((n % 11 == 5 ? 3000 : 3))"
beat "$1"
effect "$1" "e $me"
exit 0
