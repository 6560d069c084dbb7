//! What an image is made by: the order, joined with the vault's own configuration.

use crate::ask::Make;
use crate::expiry::{self, Expiry};
use crate::image::BRANCH;
use crate::rsync::At;
use crate::vault::{Vault, full_words};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs;

/// An image's name, as dirvish makes it where nothing is said.
const NAME: &str = "%Y%m%d%H%M%S";
/// ssh where nothing is said: a question that nobody can answer would hang, and so would a host that was lost. One is
/// given up after three questions without an answer (`ServerAliveCountMax`), while a paused rsync is none of ssh's.
pub const SSH: &str = "ssh -o BatchMode=yes -o ServerAliveInterval=15";

/// What an image is made by: the order, and what the vault's own configuration adds to it.
pub struct Plan {
    /// Where the bytes are.
    pub source: At,
    /// What is read in its place: an instant copy, or itself.
    pub read: At,
    /// Patterns to leave out.
    pub exclude: Vec<String>,
    /// Leave out other file systems.
    pub xdev: bool,
    /// The series of the image.
    pub branch: String,
    /// The image's name.
    pub name: String,
    /// When it goes.
    pub expiry: Expiry,
    /// The moment that it stands for.
    pub begun: Timestamp,
    /// ssh and its options.
    pub ssh: String,
    /// What marks the rsync on the source's host.
    pub mark: Option<String>,
}

/// Joins the two.
///
/// # Errors
/// What is missing, or means nothing.
pub fn plan(order: &Make, vault: &Vault, zone: &TimeZone) -> Result<Plan, String> {
    let conf = vault.conf();
    let begun = Timestamp::now();
    let either = |said: &[String], key: &str| if said.is_empty() { conf.list(key) } else { said.to_vec() };
    let said = |said: &Option<String>, key: &str| said.clone().or(conf.value(key).map(String::from));
    let source = order.source.clone().or_else(|| of_conf(&conf, &order.server));
    let source = source.ok_or_else(|| {
        format!("nothing says what is to be copied to {}: source = \"HOST:/PATH\"", vault.path.display())
    })?;
    let (rules, default) = (either(&order.rules, "expire-rule"), said(&order.expire, "expire-default"));
    let default = default.unwrap_or_default();
    expiry::check(&rules, &default)?;
    let form = said(&order.image, "image-default").unwrap_or_else(|| NAME.into());
    let name = jiff::fmt::strtime::format(&form, &begun.to_zoned(zone.clone()));
    let name = name.map_err(|e| format!("image = {form:?} is no name of images: {e}"))?;
    crate::section::vault_name(&name).map_err(|_| format!("image = {form:?} makes {name:?}, which is no name"))?;
    if fs::symlink_metadata(vault.folder(&name)).is_ok() {
        return Err(format!("there is an image {name} already in {}", vault.path.display()));
    }
    let xdev = order.xdev.or(conf.switch("xdev")).unwrap_or(true);
    // An instant copy lacks what lies on other file systems.
    let instant = order.instant.clone().filter(|_| xdev);
    let read = instant.map_or(source.clone(), |path| At { path, ..source.clone() });
    Ok(Plan {
        source,
        read,
        exclude: either(&order.exclude, "exclude"),
        xdev,
        branch: conf.value("branch-default").unwrap_or(BRANCH).into(),
        name,
        expiry: expiry::of(&rules, &default, begun, zone)?,
        begun,
        mark: order.mark.clone(),
        ssh: said(&order.ssh, "rsh").filter(|ssh| ssh != "ssh").unwrap_or_else(|| SSH.into()),
    })
}

/// The client and the tree of a vault that dirvish has made.
fn of_conf(conf: &crate::conf::Conf, server: &str) -> Option<At> {
    let (client, tree) = (conf.value("client")?, conf.value("tree")?);
    let tree = tree.split_whitespace().next()?;
    let local = client == "localhost" || client == server;
    Some(At { host: (!local).then(|| client.into()), path: tree.into() })
}

/// Some file systems have no hard links: each image would be a whole copy.
pub fn links_work(vault: &Vault) -> Result<(), String> {
    let (a, b) = (vault.own().join("link.a"), vault.own().join("link.b"));
    let _ = fs::remove_file(&b);
    let made = fs::write(&a, "").and_then(|()| fs::hard_link(&a, &b));
    let _ = fs::remove_file(&a);
    let _ = fs::remove_file(&b);
    let bank = vault.path.parent().unwrap_or(&vault.path);
    made.map_err(|e| match e.kind() {
        std::io::ErrorKind::StorageFull => full_words(bank),
        _ => format!("{} cannot keep images, which share files by hard links: {e}", vault.path.display()),
    })
}
