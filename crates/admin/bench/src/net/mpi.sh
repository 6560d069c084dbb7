# A ping-pong over the MPI that is here. Both hosts compile it for themselves; the first begins it on both.
PATH=$PATH:/usr/lib64/openmpi/bin:/usr/lib64/mpich/bin
compile() {
  command -v mpicc > /dev/null && command -v mpirun > /dev/null || { echo "neither mpicc nor mpirun is in PATH" >&2; exit 1; }
  umask 077; mkdir "$folder" || exit 1
  cat > "$folder/pingpong.c"
  out=$(mpicc -O2 -o "$folder/pingpong" "$folder/pingpong.c" 2>&1) || { echo "mpicc: $out" >&2; exit 1; }
}
measure() {
  case " $(hostname -I) " in *" $a "*) ;; *) exit 0 ;; esac
  version=$(mpirun --version 2>&1)
  ssh="-o BatchMode=yes -o StrictHostKeyChecking=accept-new"
  # OpenMPI asks root whether root is meant: who is root here was let in as root on both.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  case $version in
    *"Open MPI"*)
      name=$(echo "$version" | head -n 1)
      # Hosts that are containers of one machine would both be bound to its first core, and wait for each other.
      set -- -np 2 --bind-to none --host "$a:1,$b:1" --mca plm_rsh_args "$ssh" ;;
    *HYDRA*)
      name="MPICH$(echo "$version" | sed -n 's/^ *Version: */ /p')"
      export HYDRA_LAUNCHER_EXTRA_ARGS="$ssh"
      set -- -n 2 -ppn 1 -hosts "$a,$b" ;;
    *) echo "mpirun is neither OpenMPI's nor MPICH's" >&2; exit 1 ;;
  esac
  timeout -k 5 "$patience" mpirun "$@" "$folder/pingpong" < /dev/null > "$folder/told"
  status=$?
  cat "$folder/told"
  if [ $status = 124 ] || [ $status = 137 ]; then
    name="$name; it did not end, and homing stopped it after $patience s"
    # All sizes may be known by then: some releases of MPICH hang in MPI_Finalize.
    tail -n 1 "$folder/told" | grep -q '^end' || { echo "$name; look at: ssh from $a to $b, firewalls" >&2; exit 1; }
  elif [ $status != 0 ]; then
    exit $status
  fi
  printf 'mpi\t%s\n' "$name"
}
remove() {
  # What outlives its mpirun; the folder has a name that nobody else uses.
  pkill -KILL -f "^$folder/pingpong" 2> /dev/null
  rm -rf "$folder"
}
