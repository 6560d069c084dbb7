//! Paths of HDFS on the command line, with a NameNode of this test's own. tests/night/hdfs uses a real cluster.
#![cfg(feature = "hdfs")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

const STATUS: &str = r#"{"FileStatus":{"length":300,"type":"FILE"}}"#;
const BLOCKS: &str = r#"{"BlockLocations":{"BlockLocation":[
    {"offset":0,"length":200,"corrupt":false,"hosts":["d1","d2"],"names":["192.0.2.1:9866","192.0.2.2:9866"]},
    {"offset":200,"length":100,"corrupt":false,"hosts":["d2"],"names":["192.0.2.2:9866"]}]}}"#;

/// Starts a NameNode that answers as long as the test runs. `/f` is its only file.
fn namenode() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let (status, body) = match lines.first() {
                Some(ask) if ask.contains("/v1/f?op=GETFILESTATUS") => (200, STATUS),
                Some(ask) if ask.contains("/v1/f?op=GETFILEBLOCKLOCATIONS") => (200, BLOCKS),
                _ => (404, r#"{"RemoteException":{"exception":"FileNotFoundException","message":"no"}}"#),
            };
            let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    port
}

fn homing(args: &[&str], webhdfs: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_homing"));
    command.args(args).current_dir(dir.path()).env("HOMING_RUNS", dir.path()).env_remove("HOMING_CLUSTER");
    command.env("HOMING_WEBHDFS", webhdfs).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn where_tells_of_files_on_hdfs_beside_others() {
    let (namenode, own) = (format!("127.0.0.1:{}", namenode()), tempfile::NamedTempFile::new().unwrap());
    let (path, direct) = (own.path().to_str().unwrap(), format!("webhdfs://{namenode}/f"));
    let out =
        homing(&["where", "--fs-timeout", "600", "--json", "hdfs://cluster/f", path, &direct, "hdfs:///g"], &namenode);
    let told_files: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let files = told_files["files"].as_array().unwrap();
    let names: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["hdfs://cluster/f", path, &direct, "hdfs:///g"]);
    assert_eq!(files[0]["extents"], files[2]["extents"]);
    assert_eq!(told_files["hosts"]["192.0.2.2"]["bytes"], 600, "{told_files}");
    assert!(files[3]["reason"].as_str().unwrap().contains("No such file"), "{told_files}");
    assert_eq!(out.status.code(), Some(255), "{}", told(&out));
}

#[test]
fn a_namenode_that_is_not_there_is_told_once_and_keeps_no_task_from_running() {
    // The port was bound and closed, so it has no listener.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let out = homing(
        &["run", "--fs-timeout", "600", "--on", "local", "echo {}", ":::", "hdfs://nn/a", "hdfs://nn/b"],
        &closed,
    );
    let said = told(&out);
    assert!(out.status.success(), "{said}");
    let mut lines: Vec<&[u8]> = out.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect();
    lines.sort();
    assert_eq!(lines, [b"hdfs://nn/a", b"hdfs://nn/b"]);
    assert_eq!(said.matches("tasks that name it run on any host").count(), 1, "{said}");
    let missing = homing(
        &["run", "--fs-timeout", "600", "--on", "local", "echo {}", ":::", "hdfs://nn/new"],
        &format!("127.0.0.1:{}", namenode()),
    );
    assert!(missing.status.success() && !told(&missing).contains("NameNode"), "{}", told(&missing));
}

#[test]
fn a_recipe_reads_what_it_names_on_hdfs() {
    let dir = tempfile::tempdir().unwrap();
    let namenode = format!("127.0.0.1:{}", namenode());
    std::fs::write(dir.path().join("Makefile"), "all:\n\t@test hdfs://cluster/f = hdfs://cluster/f\n").unwrap();
    let mut make = Command::new(env!("CARGO_BIN_EXE_homing"));
    make.args(["make", "--assume-shared", "--hosts", "localhost"]).current_dir(dir.path());
    make.env("HOMING_RUNS", dir.path().join("runs")).env_remove("HOMING_CLUSTER").env_remove("MAKEFLAGS");
    let out = make.env("HOMING_WEBHDFS", namenode).output().unwrap();
    assert!(out.status.success(), "{}", told(&out));
    let run = std::fs::read_dir(dir.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let events: Vec<serde_json::Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let planned = &events.iter().find(|event| event["event"] == "task_started").unwrap()["planned"];
    let bytes = ["local", "remote"].map(|which| planned[which].as_u64().unwrap());
    assert_eq!(bytes.iter().sum::<u64>(), 300, "named twice, read once: {planned}");
}
