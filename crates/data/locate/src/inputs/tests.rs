use super::*;
use crate::{FileSystem, LocateRequest};
use homing_model::{Command, Extent, Mount, RawText, Replica};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shared volume over two hosts: a file is on the host that its name begins with.
struct SharedVolume(Arc<AtomicUsize>);

impl FileSystem for SharedVolume {
    fn fill(&self, LocateRequest { path, layout, .. }: &mut LocateRequest) {
        self.0.fetch_add(1, Ordering::Relaxed);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "striped" {
            let part = |n: u64| Extent {
                offset: 100 * n,
                length: 100,
                replicas: vec![Replica { host: format!("n{}", n % 3 + 1), share: 1.0 }],
            };
            return layout.extents.extend((0..layout.size / 100).map(part));
        }
        let host = name[..2].to_string();
        let replicas = vec![Replica { host, share: 1.0 }];
        layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
    }
}

/// A folder of that volume, and how often the volume was queried.
struct FolderFixture {
    dir: tempfile::TempDir,
    finder: Finder,
    asked: Arc<AtomicUsize>,
}

impl FolderFixture {
    fn new(files: &[(&str, usize)]) -> FolderFixture {
        // In memory if possible, because one test makes 100,000 files.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for (name, size) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, vec![0; *size]).unwrap();
        }
        let asked = Arc::new(AtomicUsize::new(0));
        let mount = Mount { point: "/".into(), fstype: "nfs4".into(), source: "n1:/".into() };
        let volume = Volume { name: "nfs:n1:/".into(), kind: FileSystemKind::Nfs, mount };
        let dev = dir.path().metadata().unwrap().dev();
        let locator = Locator::with(dev, volume, Arc::new(SharedVolume(asked.clone())));
        let finder = Finder::over(locator);
        FolderFixture { dir, finder, asked }
    }

    fn task(&self, line: &str) -> Task {
        Task::of(Command::Shell(line.into()))
    }

    fn inputs(&self, line: &str) -> CommandInputs {
        self.finder.inputs(&CandidatePaths::of(&self.task(line), self.dir.path(), true))
    }

    fn shared(&self, line: &str) -> Vec<(String, u64)> {
        self.inputs(line).shared.into_iter().collect()
    }

    fn take_request_count(&self) -> usize {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

fn at(host: &str, bytes: u64) -> Vec<(String, u64)> {
    vec![(host.to_string(), bytes)]
}

#[test]
fn a_folder_beside_files_is_where_the_output_goes_however_full_it_is() {
    let world = FolderFixture::new(&[("in/n1a", 10), ("out/n2z", 9_999)]);
    let out = world.dir.path().join("out");
    for files in [0, 1_000, 100_000] {
        for name in 0..files {
            std::fs::File::create(out.join(format!("n2{name}"))).unwrap();
        }
        world.finder.known().clear();
        for line in ["cp in/n1a out/", "tool in/n1a -o out", "tool --outdir=out in/n1a"] {
            assert_eq!(world.shared(line), at("n1", 10), "{line}, {files} files");
        }
        assert_eq!(world.take_request_count(), 1, "the input once, with {files} files in the folder");
    }
    assert_eq!(world.inputs("cp in/n1a out/").volumes.len(), 1, "the folder's volume must still be there");
}

#[test]
fn a_folder_that_is_named_alone_or_declared_is_an_input() {
    let world = FolderFixture::new(&[("d/n1a", 10), ("d/sub/n1b", 5), ("n2f", 1)]);
    for line in ["tar cf - d", "du d", "for f in d/*; do cat $f; done"] {
        assert_eq!(world.shared(line), at("n1", 15), "{line}");
    }
    assert_eq!(world.take_request_count(), 2, "each file of the folder once a run");
    let mut task = world.task("cat n2f");
    task.inputs.push(RawText::from("d"));
    let declared = world.finder.inputs(&CandidatePaths::of(&task, world.dir.path(), true));
    assert_eq!(declared.shared.into_iter().collect::<Vec<_>>(), [("n1".to_string(), 15), ("n2".to_string(), 1)]);
}

#[test]
fn each_path_is_located_once_until_it_changes() {
    let world = FolderFixture::new(&[("n1a", 10)]);
    for _ in 0..3 {
        assert_eq!(world.shared("cat n1a"), at("n1", 10));
    }
    assert_eq!(world.take_request_count(), 1);
    std::fs::write(world.dir.path().join("n1a"), [0; 11]).unwrap();
    assert_eq!((world.shared("cat n1a"), world.take_request_count()), (at("n1", 11), 1));
}

#[test]
fn a_reference_counts_once_for_each_host_unless_it_is_too_large_to_keep() {
    let mut world = FolderFixture::new(&[("n1ref", 100), ("n1huge", 2_000), ("n2a", 1)]);
    world.finder = Finder { hosts: 2, keeps: 1_000, ..world.finder };
    let bytes: Vec<u64> = (0..4).map(|_| world.inputs("map n1ref n2a").bytes).collect();
    // The same holds for n2a: it looks like a reference.
    assert_eq!(bytes, [101, 101, 0, 0]);
    let cached = world.inputs("map n1ref");
    assert!(cached.located && cached.read_before, "it still has a place");
    assert!(!world.inputs("map n1huge").read_before);
    let huge: Vec<u64> = (0..4).map(|_| world.inputs("dd if=n1huge").bytes).collect();
    assert_eq!(huge, [2_000; 4]);
}

#[test]
fn more_paths_than_are_remembered_are_located_all_the_same() {
    let world = FolderFixture::new(&[("n1a", 10)]);
    for name in 0..MOST_KNOWN + 10 {
        world
            .finder
            .known()
            .insert(format!("/{name}").into(), PathFacts { folder: true, mark: (0, 0, 0, 0), place: None, named: 9 });
    }
    assert_eq!(world.shared("cat n1a"), at("n1", 10));
    assert!(world.finder.known().len() <= MOST_KNOWN);
}

#[test]
fn declared_inputs_words_and_patterns_are_kept_apart() {
    let named = |line: &str, inputs: &[&str]| {
        let mut task = Task::of(Command::Shell(line.into()));
        task.inputs = inputs.iter().map(|i| RawText::from(*i)).collect();
        CandidatePaths::of(&task, Path::new("/w"), true)
    };
    let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
    let copy = named("cp in/a /d/out/", &["ref", "in/a"]);
    assert_eq!((copy.declared, copy.words), (paths(&["/w/ref", "/w/in/a"]), paths(&["/d/out/"])));
    assert_eq!(named("for f in /d/*/x.fq; do cat $f; done", &[]).patterns, paths(&["/d"]));
    assert_eq!(named("grep a.*b f", &[]).patterns, paths(&[]));
}

#[test]
fn a_block_of_a_file_counts_where_its_own_bytes_lie() {
    let world = FolderFixture::new(&[("striped", 900), ("n2ref", 5)]);
    let path = world.dir.path().join("striped");
    let line = format!("dd if={} | (tool n2ref)", path.display());
    let at_block = |offset, length| {
        let named = CandidatePaths::of(&world.task(&line), world.dir.path(), true);
        let found = world.finder.inputs(&named.reading(Block { path: path.clone(), offset, length }));
        assert_eq!(found.bytes, length + 5);
        found.shared.into_iter().collect::<Vec<_>>()
    };
    let host = |name: &str, bytes| (name.to_string(), bytes);
    assert_eq!(at_block(0, 100), [host("n1", 100), host("n2", 5)]);
    assert_eq!(at_block(250, 100), [host("n1", 50), host("n2", 5), host("n3", 50)]);
    assert_eq!(at_block(890, 10), [host("n2", 5), host("n3", 10)]);
    assert_eq!(world.take_request_count(), 2, "the cut file once, and the file beside it");
}
