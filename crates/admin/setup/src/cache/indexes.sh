# Indexes that another host has fetched. apt itself compares them with their signature and hashes, as ever: what stands in
# the place of its ways over the network gives it files of a folder, and notes which are not there.
I=$C/indexes
# indexes BEGIN: 'NAME URI' of what lacks, or what apt says where nothing does any more. Anew, more, or at last.
indexes() {
  [ "$1" != anew ] || indexes_folder
  [ -d $I/methods ] || die "another homing cache ran there meanwhile"
  : >$I/lacks
  out=$(apt_get -o Dir::Bin::methods=$I/methods -o Acquire::PDiffs=false -o Acquire::Retries=0 -o APT::Sandbox::User=root update 2>&1)
  if [ -s $I/lacks ] && [ "$1" != last ]; then awk '!seen[$0]++ { print "lacks", $0 }' $I/lacks
  else echo "$out" | sed -n 's/^[EW]: /said /p'; apt_end $I; fi
}
indexes_folder() {
  apt_folder $I; mkdir $I/files $I/methods || die "cannot make the folder $I"
  methods=$(apt-config shell methods Dir::Bin::methods/d | sed -n "s/^methods='\(.*\)'$/\1/p")
  ln -s "${methods:-/usr/lib/apt/methods/}"/* $I/methods/ && rm -f $I/methods/http $I/methods/https
  { echo '#!/bin/sh'; echo "I=$I"; cat <<'END'
printf '100 Capabilities\nVersion: 1.0\nSingle-Instance: true\n\n'
uri='' file=''
while IFS= read -r line; do
  case $line in
  '600 '*) uri='' file='' ;;
  'URI: '*) uri=${line#URI: } ;;
  'Filename: '*) file=${line#Filename: } ;;
  '')
    [ -n "$uri" ] || continue
    name=$(printf %s "$uri" | sha256sum | cut -c1-64) again=''
    if [ -f "$I/files/$name" ] && cp "$I/files/$name" "$file"; then
      printf '201 URI Done\nURI: %s\nFilename: %s\nSize: %s\nSHA256-Hash: %s\n\n' \
        "$uri" "$file" "$(stat -c %s "$file")" "$(sha256sum <"$file" | cut -c1-64)"
    else
      # What nobody could fetch is not there for apt, which then asks for another form of it.
      [ -f "$I/files/$name.none" ] || { echo "$name $uri" >>$I/lacks; again='Transient-Failure: true\n'; }
      printf "400 URI Failure\nURI: %s\nMessage: it was not fetched\n$again\n" "$uri"
    fi
    uri='' ;;
  esac
done
END
  } >$I/methods/http && chmod 755 $I/methods/http && ln -s http $I/methods/https || die "cannot write to $I"
}
# indexes_came: a tar on standard input.
indexes_came() { tar -C $I/files --no-same-owner -xf - || die "the indexes did not arrive completely"; }
# fetch_indexes NAME URI ...: as a tar on standard output. apt asks for several forms of a file and takes the first: one of
# each folder of a source is enough at a time. A server that says that it has none has answered; where none did, another
# host may have a way out.
fetch_indexes() {
  apt_folder $C/fetched; had=' ' answer=''
  while [ $# -gt 0 ]; do
    of=${2%/*}; of=${of%/by-hash/*}
    case $had in
    *" $of "*) ;;
    *)
      if out=$(fetched "$2" "$C/fetched/$1"); then had="$had$of " answer=yes
      else
        : >$C/fetched/$1.none; why="fetching $2 failed: $(echo "$out" | apt_why)"
        case $why in *' 404 '*) answer=yes ;; esac
      fi ;;
    esac
    shift 2
  done
  [ -n "$answer" ] || { apt_end $C/fetched; die "$why"; }
  tar -C $C/fetched -chf - . ; s=$?; apt_end $C/fetched; exit $s
}
