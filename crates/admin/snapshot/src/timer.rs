//! Timers of systemd for the vaults that have a schedule: their times, and the text of their units.

use std::collections::BTreeMap;

/// Minutes of an hour, a day and a week.
const HOUR: u32 = 60;
const DAY: u32 = 24 * HOUR;
const WEEK: u32 = 7 * DAY;
/// The names of systemd.time(7).
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// The beginning of the names of all units.
pub const HEAD: &str = "homing-snapshot-";
/// The folder of the administrator's units.
pub const FOLDER: &str = "/etc/systemd/system";

/// When images of a vault are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each hour.
    Hourly,
    /// Each day, at this minute of it.
    Daily(u32),
    /// Each week, at this minute from Monday on.
    Weekly(u32),
}

impl Schedule {
    /// Parses `hourly`, `02:00`, `sun 02:00`.
    ///
    /// # Errors
    /// That it has none of these forms.
    pub fn of(text: &str) -> Result<Schedule, String> {
        let odd = || format!("schedule = {text:?} is not a time: use \"hourly\", \"02:00\" or \"Sun 02:00\"");
        match text.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["hourly"] => Ok(Schedule::Hourly),
            [time] => minute(time).map(Schedule::Daily).ok_or_else(odd),
            [day, time] => {
                let day = DAYS.iter().position(|name| name.eq_ignore_ascii_case(day)).ok_or_else(odd)?;
                Ok(Schedule::Weekly(day as u32 * DAY + minute(time).ok_or_else(odd)?))
            }
            _ => Err(odd()),
        }
    }

    /// Returns the schedule delayed by this many minutes, in systemd's form.
    pub fn later(self, minutes: u32) -> String {
        let time = |minute: u32| format!("*-*-* {:02}:{:02}:00", minute / HOUR % 24, minute % HOUR);
        match self {
            Schedule::Hourly => format!("*-*-* *:{:02}:00", minutes % HOUR),
            Schedule::Daily(at) => time((at + minutes) % DAY),
            Schedule::Weekly(at) => {
                let at = (at + minutes) % WEEK;
                format!("{} {}", DAYS[(at / DAY) as usize], time(at % DAY))
            }
        }
    }
}

/// Parses `02:00` to minutes.
fn minute(time: &str) -> Option<u32> {
    let (hour, minute) = time.split_once(':')?;
    let number = |text: &str, below: u32| {
        let digits = (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|n: &u32| digits && *n < below)
    };
    Some(number(hour, 24)? * HOUR + number(minute, HOUR).filter(|_| minute.len() == 2)?)
}

/// Returns the delay of each vault in minutes. The vaults of one schedule share the minutes of `spread` evenly,
/// because not all should read from the file servers at once. `all`: vaults and their schedules.
pub fn staggered<'n>(all: &[(&'n str, Schedule)], spread: u32) -> BTreeMap<&'n str, u32> {
    let mut later = BTreeMap::new();
    for (name, schedule) in all {
        let alike: Vec<&str> = all.iter().filter(|(_, other)| other == schedule).map(|(name, _)| *name).collect();
        let room = if *schedule == Schedule::Hourly { spread.min(HOUR) } else { spread.min(DAY) };
        let at = alike.iter().filter(|other| *other < name).count() as u32;
        later.insert(*name, at * room / alike.len() as u32);
    }
    later
}

/// Returns a unit's name without its kind. Bytes that systemd does not permit are escaped in systemd's form.
pub fn unit(vault: &str) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() || b"_-.".contains(&b) => char::from(b).to_string(),
        b => format!("\\x{b:02x}"),
    };
    format!("{HEAD}{}", vault.bytes().map(byte).collect::<String>())
}

/// Returns the service that makes an image. `words`: the program with its arguments.
pub fn service(vault: &str, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!(
        "# Made by homing snapshot schedule, which writes it anew.\n[Unit]\nDescription=Snapshot {}\n\
         Wants=network-online.target\nAfter=network-online.target remote-fs.target\n\n[Service]\nType=oneshot\n\
         User=root\nExecStart={}\n",
        plain(vault),
        words.join(" ")
    )
}

/// Returns the timer that starts the service. A run that was missed while the host was off is made up when it is on
/// again.
pub fn timer(vault: &str, calendar: &str) -> String {
    format!(
        "# Made by homing snapshot schedule, which writes it anew.\n[Unit]\nDescription=Snapshot {} by schedule\n\n\
         [Timer]\nOnCalendar={calendar}\nAccuracySec=1s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n",
        plain(vault)
    )
}

/// Quotes a word of a command of systemd; no specifier, variable or blank divides it.
pub fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' | '$' => text.extend([c, c]),
            c if c.is_control() => c.to_string().bytes().for_each(|b| text += &format!("\\x{b:02x}")),
            c => text.push(c),
        }
    }
    text + "\""
}

/// Returns a name for a description.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || c == '\\' { '?' } else { c }).collect::<String>().replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_and_run_later_over_midnight_and_the_week() {
        let later = |text: &str, minutes| Schedule::of(text).map(|schedule| schedule.later(minutes));
        assert_eq!(later("hourly", 75).as_deref(), Ok("*-*-* *:15:00"));
        assert_eq!(later("2:05", 0).as_deref(), Ok("*-*-* 02:05:00"));
        assert_eq!(later("23:30", 45).as_deref(), Ok("*-*-* 00:15:00"));
        assert_eq!(later("sun  23:59", 1).as_deref(), Ok("Mon *-*-* 00:00:00"));
        assert_eq!(later("Wed 02:00", 30).as_deref(), Ok("Wed *-*-* 02:30:00"));
        for odd in ["", "daily 02:00", "24:00", "02:60", "2:5", "+2:00", "02:00:00", "Sun", "Sun Mon 02:00", "12"] {
            assert!(Schedule::of(odd).unwrap_err().contains("Sun 02:00"), "{odd}");
        }
    }

    #[test]
    fn vaults_of_one_schedule_share_the_time_and_others_are_on_time() {
        let (night, noon) = (Schedule::Daily(120), Schedule::Daily(720));
        let all = [("a", night), ("b", noon), ("c", night), ("d", night), ("h", Schedule::Hourly)];
        let later: Vec<(&str, u32)> = staggered(&all, 60).into_iter().collect();
        assert_eq!(later, [("a", 0), ("b", 0), ("c", 20), ("d", 40), ("h", 0)]);
        assert!(staggered(&all, 0).values().all(|minutes| *minutes == 0));
        let hours = [("a", Schedule::Hourly), ("b", Schedule::Hourly)];
        assert_eq!(staggered(&hours, 600)["b"], 30, "within its hour");
    }

    #[test]
    fn names_and_words_reach_systemd_as_they_are() {
        assert_eq!(unit("a b/%é"), "homing-snapshot-a\\x20b\\x2f\\x25\\xc3\\xa9");
        let text = service("50% x", &["/bin/homing".into(), "a b$\"%\\".into()]);
        assert!(text.contains("ExecStart=\"/bin/homing\" \"a b$$\\\"%%\\\\\"\n"), "{text}");
        assert!(text.contains("Description=Snapshot 50%% x\n"), "{text}");
        assert!(timer("home", "*-*-* 02:00:00").contains("OnCalendar=*-*-* 02:00:00\n"));
    }
}
