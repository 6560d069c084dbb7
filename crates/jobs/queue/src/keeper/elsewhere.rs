//! Keeps a job on another host: requests its start there and records its course here.

use super::orders::{Hand, Orders};
use super::{Keeper, LOOK, ended};
use crate::far::{Far, RemoteJobMessage};
use crate::files::{Reserved, write_json, write_json_soon};
use crate::job::{JobEnd, Start, Stop};
use crate::process::ProcessIdentity;
use crate::{QueueError, files};
use homing_model::RawText;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

impl Keeper<'_> {
    /// Returns the host that is to run it, if that is not this one.
    pub(super) fn elsewhere(&self) -> Option<&str> {
        self.spec.host.as_deref().filter(|host| *host != files::host_name())
    }

    /// Keeps it until its end on its host.
    pub(super) fn keep_elsewhere(&self, host: &str) -> Result<(), QueueError> {
        self.see_through(host, |there| self.converse(host, there))
    }

    /// Records the job's course on a host, as `converse` reports it. If there is no end, a started job is lost, and
    /// one that had not started waits.
    pub(super) fn see_through(
        &self,
        host: &str,
        converse: impl FnOnce(&mut There) -> Result<Option<JobEnd>, String>,
    ) -> Result<(), QueueError> {
        let place = Reserved::new(&self.record("end"), 0o644);
        let place = place.map_err(QueueError::io("reserve the record of the end in", self.dir))?;
        let mut there = There { keeper: self, host, started: None, files: None };
        let end = match converse(&mut there) {
            Ok(end) => end,
            Err(reason) => Some(JobEnd { exit: 255, reason: Some(reason), ..ended() }),
        };
        let Some(mut end) = end else {
            homing_os::say!("homing: job {}: the connection to {host} has ended before the job", self.id);
            return Ok(());
        };
        end.at_ns = homing_os::clock::system_ns();
        if let Some((start, begun)) = &there.started {
            end.at_ns = start.at_ns + homing_os::clock::since_boot().saturating_sub(*begun).as_nanos() as i64;
            self.append_report(start, &end);
        }
        place.write(&end).map_err(QueueError::io("write", self.dir))?;
        let _ = fs::remove_file(self.record("ask"));
        Ok(())
    }

    fn record(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.{}.json", self.index))
    }

    /// Returns its end; none if the channel ended first and no user had requested the end.
    fn converse(&self, host: &str, there: &mut There) -> Result<Option<JobEnd>, String> {
        // Until the host answers, the job waits.
        there.note(RemoteJobMessage::Waits(String::new()))?;
        let far = Far::open(self.channel(host)?, self.sent(self.spec.clone())?)
            .map_err(|e| format!("cannot send the request to {host}: {e}"))?;
        let mut orders = Orders::new(Hand::Far(&far), self.dir, self.index, &self.spec);
        loop {
            let news = far.next(LOOK);
            orders.carry_out();
            match news {
                Ok(None) => {}
                Ok(Some(RemoteJobMessage::Ended(end))) => return Ok(Some(orders.ended_by(end))),
                Ok(Some(RemoteJobMessage::Refused(why))) => return Err(why),
                Ok(Some(news)) => there.note(news)?,
                Err(()) => return Ok(orders.killed()),
            }
        }
    }
}

/// The known state of the job on its host.
pub(super) struct There<'a> {
    keeper: &'a Keeper<'a>,
    pub host: &'a str,
    /// Its start, also as time since the boot, which no user can set.
    started: Option<(Start, Duration)>,
    files: Option<[File; 2]>,
}

impl There<'_> {
    pub fn note(&mut self, news: RemoteJobMessage) -> Result<(), String> {
        let cannot = |e: std::io::Error| format!("cannot write into {}: {e}", self.keeper.dir.display());
        match news {
            RemoteJobMessage::Waits(by) if self.started.is_none() => {
                let by = if by.is_empty() { format!("{} has not started it yet", self.host) } else { by };
                write_json(&self.keeper.record("ask"), &Stop { by }, 0o644).map_err(cannot)
            }
            RemoteJobMessage::Started(_) => self.begin(),
            RemoteJobMessage::Loaded(Some(by)) => {
                write_json(&self.keeper.record("load"), &Stop { by }, 0o644).map_err(cannot)
            }
            RemoteJobMessage::Loaded(None) => {
                let _ = fs::remove_file(self.keeper.record("load"));
                Ok(())
            }
            RemoteJobMessage::Out(text) => self.write(0, &text),
            RemoteJobMessage::Err(text) => self.write(1, &text),
            RemoteJobMessage::Waits(_) | RemoteJobMessage::Ended(_) | RemoteJobMessage::Refused(_) => Ok(()),
        }
    }

    fn begin(&mut self) -> Result<(), String> {
        let keeper = self.keeper;
        let out = keeper.output("out", &keeper.spec.stdout)?;
        let err = match (&keeper.spec.stderr, &keeper.spec.stdout) {
            // With bsub -o and no -e, both go to one file.
            (None, Some(_)) => out.try_clone().map_err(|e| e.to_string())?,
            _ => keeper.output("err", &keeper.spec.stderr)?,
        };
        self.files = Some([out, err]);
        let at_ns = homing_os::clock::system_ns();
        let start = Start { at_ns, host: self.host.into(), process: ProcessIdentity::own() };
        let written = write_json_soon(&keeper.record("start"), &start, 0o644);
        written.and_then(|record| record.sync_data()).map_err(|e| format!("cannot record its start: {e}"))?;
        let _ = fs::remove_file(keeper.record("ask"));
        self.started = Some((start, homing_os::clock::since_boot()));
        Ok(())
    }

    fn write(&mut self, stream: usize, text: &RawText) -> Result<(), String> {
        let Some(files) = &mut self.files else { return Ok(()) };
        files[stream].write_all(&text.0).map_err(|e| format!("cannot write its output: {e}"))
    }
}
