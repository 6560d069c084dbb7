//! Builds fio's arguments and reads its answer. The sizes and the number of files come from the options of the command
//! (`Setup`).

use super::{Bench, CaseResult, sh};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// An operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FioOperation {
    /// Sequential writes, synced at the end.
    Write,
    /// Sequential reads.
    Read,
    /// Random writes, synced at the end.
    Randwrite,
    /// Random reads.
    Randread,
    /// Creating small files.
    Create,
    /// Reading their attributes, as `ls -l` does.
    Stat,
    /// Removing small files.
    Unlink,
}

impl FioOperation {
    /// All operations, in the order in which they are measured.
    pub const ALL: [FioOperation; 7] = [
        FioOperation::Write,
        FioOperation::Read,
        FioOperation::Randwrite,
        FioOperation::Randread,
        FioOperation::Create,
        FioOperation::Stat,
        FioOperation::Unlink,
    ];

    /// Whether it handles small files of one block each.
    pub fn is_small_files(self) -> bool {
        matches!(self, FioOperation::Create | FioOperation::Stat | FioOperation::Unlink)
    }

    /// Whether it measures reading.
    pub fn reads(self) -> bool {
        matches!(self, FioOperation::Read | FioOperation::Randread | FioOperation::Stat)
    }

    /// Operations that must run first.
    pub fn before(self) -> &'static [FioOperation] {
        match self {
            FioOperation::Read | FioOperation::Randread | FioOperation::Randwrite => &[FioOperation::Write],
            FioOperation::Stat | FioOperation::Unlink => &[FioOperation::Create],
            FioOperation::Write | FioOperation::Create => &[],
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            FioOperation::Write => "write",
            FioOperation::Read => "read",
            FioOperation::Randwrite => "randwrite",
            FioOperation::Randread => "randread",
            FioOperation::Create => "create",
            FioOperation::Stat => "stat",
            FioOperation::Unlink => "unlink",
        }
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Its operation.
    pub op: FioOperation,
    /// Block size in fio's syntax.
    pub bs: String,
    /// Number of hosts at once.
    pub clients: usize,
    /// Copies of the files, if they were set.
    pub copies: Option<u32>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let clients = if self.clients == 1 { "client" } else { "clients" };
        write!(f, "{} {} by {} {clients}", self.op.name(), self.bs, self.clients)?;
        match self.copies {
            Some(1) => f.write_str(", 1 copy"),
            Some(c) => write!(f, ", {c} copies"),
            None => Ok(()),
        }
    }
}

/// Replaces fio's filestat, which queries every file before its clock starts and therefore measures a cache (it
/// showed 200,000 files/s over a network). The answer has fio's format.
const STAT: &str = r#"
cd -- "$1/f.$2" || exit; t=$(date +%s%N)
n=$(find . -type f -printf '%s\n' | wc -l); t=$(( $(date +%s%N) - t ))
ms=$(awk "BEGIN {print $t / 1e6}")
echo "{\"jobs\":[{\"job_runtime\":$ms,\"read\":{\"total_ios\":$n,\"io_bytes\":0,\"runtime\":$ms},\"write\":{}}]}"
"#;

/// Returns the command of fio on one host; `whose` is the host whose file it works on.
pub fn argv(case: &Case, folder: &str, bench: &Bench, whose: usize) -> Vec<String> {
    let (size, random, files) =
        (bench.setup.size.to_string(), bench.setup.random_size.to_string(), bench.setup.files.to_string());
    // Several files: a single one lies on one brick or chunk, and the result would be that of its server alone.
    let base = "exec fio --name=b --output-format=json --thread --fallocate=none --group_reporting --directory=\"$1\" \
        --filename_format='f.'$2'.$filenum' --nrfiles=\"$7\" --file_service_type=sequential";
    // 4096 bytes count as a small file in most file systems; each host has a folder of its own.
    let small = |engine: &str| {
        format!(
            "mkdir -p -- \"$1/f.$2\" && exec fio --name=b --output-format=json --thread --ioengine={engine} --rw=write \
             --directory=\"$1/f.$2\" --nrfiles=\"$4\" --filesize=4k --size=$(($4*4))k --bs=4k --openfiles=1 --fallocate=none --create_on_open=0"
        )
    };
    let text = match case.op {
        FioOperation::Write => {
            format!("{base} --rw=write --bs=\"$5\" --size=\"$3\" --end_fsync=1 --ioengine=psync")
        }
        FioOperation::Read => {
            format!("{base} --rw=read --bs=\"$5\" --size=\"$3\" --ioengine=psync --invalidate=1")
        }
        FioOperation::Randwrite => {
            format!("{base} --rw=randwrite --bs=\"$5\" --size=\"$3\" --io_size=\"$6\" --end_fsync=1 --ioengine=psync")
        }
        FioOperation::Randread => {
            format!("{base} --rw=randread --bs=\"$5\" --size=\"$3\" --io_size=\"$6\" --ioengine=psync --invalidate=1")
        }
        FioOperation::Create => small("filecreate"),
        FioOperation::Stat => STAT.into(),
        FioOperation::Unlink => small("filedelete"),
    };
    sh(&text, &[folder, &whose.to_string(), &size, &files, &case.bs, &random, &bench.setup.in_files.max(1).to_string()])
}

/// Sums up all hosts: bytes over the time of the slowest, because a host that is done early must not improve the
/// result.
pub fn row(case: &Case, texts: &[String]) -> Option<CaseResult> {
    let (mut bytes, mut ops, mut longest, mut p99) = (0.0, 0.0, 0.0_f64, 0.0_f64);
    for text in texts {
        let answer: Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
        let job = &answer["jobs"][0];
        let side = if job["read"]["total_ios"].as_f64()? > 0.0 { &job["read"] } else { &job["write"] };
        let done = side["total_ios"].as_f64()?;
        ops += done;
        bytes += side["io_bytes"].as_f64()?;
        // The runtime of the job includes the final sync, which io_bytes/runtime leaves out.
        longest = longest.max(side["runtime"].as_f64()?.max(job["job_runtime"].as_f64()?) / 1e3);
        p99 = p99.max(side["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap_or(0.0) / 1e6);
    }
    let seconds = longest.max(1e-3);
    let mb_per_s = if case.op.is_small_files() { 0.0 } else { bytes / 1e6 / seconds };
    Some(CaseResult { case: case.clone(), mb_per_s, per_s: ops / seconds, p99_ms: p99, share: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_host_keeps_the_clock() {
        let said = |ms: u32| {
            format!(
                "note: x\n{{\"jobs\":[{{\"job_runtime\":{ms},\"read\":{{\"total_ios\":0,\"io_bytes\":0,\"runtime\":0}},\
                 \"write\":{{\"total_ios\":100,\"io_bytes\":100000000,\"runtime\":500,\
                 \"clat_ns\":{{\"percentile\":{{\"99.000000\":{ms}000000}}}}}}}}]}}"
            )
        };
        let case = Case { op: FioOperation::Write, bs: "1M".into(), clients: 2, copies: Some(2) };
        let row = row(&case, &[said(1000), said(2000)]).unwrap();
        assert_eq!((row.mb_per_s, row.per_s, row.p99_ms), (100.0, 100.0, 2000.0));
    }
}
