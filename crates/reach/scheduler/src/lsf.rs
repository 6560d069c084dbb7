//! LSF: IBM's, and OpenLava. A worker is a job of `bsub -I`, whose standard input and output are clean in both directions.
//! In the job around this process it is started by `blaunch`, or by `lsrun` in OpenLava, which has no blaunch.
//!
//! The tables of `bhosts -w`, `lshosts -w` and `bqueues -l` have had the same columns since LSF 4. With `LSB_NTRIES=1`
//! a command ends when no daemon answers; by default it tries for ever.

mod end;
mod request;
mod tables;

use crate::command::command;
use crate::{Allocation, AskError, BatchEnd, BatchNode, BatchSystem, WorkerRequest, WorkerStart, job_name};
use homing_model::links::Switch;
use homing_os::process::is_on_path;
use std::ffi::OsString;

/// Starts workers by LSF's commands.
#[derive(Debug)]
pub(crate) struct LsfSystem;

impl BatchSystem for LsfSystem {
    fn name(&self) -> &'static str {
        "LSF"
    }

    fn is_configured(&self) -> bool {
        std::env::var_os("LSF_ENVDIR").is_some()
    }

    fn answers(&self) -> bool {
        // homing has commands of the same names.
        self.is_configured() && query("reading the version of LSF", &["lsid"]).is_ok_and(is_real)
    }

    fn listing(&self) -> &'static str {
        "bhosts -w"
    }

    fn waiting(&self) -> &'static str {
        "bjobs -p"
    }

    fn usual_queue(&self) -> Option<String> {
        std::env::var("LSB_DEFAULTQUEUE").ok()
    }

    fn nodes(&self, queue: Option<&str>) -> Result<Vec<BatchNode>, AskError> {
        let hosts = query("reading the hosts from LSF", &["bhosts", "-w"])?;
        let kinds = query("reading the processors of hosts from LSF", &["lshosts", "-w"])?;
        let nodes = tables::nodes(&hosts, &kinds);
        let Some(queue) = queue else { return Ok(nodes) };
        match query("reading a queue from LSF", &["bqueues", "-l", queue]) {
            Ok(of) => Ok(tables::of_queue(nodes, &of)),
            Err(error) if error.to_string().contains("No such queue") => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn reservation(&self, name: &str) -> Result<Vec<String>, AskError> {
        Ok(tables::reserved(&query("reading a reservation from LSF", &["brsvs", "-w", name])?))
    }

    fn wanted_empty(&self, names: &[String]) -> Vec<(String, String)> {
        let words: Vec<&str> = ["bhosts", "-w"].into_iter().chain(names.iter().map(String::as_str)).collect();
        query("reading the state of hosts from LSF", &words).map_or_else(|_| Vec::new(), |text| tables::closed(&text))
    }

    fn switches(&self) -> Vec<Switch> {
        Vec::new()
    }

    fn allocation(&self, var: &dyn Fn(&str) -> Option<String>) -> Option<Allocation> {
        Allocation::of_lsf(var)
    }

    fn refuses(&self, request: &WorkerRequest) -> Option<String> {
        request.lsf_refuses()
    }

    fn start(&self, request: &WorkerRequest, worker: WorkerStart) -> Vec<OsString> {
        let launcher: &[&str] = if is_on_path("blaunch") { &["blaunch"] } else { &["lsrun", "-m"] };
        request.lsf_start(worker, launcher)
    }

    fn keeps(&self, variable: &str) -> bool {
        // The first drops the line with the job's number.
        !["BSUB_QUIET", "LSB_INTERACTIVE"].contains(&variable)
    }

    fn queued_job(&self, output: &str) -> Option<String> {
        end::queued_job(output)
    }

    fn is_passing(&self, message: &str) -> bool {
        end::is_passing(message)
    }

    fn complaint(&self, output: &str) -> Option<String> {
        end::complaint(output)
    }

    fn refusal(&self, request: &WorkerRequest, message: &str) -> String {
        request.lsf_refusal(message)
    }

    fn end(&self, job: Option<&str>, own: bool, _: &str) -> Option<BatchEnd> {
        let job = job.filter(|_| own)?;
        end::end(job, &query("reading the state of a job from LSF", &["bjobs", "-l", job]).ok()?)
    }

    fn cancel(&self, job: &str) {
        let _ = query("cancelling a job", &["bkill", job]);
    }

    fn cancel_on(&self, node: &str, run: &str) {
        let _ = query("cancelling a run's jobs", &["bkill", "-J", &job_name(run), "-m", node, "0"]);
    }

    fn cancelling(&self) -> &'static str {
        "LSB_NTRIES=1 bkill -J \"$1\" 0"
    }
}

/// Whether the output of `lsid` is that of a real LSF, and not of homing's own command of that name.
fn is_real(lsid: String) -> bool {
    !lsid.contains("homing")
}

fn query(doing: &'static str, words: &[&str]) -> Result<String, AskError> {
    let all: Vec<&str> = ["env", "LSB_NTRIES=1"].into_iter().chain(words.iter().copied()).collect();
    command(doing, &all, &[], None)
}
