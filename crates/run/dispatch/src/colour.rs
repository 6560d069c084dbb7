//! `--colour`: each task's lines in colours of their own, those of GNU parallel.

/// A background and a foreground of a terminal with 256 colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour {
    behind: u8,
    front: u8,
}

/// White and black of the 256 colours.
const LIGHT: u8 = 231;
const DARK: u8 = 0;
/// White on red.
const FAILED: Colour = Colour { behind: 196, front: LIGHT };

/// The tasks whose lines have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// `--colour`: all tasks, each in its own colour.
    All,
    /// `--colour-failed`: the failed tasks.
    Failed,
    /// All, those that failed in the colour of failures.
    AllAndFailed,
}

impl Colours {
    /// Returns the colour of a task's lines. `failed`: the task has ended without success.
    pub(crate) fn of(self, task: u64, failed: bool) -> Option<Colour> {
        match self {
            Colours::All => Some(Colour::of_task(task)),
            Colours::Failed => failed.then_some(FAILED),
            Colours::AllAndFailed => Some(if failed { FAILED } else { Colour::of_task(task) }),
        }
    }
}

impl Colour {
    /// Tasks are numbered from 1.
    fn of_task(task: u64) -> Colour {
        let at = task.saturating_sub(1) % BACKGROUNDS.len() as u64;
        let behind = BACKGROUNDS[at as usize];
        let front = if behind < 0 { DARK } else { LIGHT };
        Colour { behind: behind.unsigned_abs() as u8, front }
    }

    /// Returns the text before a line.
    pub(crate) fn on(self) -> String {
        format!("\x1b[48;5;{:03};38;5;{:03}m\x1b[K", self.behind, self.front)
    }
}

/// The text behind a line, before its end.
pub(crate) const OFF: &[u8] = b"\x1b[m";

/// Backgrounds by task, as GNU parallel 20221122 prints them; its text is black on negative ones.
const BACKGROUNDS: [i16; 307] = [
    134, 21, 243, -149, 102, -231, 203, -78, 73, -208, 167, -6, 44, 22, 244, -150, 103, -249, 204, -79, 74, -209, 168,
    -7, 45, -186, 135, -151, 104, -250, 205, -80, 75, -210, 169, -9, 52, -187, 136, 23, 245, -251, 206, -81, 76, -211,
    170, -10, 53, -188, 137, 24, 246, -152, 105, -82, 77, -212, 171, -11, 54, -189, 138, 25, 247, -153, 106, -252, 207,
    -213, 172, -13, 55, -190, 139, 26, 248, -154, 107, -253, 208, -83, 78, -14, 56, -191, 140, 27, 249, -155, 108,
    -254, 209, -84, 79, -214, 173, -192, 141, 28, 250, -156, 109, 1, 210, -85, 80, -215, 174, -15, 57, 29, -157, 110,
    2, 211, -86, 81, -216, 175, -40, 58, -193, 142, -158, 111, 3, 212, -87, 88, -217, 176, -41, 59, -194, 143, 30, 4,
    213, -113, 89, -218, 177, -42, 60, -195, 144, 31, -159, 112, -114, 90, -219, 178, -43, 61, -196, 145, 32, -171,
    113, 5, 214, -220, 180, -44, 62, -197, 146, 33, -172, 114, 6, 232, -115, 91, -45, 63, -198, 147, 34, -173, 124, 7,
    233, -116, 92, -221, 182, -199, 148, 35, -174, 125, 8, 234, -117, 93, -222, 183, -46, 64, 36, -175, 126, 9, 235,
    -118, 94, -223, 184, -47, 65, -200, 149, -176, 127, 12, 236, -119, 95, -224, 196, -48, 66, -201, 160, 37, 13, 237,
    -120, 96, -225, 197, -49, 67, -202, 161, 38, -177, 128, -121, 97, -226, 198, -50, 68, -203, 162, 39, -178, 129, 16,
    238, -227, 199, -51, 69, -204, 163, 40, -179, 130, 17, 239, -122, 98, -75, 70, -205, 164, 41, -180, 131, 18, 240,
    -123, 99, -228, 200, -206, 165, 42, -181, 132, 19, 241, -147, 100, -229, 201, -76, 71, 43, -182, 133, 20, 242,
    -148, 101, -230, 202, -77, 72, -207, 166, -185,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_begin_again_and_failures_have_one() {
        assert_eq!(Colour::of_task(1), Colour { behind: 134, front: LIGHT });
        assert_eq!(Colour::of_task(4), Colour { behind: 149, front: DARK });
        assert_eq!(Colour::of_task(1 + BACKGROUNDS.len() as u64), Colour::of_task(1));
        assert_eq!(Colour::of_task(2).on(), "\x1b[48;5;021;38;5;231m\x1b[K");
        assert_eq!([false, true].map(|failed| Colours::Failed.of(1, failed)), [None, Some(FAILED)]);
        let both = [false, true].map(|failed| Colours::AllAndFailed.of(1, failed));
        assert_eq!(both, [Some(Colour::of_task(1)), Some(FAILED)]);
    }
}
