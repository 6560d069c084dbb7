//! Short scenes beside a run, chosen by its seed, for faults that a run alone does not meet. Each scene has a folder
//! of its own and a column of the summary.

mod bank;
mod clock;
mod ground;
mod kinds;
mod neighbour;
mod planted;
mod shell;

use crate::model::SummaryColumn;
use crate::place::CampaignEnvironment;
use crate::random::Random;
use crate::scenario::Terrain;
use ground::Ground;
use std::io;

/// A scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surface {
    /// Another user plants links, pipes and odd names in all folders that this user may write.
    Neighbour,
    /// The clock jumps between images.
    ClockOfImages,
    /// The clock jumps under jobs.
    ClockOfJobs,
    /// bash is /bin/sh.
    BashAsSh,
    /// The bank runs out of inodes.
    FewInodes,
    /// A restore where the destination has other kinds under the same names.
    OtherKinds,
}

impl Surface {
    /// All of them.
    pub const ALL: [Surface; 6] = [
        Surface::Neighbour,
        Surface::ClockOfImages,
        Surface::ClockOfJobs,
        Surface::BashAsSh,
        Surface::FewInodes,
        Surface::OtherKinds,
    ];

    /// Returns the scene of a seed: six of eight seeds have one. In a lab there is none. A scene that needs more
    /// rights than there are is left out.
    pub fn of(seed: u64, terrain: Terrain) -> Option<Surface> {
        let drawn = Surface::ALL.get((seed % 8) as usize).copied().filter(|_| !terrain.lab)?;
        let possible = match drawn {
            Surface::ClockOfImages | Surface::ClockOfJobs => terrain.clock,
            Surface::FewInodes => terrain.root,
            Surface::Neighbour | Surface::BashAsSh | Surface::OtherKinds => true,
        };
        possible.then_some(drawn)
    }

    /// Returns the column that counts its violations.
    pub fn column(self) -> SummaryColumn {
        match self {
            Surface::Neighbour => SummaryColumn::Planted,
            Surface::ClockOfImages => SummaryColumn::Images,
            Surface::ClockOfJobs => SummaryColumn::Jobs,
            Surface::BashAsSh => SummaryColumn::Bash,
            Surface::FewInodes => SummaryColumn::Inodes,
            Surface::OtherKinds => SummaryColumn::Replaced,
        }
    }

    /// Returns its kind of fault, for a table.
    pub fn fault(self) -> &'static str {
        match self {
            Surface::Neighbour => "hostile neighbour",
            Surface::ClockOfImages => "clock jumps between images",
            Surface::ClockOfJobs => "clock jumps under jobs",
            Surface::BashAsSh => "bash as /bin/sh",
            Surface::FewInodes => "bank without inodes",
            Surface::OtherKinds => "destination of other kinds",
        }
    }

    /// Plays the scene in a thread of its own, which may get a mount namespace. Returns each violation as a line.
    pub fn play(self, place: &CampaignEnvironment, seed: u64) -> io::Result<Vec<String>> {
        let place = place.clone();
        let played = std::thread::spawn(move || {
            let ground = Ground::new(&place, self)?;
            let mut random = Random::new(seed ^ 0x5ce0_0000);
            match self {
                Surface::Neighbour => neighbour::play(&ground, &mut random),
                Surface::ClockOfImages => clock::images(&ground, &mut random),
                Surface::ClockOfJobs => clock::jobs(&ground, &mut random),
                Surface::BashAsSh => shell::play(&ground, &mut random),
                Surface::FewInodes => bank::play(&ground, &mut random),
                Surface::OtherKinds => kinds::play(&ground, &mut random),
            }?;
            ground.finish()
        });
        played.join().unwrap_or_else(|_| Err(io::Error::other("the campaign itself crashed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seeds_have_each_scene_and_a_lab_has_none() {
        let terrain = Terrain { lab: false, root: true, clock: true };
        let drawn: std::collections::BTreeSet<_> = (1..16).filter_map(|seed| Surface::of(seed, terrain)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), Surface::ALL);
        let lab = Terrain { lab: true, ..terrain };
        assert!((0..99).all(|seed| Surface::of(seed, lab).is_none()));
    }
}
