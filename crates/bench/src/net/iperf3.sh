# Both ends of pairs that iperf3 measures. A port is open for the length of it, on the one address of this host.
command -v iperf3 > /dev/null || { echo "no iperf3: install the package iperf3" >&2; exit 1; }
set -- ${SSH_CONNECTION:-}
own=" $(hostname -I) ${3:-} "
port=47113
echo "$pairs" | while read -r a b; do
  [ -n "$b" ] || continue
  case $own in
    *" $b "*)
      # For both directions, and for the time that the other end takes to begin.
      timeout $((2 * for + 8)) iperf3 -s -p $port -B "$b" < /dev/null > /dev/null 2>&1 ;;
    *" $a "*)
      for way in "" -R; do
        n=0
        # The other end may not listen yet.
        until out=$(timeout $((for + 10)) iperf3 -J -c "$b" -B "$a" -p $port -t "$for" $way < /dev/null 2> /dev/null); do
          n=$((n + 1)); [ $n -lt 40 ] || break; sleep 0.25
        done
        echo "$out" | tr -d '\n'; echo
      done ;;
  esac
done
exit 0
