//! The fields of `bjobs -o`.

use crate::columns::{Field, field};
use crate::jobs::JobReport;
use crate::time;
use jiff::tz::TimeZone;

/// Names of LSF 10, the first for the head, and default widths. Fields of which homing keeps no values are empty.
pub static FIELDS: [Field; 98] = [
    field(&["jobid", "id"], 7),
    field(&["jobindex"], 8),
    field(&["stat"], 5),
    field(&["user"], 7),
    field(&["user_group", "ugroup"], 15),
    field(&["queue"], 10),
    field(&["job_name", "name"], 10),
    field(&["job_description", "description"], 17),
    field(&["proj_name", "proj", "project"], 11),
    field(&["application", "app"], 13),
    field(&["service_class", "sla"], 13),
    field(&["job_group", "group"], 10),
    field(&["job_priority", "priority"], 12),
    field(&["rsvid"], 40),
    field(&["esub"], 20),
    field(&["kill_reason"], 50),
    field(&["suspend_reason"], 50),
    field(&["resume_reason"], 50),
    field(&["kill_issue_host"], 50),
    field(&["suspend_issue_host"], 50),
    field(&["resume_issue_host"], 50),
    field(&["dependency"], 15),
    field(&["pend_reason"], 11),
    field(&["delay_schedule"], 10),
    field(&["command", "cmd"], 15),
    field(&["pre_exec_command", "pre_cmd"], 16),
    field(&["post_exec_command", "post_cmd"], 17),
    field(&["resize_notification_command", "resize_cmd"], 27),
    field(&["pids"], 20),
    field(&["exit_code"], 10),
    field(&["exit_reason"], 50),
    field(&["interactive"], 11),
    field(&["from_host"], 11),
    field(&["first_host"], 11),
    field(&["exec_host"], 11),
    field(&["nexec_host"], 10),
    field(&["ask_hosts"], 30),
    field(&["alloc_slot"], 20),
    field(&["nalloc_slot", "nalloc"], 10),
    field(&["host_file"], 10),
    field(&["exclusive"], 13),
    field(&["nreq_slot"], 10),
    field(&["submit_time"], 15),
    field(&["start_time"], 15),
    field(&["estimated_start_time", "estart_time"], 20),
    field(&["specified_start_time", "sstart_time"], 20),
    field(&["specified_terminate_time", "sterminate_time"], 24),
    field(&["time_left"], 11),
    field(&["finish_time"], 16),
    field(&["estimated_run_time", "ertime"], 20),
    field(&["ru_utime"], 12),
    field(&["ru_stime"], 12),
    field(&["%complete"], 11),
    field(&["warning_action", "warn_act"], 15),
    field(&["action_warning_time", "warn_time"], 19),
    field(&["pendstate"], 9),
    field(&["pend_time"], 12),
    field(&["ependtime"], 12),
    field(&["ipendtime"], 12),
    field(&["cpu_used"], 10),
    field(&["run_time"], 15),
    field(&["idle_factor"], 11),
    field(&["exception_status", "except_stat"], 16),
    field(&["slots", "nslots"], 5),
    field(&["mem"], 10),
    field(&["max_mem"], 10),
    field(&["avg_mem"], 10),
    field(&["memlimit"], 10),
    field(&["swap"], 10),
    field(&["swaplimit"], 10),
    field(&["gpu_num", "gnum"], 10),
    field(&["gpu_mode", "gmode"], 20),
    field(&["gpu_alloc", "galloc"], 30),
    field(&["nthreads"], 10),
    field(&["hrusage"], 50),
    field(&["min_req_proc"], 12),
    field(&["max_req_proc"], 12),
    field(&["effective_resreq", "eresreq", "combined_resreq", "cresreq"], 17),
    field(&["network_req"], 15),
    field(&["filelimit"], 10),
    field(&["corelimit"], 10),
    field(&["stacklimit"], 10),
    field(&["processlimit"], 12),
    field(&["runtimelimit"], 12),
    field(&["input_file"], 10),
    field(&["output_file"], 10),
    field(&["error_file"], 10),
    field(&["output_dir"], 15),
    field(&["sub_cwd"], 10),
    field(&["exec_home"], 10),
    field(&["exec_cwd"], 10),
    field(&["forward_cluster", "fwd_cluster"], 15),
    field(&["forward_time", "fwd_time"], 15),
    field(&["srcjobid"], 8),
    field(&["dstjobid"], 8),
    field(&["source_cluster", "srcluster"], 15),
    field(&["energy"], 10),
    field(&["block"], 5),
];

/// Returns the value of a field.
pub fn value(field: &str, job: &JobReport, zone: &TimeZone, now_ns: i64) -> Option<String> {
    let seconds = |ns: i64| (ns.max(0) / 1_000_000_000).to_string();
    let mib = |kib: u64| format!("{} Mbytes", kib.div_ceil(1024));
    Some(match field {
        "jobid" => job.id.to_string(),
        "jobindex" => job.index.unwrap_or(0).to_string(),
        "stat" => job.stat.into(),
        "user" => job.user.clone(),
        "queue" => job.queue.clone(),
        "job_name" => job.shown_name(),
        "from_host" => job.from_host.clone(),
        "exec_host" | "alloc_slot" => exec_hosts(&job.exec_hosts),
        "submit_time" => time::short(job.submit_ns, zone),
        "start_time" => time::short(job.start_ns?, zone),
        "finish_time" => time::short(job.end_ns?, zone),
        "exit_code" => job.exit.filter(|code| *code != 0)?.to_string(),
        "exit_reason" => job.reasons.first().filter(|_| job.is_over())?.clone(),
        "pend_reason" => job.reasons.first().filter(|_| job.is_waiting())?.clone(),
        "command" => job.command.replace('\n', ";"),
        "proj_name" => job.project.clone(),
        "slots" | "min_req_proc" | "max_req_proc" | "nreq_slot" => job.slots.to_string(),
        "application" => job.app.clone()?,
        "job_group" => job.group.clone(),
        "first_host" => job.exec_hosts.first()?.clone(),
        "time_left" => left(job, now_ns)?,
        "runtimelimit" => format!("{:.1}", job.limit_s? as f64 / 60.0),
        "%complete" => complete(job, now_ns)?,
        "nalloc_slot" => job.start_ns.map(|_| job.slots.to_string())?,
        "nexec_host" => {
            let mut hosts = job.exec_hosts.clone();
            hosts.dedup();
            hosts.len().to_string()
        }
        "run_time" => format!("{} second(s)", seconds(job.end_ns.unwrap_or(now_ns) - job.start_ns?)),
        "pend_time" => seconds(job.start_ns.or(job.end_ns).unwrap_or(now_ns) - job.submit_ns),
        "cpu_used" => format!("{:.1} second(s)", job.cpu_ms? as f64 / 1000.0),
        "max_mem" | "mem" => mib(job.max_rss_kib?),
        "sub_cwd" | "exec_cwd" => job.cwd.clone(),
        "output_file" => job.output.clone()?,
        "error_file" => job.error.clone()?,
        "input_file" => job.input.clone()?,
        "dependency" => job.after.clone()?,
        "ask_hosts" => job.asked_hosts.join(" "),
        "effective_resreq" => job.require.clone(),
        _ => return None,
    })
}

/// Returns hours and minutes until the run limit, with LSF's mark of a limit.
fn left(job: &JobReport, now_ns: i64) -> Option<String> {
    let ran_s = (now_ns - job.start_ns.filter(|_| !job.is_over())?) / 1_000_000_000;
    let minutes = (i64::try_from(job.limit_s?).ok()? - ran_s).max(0) / 60;
    Some(format!("{}:{} L", minutes / 60, minutes % 60))
}

/// Returns the part of its run limit that a job has used, as LSF counts it.
fn complete(job: &JobReport, now_ns: i64) -> Option<String> {
    let ran_ns = job.end_ns.unwrap_or(now_ns) - job.start_ns?;
    let limit_s = job.limit_s.filter(|limit| *limit > 0)?;
    Some(format!("{:.2}% L", ran_ns.max(0) as f64 / 1e7 / limit_s as f64))
}

/// Formats `2*h1:h2`.
fn exec_hosts(hosts: &[String]) -> String {
    let groups: Vec<String> = hosts
        .chunk_by(|a, b| a == b)
        .map(|own| if own.len() > 1 { format!("{}*{}", own.len(), own[0]) } else { own[0].clone() })
        .collect();
    groups.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    fn job() -> JobReport {
        JobReport {
            id: 12345678,
            stat: "RUN",
            name: "a long name of a job".into(),
            start_ns: Some(1_000_000_000),
            slots: 2,
            exec_hosts: vec!["h".into(), "h".into()],
            ..JobReport::default()
        }
    }
    fn table(text: &str, head: bool) -> String {
        let columns = Columns::parse(text, &FIELDS).unwrap();
        let head = if head { columns.head() } else { String::new() };
        head + &columns.row(&|field| value(field, &job(), &TimeZone::UTC, 8_000_000_000))
    }

    #[test]
    fn columns_as_snakemake_and_others_ask_for_them() {
        assert_eq!(table("jobid stat", false), "12345678 RUN   \n");
        assert_eq!(table("stat", true), "STAT  \nRUN   \n");
        assert_eq!(table("JOBID:-10 job_name:8 exit_code", false), "  12345678 *f a job -          \n");
        assert_eq!(
            table("jobid job_name run_time exec_host delimiter=','", false),
            "12345678,a long name of a job,7 second(s),2*h\n"
        );
        assert_eq!(table("jobid queue delimiter=\"^\" stat", true), "JOBID^QUEUE^STAT\n12345678^-^RUN\n");
        let text = "id max_req_proc memlimit avg_mem swap first_host %complete kill_reason delimiter='|'";
        assert_eq!(table(text, false), "12345678|2|-|-|-|h|-|-\n");
        let all = table("all delimiter=','", true);
        assert!(all.starts_with("JOBID,JOBINDEX,") && all.lines().all(|line| line.split(',').count() == FIELDS.len()));
        assert!(Columns::parse("colour", &FIELDS).unwrap_err().contains("colour"));
        assert!(Columns::parse("jobid:x", &FIELDS).is_err());
    }
}
