//! The fields of `bqueues -o` and `bhosts -o`, by the names of LSF 10.

use crate::columns::{Field, field};
use crate::tables::{BatchHost, Queue};

/// The fields of `bqueues -o`. Fields of which homing keeps no values are empty.
pub static QUEUE: [Field; 38] = [
    field(&["queue_name", "qname"], 15),
    field(&["description", "desc"], 50),
    field(&["priority", "prio"], 10),
    field(&["status", "stat"], 12),
    field(&["max"], 10),
    field(&["jl_u", "jlu"], 10),
    field(&["jl_p", "jlp"], 10),
    field(&["jl_h", "jlh"], 10),
    field(&["njobs"], 10),
    field(&["pend"], 10),
    field(&["run"], 10),
    field(&["susp"], 10),
    field(&["rsv"], 10),
    field(&["ususp"], 10),
    field(&["ssusp"], 10),
    field(&["nice"], 6),
    field(&["max_corelimit", "corelimit"], 8),
    field(&["max_cpulimit", "cpulimit"], 30),
    field(&["default_cpulimit", "def_cpulimit"], 30),
    field(&["max_datalimit", "datalimit"], 8),
    field(&["default_datalimit", "def_datalimit"], 8),
    field(&["max_filelimit", "filelimit"], 8),
    field(&["max_memlimit", "memlimit"], 8),
    field(&["default_memlimit", "def_memlimit"], 8),
    field(&["max_processlimit", "processlimit"], 8),
    field(&["default_processlimit", "def_processlimit"], 8),
    field(&["max_runlimit", "runlimit"], 12),
    field(&["default_runlimit", "def_runlimit"], 12),
    field(&["max_stacklimit", "stacklimit"], 8),
    field(&["max_swaplimit", "swaplimit"], 8),
    field(&["max_tasklimit", "tasklimit"], 6),
    field(&["min_tasklimit"], 6),
    field(&["default_tasklimit", "def_tasklimit"], 6),
    field(&["max_threadlimit", "threadlimit"], 6),
    field(&["default_threadlimit", "def_threadlimit"], 6),
    field(&["res_req"], 20),
    field(&["hosts"], 50),
    field(&["users"], 50),
];

/// The fields of `bhosts -o`. Fields of which homing keeps no values are empty.
pub static HOST: [Field; 21] = [
    field(&["host_name", "hname"], 20),
    field(&["status", "stat"], 15),
    field(&["cpuf"], 10),
    field(&["jl_u", "jlu"], 8),
    field(&["max"], 8),
    field(&["njobs"], 8),
    field(&["run"], 8),
    field(&["ssusp"], 8),
    field(&["ususp"], 8),
    field(&["rsv"], 8),
    field(&["dispatch_window", "dispwin"], 50),
    field(&["ngpus", "ng"], 5),
    field(&["ngpus_alloc", "ngu"], 5),
    field(&["ngpus_excl_alloc", "ngx"], 5),
    field(&["ngpus_shared_alloc", "ngs"], 5),
    field(&["ngpus_shared_jexcl_alloc", "ngsjx"], 5),
    field(&["ngpus_excl_avail", "ngfx"], 5),
    field(&["ngpus_shared_avail", "ngfs"], 5),
    field(&["attribute", "attr"], 50),
    field(&["mig_alloc"], 5),
    field(&["comments"], 50),
];

/// Returns the value of a field of a queue.
pub fn of_queue(field: &str, q: &Queue) -> Option<String> {
    let [max, user, processor, host] = q.limits;
    let [jobs, pend, run, susp] = q.slots;
    let limit = |of: Option<u32>| of.map(|n| n.to_string());
    let minutes = |of: Option<u64>| of.map(|n| format!("{n}.0"));
    let or_all = |of: &[String]| if of.is_empty() { "all".into() } else { of.join(" ") };
    match field {
        "queue_name" => Some(q.name.clone()),
        "description" => Some(q.description.clone()),
        "priority" => Some(q.priority.to_string()),
        "status" => Some(q.status()),
        "max" => limit(max),
        "jl_u" => limit(user),
        "jl_p" => limit(processor),
        "jl_h" => limit(host),
        "njobs" => Some(jobs.to_string()),
        "pend" => Some(pend.to_string()),
        "run" => Some(run.to_string()),
        "susp" => Some(susp.to_string()),
        "rsv" => Some("0".into()),
        "nice" => Some(q.nice.to_string()),
        "max_cpulimit" => minutes(q.cpu_limit),
        "max_runlimit" => minutes(q.run_limit),
        "max_memlimit" => q.memory_limit.map(|mib| format!("{mib} M")),
        "hosts" => Some(or_all(&q.hosts)),
        "users" => Some(or_all(&q.users)),
        _ => None,
    }
}

/// Returns the value of a field of a host.
pub fn of_host(field: &str, h: &BatchHost) -> Option<String> {
    let [run, ssusp, ususp] = h.slots;
    match field {
        "host_name" => Some(h.name.clone()),
        "status" => Some(h.status.clone()),
        "cpuf" => Some("1.00".into()),
        "jl_u" => h.per_user.map(|n| n.to_string()),
        "max" => h.max.map(|n| n.to_string()),
        "njobs" => Some((run + ssusp + ususp).to_string()),
        "run" => Some(run.to_string()),
        "ssusp" => Some(ssusp.to_string()),
        "ususp" => Some(ususp.to_string()),
        "rsv" => Some("0".into()),
        "comments" => h.comment.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    #[test]
    fn queues_and_hosts_by_the_names_of_lsf() {
        let q = Queue {
            name: "normal".into(),
            priority: 30,
            open: true,
            active: true,
            in_window: true,
            ..Queue::default()
        };
        let columns = Columns::parse("queue_name:-8 prio status max hosts delimiter='|'", &QUEUE).unwrap();
        assert_eq!(columns.head(), "QUEUE_NAME|PRIORITY|STATUS|MAX|HOSTS\n");
        assert_eq!(columns.row(&|field| of_queue(field, &q)), "normal|30|Open:Active|-|all\n");
        let h = BatchHost {
            name: "n1".into(),
            status: "closed_Adm".into(),
            max: Some(4),
            slots: [1, 1, 0],
            ..BatchHost::default()
        };
        let columns = Columns::parse("hname:5 stat max:-4 njobs:5", &HOST).unwrap();
        assert_eq!(columns.row(&|field| of_host(field, &h)), "n1    closed_Adm         4 2     \n");
        for fields in [&QUEUE[..], &HOST] {
            for (at, field) in fields.iter().enumerate() {
                assert!(!fields[..at].iter().any(|other| other.names.contains(&field.names[0])), "{field:?}");
            }
        }
        assert!(Columns::parse("ut", &HOST).unwrap_err().contains("not supported"));
    }
}
