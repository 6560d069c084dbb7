//! Refuses terms of `-R` that LSF has and homing does not carry out; each message names the replacement. Pure.

use super::select::Expr;

/// Resources whose amounts in `rusage[...]` count: a host needs as much of each when the job starts.
pub(super) const COUNTED: [&str; 3] = ["mem", "swp", "tmp"];

/// Returns why `rusage[NAME=...]` counts nothing; `None` if it counts.
pub(super) fn resource(name: &str) -> Option<String> {
    let gpus = name.starts_with("ngpus") || name.starts_with("gpu");
    match name {
        _ if COUNTED.contains(&name) => None,
        _ if gpus => {
            Some(format!("rusage[{name}]: homing has no load index of GPUs; bsub -gpu num=N takes N of a host"))
        }
        _ => Some(format!(
            "rusage[{name}]: homing counts only {}; licences of file servers are [server.NAME] license in the cluster \
             file, others: a queue with slots = N",
            COUNTED.join(", ")
        )),
    }
}

/// Returns why a `:KEY=VALUE` behind an amount does nothing.
pub(super) fn of_reservation(key: &str) -> String {
    format!("rusage[...:{key}]: homing checks the amount when the job starts, and reserves nothing; leave :{key} out")
}

/// Returns why an amount for each task does nothing. Amounts for a job or a host are those that each host needs.
pub(super) fn of_share(share: &str) -> Option<String> {
    (!matches!(share, "job" | "host")).then(|| {
        format!("rusage[.../{share}]: homing takes amounts for the job on each of its hosts; write the sum, /job")
    })
}

/// Returns why a section other than select, rusage and span does nothing.
pub(super) fn section(name: &str, body: &str) -> Option<String> {
    let instead = match name {
        "order" => "homing chooses the host with the most free slots; -m 'first+1 second' names an order",
        "same" => "homing does not compare the hosts of a job; -m names hosts that are alike",
        "cu" => "homing has no compute units; -m names the hosts",
        "affinity" => "homing does not bind processors; use taskset or numactl in the job's command",
        _ => return None,
    };
    Some(format!("{name}[{}]: {instead}", body.trim()))
}

/// Returns the least amount of `mem`, in MB, of a selection that requires nothing else. The error is the part by
/// which Slurm cannot choose nodes. Slurm gives a job its memory, so that each node of the job has that much.
pub(super) fn memory(select: &Expr) -> Result<f64, &Expr> {
    match select {
        Expr::Binary("&&", a, b) => Ok(memory(a)?.max(memory(b)?)),
        Expr::Binary(op, a, b) => match (*op, a.as_ref(), b.as_ref()) {
            (">" | ">=", Expr::Name(name), Expr::Number(n)) | ("<" | "<=", Expr::Number(n), Expr::Name(name))
                if name == "mem" || name == "maxmem" =>
            {
                Ok(*n)
            }
            ("==" | "=", Expr::Name(name), Expr::Word(word))
                if name == "type" && (word == "any" || word == "local") =>
            {
                Ok(0.0)
            }
            _ => Err(select),
        },
        _ => Err(select),
    }
}
