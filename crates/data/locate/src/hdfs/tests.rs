use super::*;
use crate::{CandidatePaths, FileSystem, Finder, LocateRequest, Locator, Volume};
use homing_model::{Command, Extent, Mount, RawText, Replica, Task};
use homing_mounts::FileSystemKind;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

// Recorded from Hadoop 3.3.6: a file of 2,500,000 bytes in blocks of 1 MiB, two copies of each.
const STATUS: &str = r#"{"FileStatus":{"accessTime":1795674082069,"blockSize":1048576,"childrenNum":0,"fileId":16389,"group":"supergroup","length":2500000,"modificationTime":1795674082867,"owner":"root","pathSuffix":"","permission":"644","replication":2,"storagePolicy":0,"type":"FILE"}}"#;
const DIRECTORY: &str = r#"{"FileStatus":{"accessTime":0,"blockSize":0,"childrenNum":2,"fileId":16386,"group":"supergroup","length":0,"modificationTime":1795674084883,"owner":"root","pathSuffix":"","permission":"755","replication":0,"storagePolicy":0,"type":"DIRECTORY"}}"#;
const BLOCKS: &str = r#"{"BlockLocations":{"BlockLocation":[{"topologyPaths":["/default-rack/10.77.1.3:9866","/default-rack/10.77.1.2:9866"],"corrupt":false,"cachedHosts":[],"names":["10.77.1.3:9866","10.77.1.2:9866"],"offset":0,"hosts":["n3","n2"],"length":1048576,"storageTypes":["DISK","DISK"]},{"topologyPaths":["/default-rack/10.77.1.1:9866","/default-rack/10.77.1.2:9866"],"corrupt":false,"cachedHosts":[],"names":["10.77.1.1:9866","10.77.1.2:9866"],"offset":1048576,"hosts":["n1","n2"],"length":1048576,"storageTypes":["DISK","DISK"]},{"topologyPaths":["/default-rack/10.77.1.2:9866","/default-rack/10.77.1.3:9866"],"corrupt":false,"cachedHosts":[],"names":["10.77.1.2:9866","10.77.1.3:9866"],"offset":2097152,"hosts":["n2","n3"],"length":402848,"storageTypes":["DISK","DISK"]}]}}"#;
// The same in the older form, which lists each block with its DataNodes. The second block covers the rest of the file.
const OLDER: &str = r#"{"LocatedBlocks":{"fileLength":2500000,"isLastBlockComplete":true,"isUnderConstruction":false,"lastLocatedBlock":null,"locatedBlocks":[{"block":{"blockId":1073741828,"blockPoolId":"BP-1581855385-10.77.1.1-1795673987770","generationStamp":1004,"numBytes":1048576},"blockToken":{"urlString":"AAAAAA"},"cachedLocations":[],"isCorrupt":false,"locations":[{"adminState":"NORMAL","blockPoolUsed":2544129,"cacheCapacity":0,"cacheUsed":0,"capacity":4143677440,"dfsUsed":2544129,"hostName":"n2","infoPort":9864,"infoSecurePort":0,"ipAddr":"10.77.1.2","ipcPort":9867,"lastBlockReportMonotonic":43133818,"lastBlockReportTime":1795674047760,"lastUpdate":1795674086793,"lastUpdateMonotonic":43172851,"name":"10.77.1.2:9866","networkLocation":"/default-rack","remaining":4121755648,"storageID":"180b8a7d-a235-46af-a616-f9961faac45b","xceiverCount":0,"xferPort":9866}],"startOffset":0,"storageTypes":["DISK"]},{"block":{"blockId":1073741829,"blockPoolId":"BP-1581855385-10.77.1.1-1795673987770","generationStamp":1005,"numBytes":1451424},"blockToken":{"urlString":"AAAAAA"},"cachedLocations":[],"isCorrupt":false,"locations":[{"adminState":"NORMAL","hostName":"n1","ipAddr":"10.77.1.1","name":"10.77.1.1:9866","xferPort":9866}],"startOffset":1048576,"storageTypes":["DISK"]}]}}"#;
const MISSING: &str = r#"{"RemoteException":{"exception":"FileNotFoundException","javaClassName":"java.io.FileNotFoundException","message":"File does not exist: /missing"}}"#;
const UNKNOWN_OP: &str = r#"{"RemoteException":{"exception":"IllegalArgumentException","javaClassName":"java.lang.IllegalArgumentException","message":"Invalid value for webhdfs parameter \"op\": GETFILEBLOCKLOCATIONS is not a valid GET operation."}}"#;
const STANDBY: &str = r#"{"RemoteException":{"exception":"StandbyException","javaClassName":"org.apache.hadoop.ipc.StandbyException","message":"Operation category READ is not supported in state standby.\u001b[2J"}}"#;

/// Long enough for the slowest machine.
const PATIENT: Duration = Duration::from_secs(600);

/// Formats an answer as Jetty does, in chunks, here in two of them.
fn chunked(status: u16, body: &str) -> Vec<u8> {
    let (one, two) = body.split_at(body.len() / 2);
    let chunks = format!("{:x}\r\n{one}\r\n{:X};x=1\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
    let head = "Pragma: no-cache\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked";
    format!("HTTP/1.1 {status} Something\r\n{head}\r\n\r\n{chunks}").into_bytes()
}

/// Reads a query and returns its first line.
fn question(stream: &mut std::net::TcpStream) -> String {
    let mut ask = Vec::new();
    while !ask.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        ask.push(byte[0]);
    }
    String::from_utf8(ask).unwrap().lines().next().unwrap().to_string()
}

/// Starts a NameNode that gives these answers, each to one query. Also returns the received queries.
fn namenode(answers: Vec<Vec<u8>>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, asked) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
    let log = asked.clone();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            log.lock().unwrap().push(question(&mut stream));
            // The client may have closed the connection after reading enough.
            let _ = stream.write_all(&answer);
        }
    });
    (port, asked)
}

fn located(answers: Vec<Vec<u8>>, path: &str) -> (FileLayout, Vec<String>) {
    let (port, asked) = namenode(answers);
    let layout = Locator::default().patient(PATIENT).locate(Path::new(&format!("webhdfs://127.0.0.1:{port}{path}")));
    let asked =
        asked.lock().unwrap().iter().map(|line| line.split("&user.name=").next().unwrap().to_string()).collect();
    (layout, asked)
}

fn places(layout: &FileLayout) -> Vec<(u64, u64, String)> {
    let hosts = |e: &Extent| e.replicas.iter().map(|r| r.host.clone()).collect::<Vec<_>>().join(",");
    layout.extents.iter().map(|e| (e.offset, e.length, hosts(e))).collect()
}

fn place(offset: u64, length: u64, hosts: &str) -> (u64, u64, String) {
    (offset, length, hosts.into())
}

#[test]
fn blocks_lie_on_their_datanodes() {
    let (layout, asked) = located(vec![chunked(200, STATUS), chunked(200, BLOCKS)], "//d/a b%20ü?#/");
    assert_eq!((layout.size, layout.reason.clone()), (2_500_000, None));
    let three = [
        place(0, 1 << 20, "10.77.1.3,10.77.1.2"),
        place(1 << 20, 1 << 20, "10.77.1.1,10.77.1.2"),
        place(2 << 20, 402_848, "10.77.1.2,10.77.1.3"),
    ];
    assert_eq!(places(&layout), three);
    let path = "GET /webhdfs/v1/d/a%20b%2520%C3%BC%3F%23?op=";
    assert_eq!(asked, [format!("{path}GETFILESTATUS"), format!("{path}GETFILEBLOCKLOCATIONS")]);
}

#[test]
fn a_connection_that_stays_open_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let word = PathBuf::from(format!("webhdfs://{}/f", listener.local_addr().unwrap()));
    let asked = std::thread::spawn(move || {
        let mut served = Vec::new();
        // The second connection is closed after one answer. The third announces that it will be closed.
        for answers in [vec![chunked(200, STATUS), chunked(200, BLOCKS)], vec![chunked(200, STATUS)], vec![closing()]] {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                served.push(question(&mut stream).contains("GETFILESTATUS"));
                stream.write_all(&answer).unwrap();
            }
        }
        served
    });
    let hdfs = Hdfs::default().patient(PATIENT);
    let size = || hdfs.locate(&word, hdfs.until()).unwrap().size;
    assert_eq!([size(), size()], [2_500_000; 2]);
    assert_eq!(asked.join().unwrap(), [true, false, true, false]);
}

fn closing() -> Vec<u8> {
    let length = BLOCKS.len();
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{BLOCKS}").into_bytes()
}

#[test]
fn a_server_of_hadoop_2_is_asked_as_it_knows() {
    let (layout, asked) = located(vec![chunked(200, STATUS), chunked(400, UNKNOWN_OP), chunked(200, OLDER)], "/f");
    assert_eq!(places(&layout), [place(0, 1 << 20, "10.77.1.2"), place(1 << 20, 1_451_424, "10.77.1.1")]);
    assert!(layout.reason.is_none() && asked[2].ends_with("op=GET_BLOCK_LOCATIONS"), "{asked:?}");
}

#[test]
fn what_is_not_told_is_a_reason_and_never_a_guess() {
    let block = |offset: u64, length: u64, names: &str, corrupt: bool| {
        format!(r#"{{"names":[{names}],"offset":{offset},"length":{length},"corrupt":{corrupt}}}"#)
    };
    let blocks = |some: &[String]| format!(r#"{{"BlockLocations":{{"BlockLocation":[{}]}}}}"#, some.join(","));
    let (first, all) = (block(0, 1_000_000, r#""10.1.1.1:9866""#, false), 2_500_000);
    let coded = STATUS.replace(r#""owner""#, r#""ecBit":true,"ecPolicy":"RS-6-3-1024k","owner""#);
    let cut = [chunked(200, STATUS), chunked(200, BLOCKS)[..700].to_vec()].to_vec();
    let status = |then: String| vec![chunked(200, STATUS), chunked(200, &then)];
    for (answers, why) in [
        (vec![chunked(404, MISSING)], "No such file or directory (os error 2)"),
        (vec![chunked(200, DIRECTORY)], "it is a directory of HDFS"),
        (vec![chunked(200, &coded)], "it is erasure-coded (RS-6-3-1024k)"),
        (
            vec![chunked(403, STANDBY)],
            "StandbyException: Operation category READ is not supported in state standby.\\u{1b}",
        ),
        (vec![b"HTTP/1.1 401 Authentication required\r\nContent-Length: 0\r\n\r\n".to_vec()], "Kerberos"),
        (vec![b"HTTP/1.1 404 Not Found\r\n\r\n<html>".to_vec()], "HTTP status 404; is this the port of WebHDFS?"),
        (vec![b"SSH-2.0-OpenSSH\r\n\r\n\r\n".to_vec()], "its answer is not HTTP"),
        (vec![b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{}".to_vec()], "its answer is incomplete"),
        (vec![b"HTTP/1.1 200 OK\r\n\r\n{\"FileStatus\":{}}".to_vec()], "has no type and length of a file"),
        (vec![[b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; 17 << 20]].concat()], "longer than 16 MiB"),
        (cut, "its answer is incomplete"),
        (status("{}".into()), "its answer has no blocks"),
        (status(blocks(std::slice::from_ref(&first))), "the place of 1500000 of 2500000 bytes was not reported"),
        (status(blocks(&[first.clone(), block(1_000_000, all, "", false)])), "valid copy of the block at byte 1000000"),
        (status(blocks(&[first.clone(), block(1_000_000, all, r#""10.1.1.1:1""#, true)])), "valid copy"),
        (status(blocks(&[first.clone(), first.clone()])), "not in order of offset"),
        (status(blocks(&[block(1, u64::MAX, r#""10.1.1.1:1""#, false)])), "not in order of offset"),
        (status(blocks(&[block(0, all, r#""-oProxyCommand=x:1""#, false)])), "has no place, length or address"),
        (
            status(blocks(&[block(0, all, r#""10.1.1.1:1""#, false).replace("offset\":0", "offset\":-1")])),
            "has no place",
        ),
    ] {
        let (layout, _) = located(answers, "/f");
        let told = layout.reason.clone().unwrap_or_default();
        assert!(told.contains(why) && !told.contains(['\n', '\u{1b}']), "{why}: {told}");
        let placed: u64 = layout.extents.iter().map(|e| e.length).sum();
        assert!(placed == 0 || placed == 1_000_000, "{why}: {layout:?}");
    }
}

#[test]
fn a_datanode_beside_the_namenode_is_on_its_host_and_an_empty_file_nowhere() {
    let beside = BLOCKS.replace("10.77.1.2:", "127.0.0.1:");
    let (layout, _) = located(vec![chunked(200, STATUS), chunked(200, &beside)], "/f");
    assert_eq!(places(&layout)[1], place(1 << 20, 1 << 20, &format!("10.77.1.1,{}", local::host())));
    let (layout, asked) = located(vec![chunked(200, &STATUS.replace("2500000", "0"))], "/empty");
    assert_eq!((layout.size, layout.extents.len(), layout.reason, asked.len()), (0, 0, None, 1));
}

#[test]
fn a_namenode_that_cannot_be_asked_is_left_alone_for_a_while() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (word, locator) = (PathBuf::from(format!("webhdfs://{address}/f")), Locator::default().patient(PATIENT));
    let told = || locator.locate(&word).reason.unwrap_or_default();
    let first = told();
    assert!(first.starts_with(&format!("the NameNode {address}: ")) && first.contains("refused"), "{first}");
    let listener = TcpListener::bind(address).unwrap();
    assert_eq!([told(), told()], [first.clone(), first]);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
}

#[test]
fn a_namenode_that_is_silent_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let word = PathBuf::from(format!("webhdfs://{}/f", silent.local_addr().unwrap()));
    let layout = Locator::default().patient(Duration::from_secs(1)).locate(&word);
    assert!(layout.extents.is_empty() && layout.reason.is_some_and(|why| why.starts_with("the NameNode")));
}

#[test]
fn a_word_tells_whom_to_ask() {
    let door = |word: &str, told: Option<&str>| {
        word::parse(word.as_bytes(), told).map(|(door, path)| format!("{door} {}", String::from_utf8(path).unwrap()))
    };
    for (word, told, place) in [
        ("hdfs://nn/a/b", None, "nn:9870 /a/b"),
        ("hdfs://nn:8020/a", None, "nn:9870 /a"),
        ("hdfs://ha/a", Some("nn2:50070"), "nn2:50070 /a"),
        ("hdfs:///a", Some("nn2"), "nn2:9870 /a"),
        ("webhdfs://nn/a//b/", Some("other"), "nn:9870 /a/b"),
        ("webhdfs://nn:80/a", None, "nn:80 /a"),
        ("hdfs://nn", None, "nn:9870 "),
    ] {
        assert_eq!(door(word, told).as_deref(), Ok(place), "{word}");
    }
    for (word, told, why) in [
        ("hdfs:///a", None, "\"\" is not HOST or HOST:PORT of a NameNode; HOMING_WEBHDFS=HOST:9870 names one"),
        ("hdfs://n n/a", None, "is not HOST"),
        ("hdfs://-oX=y/a", None, "is not HOST"),
        ("hdfs://nn:0/a", None, "is not HOST"),
        ("hdfs://[fd00::1]/a", None, "is not HOST"),
        ("hdfs://nn/a", Some("http://nn"), "HOMING_WEBHDFS: \"http://nn\" is not HOST"),
        ("webhdfs://nn:9871/a", None, "by HTTPS"),
        ("swebhdfs://nn/a", None, "by HTTPS"),
    ] {
        assert!(door(word, told).is_err_and(|told| told.contains(why)), "{word}: {:?}", door(word, told));
    }
}

#[test]
fn a_host_that_nobody_knows_may_be_a_logical_name() {
    let told = Locator::default().locate(Path::new("hdfs://nameservice.invalid/f")).reason.unwrap_or_default();
    assert!(told.contains("logical name") && told.contains("HOMING_WEBHDFS=HOST:9870"), "{told}");
}

#[test]
fn a_task_reads_what_it_names_on_hdfs_by_the_scheme_alone() {
    let (port, asked) = namenode(vec![chunked(404, MISSING), chunked(200, STATUS), chunked(200, BLOCKS)]);
    let (file, out) = (format!("webhdfs://127.0.0.1:{port}/f"), format!("webhdfs://127.0.0.1:{port}/out"));
    let mut task = Task::of(Command::Shell(
        format!("hadoop fs -cat {file} | tool --to={out} hdfs:/x x,hdfs://nn/y").as_str().into(),
    ));
    task.inputs.push(RawText::from(file.as_str()));
    task.outputs.push(RawText::from("hdfs://nn/declared"));
    let named = CandidatePaths::of(&task, Path::new("/w"), true);
    assert_eq!(named.remote, [PathBuf::from(&file), PathBuf::from(&out)], "declared and a word is once");
    assert!(named.all().all(|path| path.starts_with("/w")), "{named:?}");
    // In the order of the names the missing one would be last.
    let finder = Finder::default().patient(PATIENT);
    let named = CandidatePaths { remote: vec![PathBuf::from(&out), PathBuf::from(&file)], ..CandidatePaths::default() };
    let found = finder.inputs(&named);
    assert_eq!((found.bytes, found.remote, found.located, found.untold), (2_500_000, true, true, None));
    assert_eq!(found.shared.get("10.77.1.2"), Some(&2_500_000));
    let again = CandidatePaths { remote: vec![PathBuf::from(&file)], ..CandidatePaths::default() };
    assert_eq!((finder.inputs(&again).bytes, asked.lock().unwrap().len()), (2_500_000, 3), "it is asked for once");
    let nobody = CandidatePaths { remote: vec!["swebhdfs://nn/f".into()], ..CandidatePaths::default() };
    assert!(finder.inputs(&nobody).untold.is_some_and(|why| why.starts_with("swebhdfs://nn/f: ")));
}

/// A shared volume, all of it on one host.
struct HdfsFixture;

impl FileSystem for HdfsFixture {
    fn fill(&self, file: &mut LocateRequest) {
        let replicas = vec![Replica { host: "nas".into(), share: 1.0 }];
        file.layout.extents.push(Extent { offset: 0, length: file.layout.size, replicas });
    }
}

#[test]
fn a_folder_beside_a_file_of_hdfs_is_where_the_output_goes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("of_another_task"), [0; 9_999]).unwrap();
    let mount = Mount { point: "/".into(), fstype: "nfs4".into(), source: "nas:/".into() };
    let volume = Volume { name: "nfs:nas:/".into(), kind: FileSystemKind::Nfs, mount };
    let locator = Locator::with(dir.path().metadata().unwrap().dev(), volume, Arc::new(HdfsFixture));
    let (port, _) = namenode(vec![chunked(200, STATUS), chunked(200, BLOCKS)]);
    let line = format!("hadoop fs -get webhdfs://127.0.0.1:{port}/f {}", dir.path().display());
    let named = CandidatePaths::of(&Task::of(Command::Shell(line.as_str().into())), Path::new("/w"), true);
    let found = Finder::over(locator.patient(PATIENT)).inputs(&named);
    assert_eq!((found.bytes, found.shared.get("nas"), found.volumes.len()), (2_500_000, None, 1));
}
