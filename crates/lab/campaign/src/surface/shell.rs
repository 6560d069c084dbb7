//! Puts bash in the place of /bin/sh: as root by a mount of its own, else by PATH. bash evaluates words that dash
//! does not.

use super::ground::Ground;
use crate::random::Random;
use rustix::mount::mount_bind;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::{fs, io};

/// Items that a shell would run or calculate with.
const ITEMS: [&str; 8] = [
    "$(touch pwned)",
    "a[$(touch pwned)]",
    "`touch pwned`",
    "x+1",
    "new\nline",
    "; touch pwned",
    "!touch",
    "{a,b} ~ *",
];

fn bash_as_sh(ground: &Ground) -> io::Result<()> {
    let bash = ["/usr/bin/bash", "/bin/bash"].into_iter().find(|path| Path::new(path).exists());
    let bash = bash.ok_or_else(|| io::Error::other("bash is missing"))?;
    if rustix::process::geteuid().is_root() {
        Ground::unshare()?;
        let shell = fs::canonicalize("/bin/sh")?;
        if shell != fs::canonicalize(bash)? {
            mount_bind(bash, &shell)?;
            ground.mounts.borrow_mut().push(shell);
        }
        return Ok(());
    }
    fs::create_dir(ground.at("bin"))?;
    symlink(bash, ground.at("bin/sh"))?;
    *ground.path.borrow_mut() = Some(ground.at("bin"));
    Ok(())
}

/// Runs tasks, jobs and an image with names that bash would run. Each must give the usual result, and no name may be
/// run.
pub fn play(ground: &Ground, random: &mut Random) -> io::Result<()> {
    bash_as_sh(ground)?;
    let mut words = vec!["run", "-q", "-k", "-j3", "printf '<%s>\\n' {}", ":::"];
    words.extend(ITEMS);
    let answer = ground.fine(&words)?;
    let wanted: String = ITEMS.iter().map(|item| format!("<{item}>\n")).collect();
    ground.must(answer.text == wanted, || format!("tasks printed {:?}", answer.text));

    for (number, item) in ITEMS.iter().enumerate() {
        fs::write(ground.at("src").join(item.replace('/', "_")), number.to_string())?;
    }
    let image = ground.image()?;
    ground.must(image.status == 0, || format!("the image: {}", image.text));
    let into = ground.at("back").display().to_string();
    ground.fine(&["snapshot", "restore", "src", "--into", &into])?;
    for (number, item) in ITEMS.iter().enumerate() {
        let text = fs::read_to_string(ground.at("back").join(item)).unwrap_or_default();
        ground.must(text == number.to_string(), || format!("{item:?} came back as {text:?}"));
    }

    // The runner is killed beside other users' names. The shell that outlives it holds its leases.
    ground.fine(&["sub", "-q", "until [ -e go ]; do sleep 0.05; done; echo done >>ran"])?;
    let item = random.of(&ITEMS);
    ground.fine(&["sub", "-q", "printf", "<%s>\\n", item, "-o", "printed-by-job"])?;
    let leases = || fs::read_dir(ground.at("leases")).into_iter().flatten().flatten();
    ground.must(ground.until(|| leases().count() > 0), || "the queue has no lease".into());
    for entry in leases() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stem = name.split('+').next().unwrap_or(&name).to_string();
        for tail in ["+0+a[$(cd;touch pwned)]", "+0+0+a[$(cd;touch pwned)]", "+a[$(touch pwned)]+1"] {
            let _ = fs::write(ground.at("leases").join(format!("{stem}{tail}")), "");
        }
    }
    ground.must(ground.until(|| ground.kill_runner()), || "the queue has no runner".into());
    fs::write(ground.at("home/go"), "")?;
    let jobs = ground.ended_jobs(2)?;
    let done = jobs.iter().filter(|(_, state)| state == "DONE").count();
    ground.must(done == 2, || format!("of 2 jobs {done} are done: {jobs:?}"));
    for folder in ["home", "leases", "src", "back", "bank", "runs", "queue", "tmp"] {
        ground.must(!ground.at(folder).join("pwned").exists(), || format!("a name was run by a shell in {folder}"));
    }
    Ok(())
}
