//! The plan of an image: the order, joined with the vault's own configuration.

use crate::ask::Make;
use crate::conf::Conf;
use crate::dirvish;
use crate::expiry::{self, Expiry};
use crate::image::BRANCH;
use crate::rsync::HostFolder;
use crate::section::image_name;
use crate::vault::{Refused, Vault, full_words};
use homing_launch::{HostPlan, Via};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;

/// The form of an image's name if nothing else is set, as in dirvish.
const NAME: &str = "%Y%m%d%H%M%S";
/// ssh if nothing else is set. A prompt that no user can answer would hang, and so would a lost host. ssh gives up
/// after three requests without an answer (`ServerAliveCountMax`). A paused rsync does not count, because ssh itself
/// answers.
pub const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=15";

/// The plan of an image: the order, and the additions of the vault's own configuration.
pub struct ImagePlan {
    /// The host and folder with the bytes.
    pub source: HostFolder,
    /// The folder that is read instead: an instant copy, or the source itself.
    pub read: HostFolder,
    /// Patterns to leave out.
    pub exclude: Vec<String>,
    /// Whether to leave out other file systems.
    pub xdev: bool,
    /// The series of the image.
    pub branch: String,
    /// The image's name.
    pub name: String,
    /// When the image expires.
    pub expiry: Expiry,
    /// The moment whose state it represents.
    pub begun: Timestamp,
    /// ssh and its options.
    pub ssh: String,
    /// The mark of the rsync on the source's host.
    pub mark: Option<String>,
    /// rsync's options, besides those of every copy.
    pub options: Vec<OsString>,
    /// The mode of the image's folder.
    pub mode: u32,
    /// The kind of index to write, in dirvish's words.
    pub index: Option<String>,
    /// The name of the source in it.
    pub alias: String,
}

/// Joins order and configuration.
///
/// # Errors
/// A setting that is missing, or has no meaning.
pub fn plan(order: &Make, vault: &Vault, zone: &TimeZone) -> Result<ImagePlan, Refused> {
    let conf = vault.conf()?;
    let begun = Timestamp::now();
    let either = |said: &[String], key: &str| if said.is_empty() { conf.list(key) } else { said.to_vec() };
    let said = |said: &Option<String>, key: &str| said.clone().or(conf.value(key).map(String::from));
    let source = order.source.clone().or_else(|| of_conf(&conf, &order.server));
    let source = source
        .ok_or_else(|| format!("the source of {} is missing: set source = \"HOST:/PATH\"", vault.path.display()))?;
    let (rules, default) = rules(order, &conf);
    expiry::check(&rules, &default)?;
    let form = said(&said(&order.image, "image"), "image-default").unwrap_or_else(|| NAME.into());
    let name = jiff::fmt::strtime::format(&form, &begun.to_zoned(zone.clone()));
    let name = name.map_err(|e| format!("image = {form:?} is not a name of images: {e}"))?;
    image_name(&name).map_err(|why| format!("image = {form:?}: {why}"))?;
    if fs::symlink_metadata(vault.folder(&name)).is_ok() {
        let path = vault.path.display();
        let why = format!("image {name} exists in {path} already: image = {form:?} gives one image per name");
        let hint = format!(
            "image = {NAME:?} in [snapshot.{}] of the cluster file, or image-default: {NAME} in {path}/dirvish/default.conf",
            order.site.vault
        );
        return Err(Refused::Advised(why, hint));
    }
    let xdev = order.xdev.or(conf.switch("xdev")).unwrap_or(true);
    // An instant copy lacks the files of other file systems.
    let instant = order.instant.clone().filter(|_| xdev);
    let read = instant.map_or(source.clone(), |path| HostFolder { path, ..source.clone() });
    let alias = dirvish::tree(&conf).filter(|_| order.source.is_none()).map(|(_, alias)| alias);
    Ok(ImagePlan {
        read,
        exclude: either(&order.exclude, "exclude"),
        xdev,
        branch: conf.value("branch-default").unwrap_or(BRANCH).into(),
        name,
        expiry: expiry::of(&rules, &default, begun, zone)?,
        begun,
        mark: order.mark.clone(),
        ssh: said(&order.ssh, "rsh").filter(|ssh| ssh != "ssh").unwrap_or_else(|| SSH.into()),
        options: dirvish::options(&conf),
        mode: conf.value("image-perm").and_then(dirvish::mode).unwrap_or(0o755),
        index: conf.value("index").map(String::from),
        alias: alias.unwrap_or_else(|| source.path.display()),
        source,
    })
}

/// Returns the rules, and the expiry if none matches. If the vault's configuration sets a date for all images, there
/// are no rules.
fn rules(order: &Make, conf: &Conf) -> (Vec<String>, String) {
    let fixed = conf.value("expire").filter(|_| order.rules.is_empty() && order.expire.is_none());
    if let Some(date) = fixed {
        return (Vec::new(), date.into());
    }
    let rules = if order.rules.is_empty() { conf.list("expire-rule") } else { order.rules.clone() };
    let default = order.expire.clone().or(conf.value("expire-default").map(String::from));
    (rules, default.unwrap_or_default())
}

/// Returns the client and the tree of a vault that dirvish has made. This host by its own name is read without ssh.
fn of_conf(conf: &Conf, server: &str) -> Option<HostFolder> {
    let client = conf.value("client")?;
    let (tree, _) = dirvish::tree(conf)?;
    let local = client == server || matches!(HostPlan::named(client.into(), None).via, Via::Local);
    Some(HostFolder { host: (!local).then(|| client.into()), path: tree.as_str().into() })
}

/// Why the vault cannot keep images.
pub enum Unfit {
    /// Not even an empty file can be made.
    Full(String),
    /// Any other reason.
    Other(String),
}

/// Checks that hard links work. Some file systems have none: each image would be a whole copy.
pub fn links_work(vault: &Vault) -> Result<(), Unfit> {
    let (a, b) = (vault.own().join("link.a"), vault.own().join("link.b"));
    let _ = fs::remove_file(&b);
    let made = fs::write(&a, "").and_then(|()| fs::hard_link(&a, &b));
    let _ = fs::remove_file(&a);
    let _ = fs::remove_file(&b);
    let bank = vault.path.parent().unwrap_or(&vault.path);
    made.map_err(|e| match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Unfit::Full(full_words(bank)),
        _ => Unfit::Other(format!("{} cannot hold images, which share files by hard links: {e}", vault.path.display())),
    })
}
