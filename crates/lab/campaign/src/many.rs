//! Runs many seeds at once.

use crate::{CampaignEnvironment, Summary, run_seed, summary};
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs all these seeds and prints each violation at once. Returns the table, and the number of seeds that were
/// wrong. One machine runs as many seeds at a time as it has processors. Seeds in a lab share its links.
pub fn campaign(place: &CampaignEnvironment, seeds: Range<u64>) -> (Summary, u64) {
    let (next, all) = (AtomicU64::new(seeds.start), Mutex::new((Summary::default(), 0)));
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds.end) {
            let tried = run_seed(place, seed);
            let (table, wrong) = &mut *all.lock().unwrap_or_else(PoisonError::into_inner);
            let told = match tried {
                Ok(tried) => {
                    table.add(&tried);
                    (!tried.findings.is_empty()).then(|| summary::failure_report(&tried, place.lab.as_deref()))
                }
                Err(e) => Some(format!("seed {seed} could not be tried: {e}\n")),
            };
            *wrong += u64::from(told.is_some());
            told.iter().for_each(|text| print!("{text}"));
        }
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = if place.lab.is_some() { 1 } else { processors };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}
