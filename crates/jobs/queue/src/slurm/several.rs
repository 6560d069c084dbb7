//! Gives a job over several nodes of Slurm its hosts in the order of the ranks, and makes MPI libraries and srun keep
//! that order. Pure.
//!
//! Tried with Slurm 22.05, OpenMPI 4.1.4 and MPICH 4.0.2 of Debian 12. Slurm sorts the nodes of a job. srun uses
//! `SLURM_HOSTFILE` if it is given no nodes (as with `--distribution=arbitrary`). Thus the srun that starts OpenMPI's
//! daemons does not use it. OpenMPI's mapper `seq` takes a line of its hostfile for a rank. Hydra's way through srun
//! takes the nodes as Slurm has sorted them; therefore each of its daemons has a step of its own.

use crate::job::Share;
use crate::keeper::hostfile;
use homing_model::text::quoted;

/// Starts a command on one node, with the arguments that Hydra gives to ssh. Without `--mem=0` a step that is just
/// ending may have all of the job's memory, and srun refuses this one.
const LAUNCHER: &str = "#!/bin/sh\n\
while case $1 in -*) true ;; *) false ;; esac; do shift; done\n\
host=$1; shift; unset SLURM_HOSTFILE\n\
exec srun --overlap --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --mem=0 --nodelist=\"$host\" /bin/sh -c \"$*\"\n";

/// Prints the hosts in Slurm's own order, for a job without a chosen order.
const SORTED: &str = "for homing_host in $(scontrol show hostnames \"$SLURM_JOB_NODELIST\"); do\n\
yes \"$homing_host\" | head -n \"$SLURM_NTASKS_PER_NODE\"\ndone | head -n \"$SLURM_NTASKS\"";

/// Sets the variables. Both files have lost their names when the command starts, and exist as long as it runs.
const VARIABLES: &str = "\
HOMING_HOSTFILE=/proc/$$/fd/7 LSB_DJOB_HOSTFILE=/proc/$$/fd/7 LSB_DJOB_NUMPROC=$SLURM_NTASKS\n\
LSB_HOSTS=$(tr '\\n' ' ' < $HOMING_HOSTFILE) LSB_HOSTS=${LSB_HOSTS% }\n\
LSB_MCPU_HOSTS=$(uniq -c $HOMING_HOSTFILE | while read -r n host; do printf '%s %s ' \"$host\" \"$n\"; done)\n\
SLURM_HOSTFILE=$HOMING_HOSTFILE OMPI_MCA_orte_default_hostfile=$HOMING_HOSTFILE OMPI_MCA_rmaps=seq\n\
HYDRA_HOST_FILE=$HOMING_HOSTFILE HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=/proc/$$/fd/6\n\
export HOMING_HOSTFILE LSB_DJOB_HOSTFILE LSB_DJOB_NUMPROC LSB_HOSTS LSB_MCPU_HOSTS SLURM_HOSTFILE\n\
export OMPI_MCA_orte_default_hostfile OMPI_MCA_rmaps HYDRA_HOST_FILE HYDRA_LAUNCHER HYDRA_LAUNCHER_EXEC\n";

/// Sets how srun starts ranks, if neither the user nor the administrator has: PMIx, which OpenMPI knows, or else
/// PMI-2.
const KIND: &str = "\
if [ -z \"$SLURM_MPI_TYPE\" ] && scontrol show config | grep -q '^MpiDefault *= *none'; then\n\
homing_kinds=$(srun --mpi=list 2>&1)\n\
for homing_kind in pmi2 pmix; do\n\
case $homing_kinds in *$homing_kind*) SLURM_MPI_TYPE=$homing_kind; export SLURM_MPI_TYPE ;; esac\ndone\nfi\n";

/// Returns lines of the batch script. They do nothing if the job's nodes have different numbers of slots.
pub(super) fn lines(hosts: &[Share]) -> String {
    let list = match hosts {
        [] => SORTED.to_string(),
        _ => format!("printf %s {}", String::from_utf8_lossy(&quoted(hostfile(hosts).as_bytes()))),
    };
    let launcher = String::from_utf8_lossy(&quoted(LAUNCHER.as_bytes())).into_owned();
    format!(
        "if [ -n \"$SLURM_NTASKS_PER_NODE\" ]; then\n\
         homing_file=$(mktemp) || exit 255\n{{ {list}\n}} > \"$homing_file\"\nexec 7< \"$homing_file\"; rm -f \"$homing_file\"\n\
         homing_file=$(mktemp) || exit 255\nprintf %s {launcher} > \"$homing_file\"; chmod 700 \"$homing_file\"\n\
         exec 6< \"$homing_file\"; rm -f \"$homing_file\"\n{VARIABLES}{KIND}fi\n"
    )
}

#[cfg(test)]
#[path = "../../../../../tests/script.rs"]
mod script;

#[cfg(test)]
mod tests {
    use super::script::script;
    use super::*;

    #[test]
    fn a_shell_finds_the_hosts_in_their_order() {
        let share = |host: &str, slots| Share { host: host.into(), slots };
        let tells = "cat $HOMING_HOSTFILE; echo $LSB_HOSTS; echo \"$LSB_MCPU_HOSTS.\"; echo $SLURM_MPI_TYPE\n\
                     PATH=$PWD; $HYDRA_LAUNCHER_EXEC -x n1 echo 'a b'; ls";
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| script(&dir.path().join(name), text);
        program("scontrol", "echo 'MpiDefault              = none'; [ $2 = config ] || printf 'n1\\nn3\\n'");
        program("srun", "case $1 in --mpi=list) echo pmix pmi2 >&2 ;; *) echo \"$7 ${10}\" ;; esac");
        std::os::unix::fs::symlink("/bin/ls", dir.path().join("ls")).unwrap();
        let run = |hosts: &[Share]| {
            let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
            let mut command = std::process::Command::new("/bin/sh");
            command.arg("-c").arg(lines(hosts) + tells).current_dir(dir.path()).env("PATH", path);
            command.env("TMPDIR", dir.path()).env_remove("SLURM_MPI_TYPE");
            let told = command.envs([("SLURM_NTASKS_PER_NODE", "2"), ("SLURM_NTASKS", "3")]).output().unwrap();
            String::from_utf8(told.stdout).unwrap()
        };
        // The folder has no new files.
        let end = "pmix\n--nodelist=n1 echo a b\nls\nscontrol\nsrun\n";
        assert_eq!(run(&[share("n3", 2), share("n1", 1)]), format!("n3\nn3\nn1\nn3 n3 n1\nn3 2 n1 1 .\n{end}"));
    }
}
