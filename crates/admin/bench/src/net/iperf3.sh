# Both ends of pairs that iperf3 measures. A port is open for the length of it, on the one address of this host.
command -v iperf3 > /dev/null || { echo "no iperf3: install the package iperf3" >&2; exit 1; }
set -- ${SSH_CONNECTION:-}
own=" $(hostname -I) ${3:-} "
port=47113
echo "$pairs" | while read -r a b; do
  [ -n "$b" ] || continue
  case $own in
    *" $b "*)
      # A server for each direction, which ends with it: the other end may begin much later than this one.
      for way in "" -R; do
        timeout $((for + 25)) iperf3 -s -1 -p $port -B "$b" < /dev/null > /dev/null 2>&1
      done ;;
    *" $a "*)
      for way in "" -R; do
        n=0
        while :; do
          out=$(timeout $((for + 10)) iperf3 -J -c "$b" -B "$a" -p $port -t "$for" $way < /dev/null 2> /dev/null)
          # The other end may not listen yet. With -J that is told with an exit status of 0.
          case $out in *"unable to connect"*) ;; *) break ;; esac
          n=$((n + 1)); [ $n -lt 60 ] || break; sleep 0.25
        done
        echo "$out" | tr -d '\n'; echo
      done ;;
  esac
done
exit 0
