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
      printf 'mpi\t%s\n' "$(echo "$version" | head -n 1)"
      timeout 120 mpirun -np 2 --host "$a:1,$b:1" --mca plm_rsh_args "$ssh" "$folder/pingpong" < /dev/null ;;
    *HYDRA*)
      printf 'mpi\tMPICH%s\n' "$(echo "$version" | sed -n 's/^ *Version: */ /p')"
      timeout 120 mpirun -n 2 -ppn 1 -hosts "$a,$b" "$folder/pingpong" < /dev/null ;;
    *) echo "mpirun is neither OpenMPI's nor MPICH's" >&2; exit 1 ;;
  esac
}
remove() { rm -rf "$folder"; }
