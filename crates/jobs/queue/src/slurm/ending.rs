//! Writes LSF's report at the end of the output file of a Slurm job. The batch script itself writes it, because that
//! host may not have homing.

use crate::report::{ReportParts, home, layout, time};
use crate::{JobSpec, Private};
use homing_model::text::quoted;

/// The longest part of a job's script in its report: sbatch's own limit is for both together.
const SHOWN_SCRIPT: usize = 64 << 10;

/// Returns lines that run `line` and then report its end on standard output, which is the output file.
///
/// The shell catches the signal that ends its job, and outlives the job by a moment. A trap that does nothing is not
/// inherited by the job, unlike an ignored signal.
pub(super) fn reported(line: &[u8], spec: &JobSpec, private: &Private) -> Vec<u8> {
    let limit = spec.limit_s.map_or(String::new(), |limit| limit.to_string());
    let after = [AFTER.replace("@LIMIT@", &limit).into_bytes(), text(spec, private), b"exit $homing_status\n".to_vec()];
    [BEFORE.as_bytes(), line, b"\n", &after.concat()].concat()
}

const BEFORE: &str = r#"homing_date() { LC_ALL=C date '+%a %b %e %H:%M:%S %Y'; }
homing_began=$(date +%s) homing_started=$(homing_date) homing_why= homing_times=$(mktemp)
trap : HUP INT QUIT USR1 USR2 ALRM
trap 'homing_why=OWNER' TERM
"#;

const AFTER: &str = r#"homing_status=$?
homing_ended=$(homing_date) homing_wall=$(($(date +%s) - homing_began)) homing_limit=@LIMIT@
if [ $homing_status = 0 ]; then
homing_how=Done homing_result='Successfully completed.'
else
[ -z "$homing_why" ] || [ $homing_wall -lt ${homing_limit:-999999999} ] || homing_why=LIMIT
case $homing_why in
OWNER) homing_why='TERM_OWNER: job killed by owner.
' ;;
LIMIT) homing_why='TERM_RUNLIMIT: job killed after reaching LSF run time limit.
' ;;
esac
homing_how=Exited homing_result="${homing_why}Exited with exit code $homing_status."
fi
homing_cpu=-
if times > "$homing_times"; then
homing_cpu=$(tail -n 1 "$homing_times" | tr ms '  ' | awk '{printf "%.2f sec.", 60*$1+$2+60*$3+$4}') || homing_cpu=-
fi 2>/dev/null
rm -f "$homing_times"
homing_id=$HOMING_JOB
[ $HOMING_JOB_INDEX = 0 ] || homing_id="$HOMING_JOB[$HOMING_JOB_INDEX]"
"#;

/// Returns the `printf` of the report, with the shell's variables for values that are known only then.
fn text(spec: &JobSpec, private: &Private) -> Vec<u8> {
    let shown = |s: &homing_model::RawText| String::from_utf8_lossy(&s.0[..s.0.len().min(SHOWN_SCRIPT)]).into_owned();
    let script = private.script.as_ref().map(shown);
    // No word of a command can hold a NUL.
    let parts = ReportParts {
        home: &home(private),
        id: "\0id\0",
        host: "\0host\0",
        submitted: &time(spec.submit_ns),
        started: "\0started\0",
        ended: "\0ended\0",
        how: "\0how\0",
        result: "\0result\0",
        cpu: "\0cpu\0",
        // Slurm's accounting may know it later; the shell does not.
        memory: "-",
        wall: "\0wall\0",
    };
    let text = layout(spec, script.as_deref(), &parts);
    let mut out = b"homing_host=$SLURMD_NODENAME\nprintf %s ".to_vec();
    for (at, part) in text.split('\0').enumerate() {
        match at % 2 {
            0 => out.extend(quoted(part.as_bytes())),
            _ => out.extend(format!("\"$homing_{part}\"").bytes()),
        }
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::RawText;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Returns output and exit status of a job with this line, under each shell that may be /bin/sh.
    fn runs(line: &str, script: Option<&str>, limit_s: u64) -> Vec<(String, Option<i32>)> {
        let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"x '\\\\n'"},
                       "name":"","queue":"lab","slots":2,"style":"lsf"}"#;
        let spec = JobSpec { limit_s: Some(limit_s), ..serde_json::from_str(text).unwrap() };
        let private = Private { script: script.map(RawText::from), ..Private::default() };
        let job = reported(line.as_bytes(), &spec, &private);
        ["sh", "bash"]
            .map(|shell| {
                let mut child = Command::new(shell)
                    .envs([("HOMING_JOB", "5"), ("HOMING_JOB_INDEX", "2"), ("SLURMD_NODENAME", "n1")])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                child.stdin.take().unwrap().write_all(&job).unwrap();
                let done = child.wait_with_output().unwrap();
                (String::from_utf8(done.stdout).unwrap(), done.status.code())
            })
            .to_vec()
    }

    /// Returns the line two above the resources, which programs read.
    fn result(text: &str) -> &str {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.iter().position(|l| *l == "Resource usage summary:").unwrap() - 2]
    }

    #[test]
    fn the_batch_script_writes_the_report() {
        for (text, status) in runs("echo out; sh -c 'exit 3'", Some("#!/bin/sh\n'%s' $x\n"), 600) {
            assert_eq!((result(&text), status), ("Exited with exit code 3.", Some(3)), "{text}");
            assert!(text.starts_with("out\n\n---") && text.contains("\nSubject: Job 5[2]: <x '\\\\n'> "), "{text}");
            assert!(text.contains("\n#!/bin/sh\n'%s' $x\n---") && text.contains("on host(s) <2*n1>"), "{text}");
            assert!(text.contains(" sec.\n    Max Memory :                                 -\n"), "{text}");
        }
        for (text, status) in runs("true", None, 600) {
            assert_eq!((result(&text), status), ("Successfully completed.", Some(0)));
        }
    }

    #[test]
    fn an_end_from_outside_is_told_and_its_signal_reaches_the_job() {
        // Slurm signals all processes.
        for (text, status) in runs("sh -c 'kill $PPID; kill $$'", None, 600) {
            assert_eq!((result(&text), status), ("Exited with exit code 143.", Some(143)));
            assert!(text.contains("\nTERM_OWNER: job killed by owner.\nExited"), "{text}");
        }
        for (text, _) in runs("sh -c 'kill $PPID; kill $$'", None, 0) {
            assert!(text.contains("\nTERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited"), "{text}");
        }
    }
}
