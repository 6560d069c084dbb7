//! Measures how soon another host sees a change. Two hosts exchange files through the folder in turns: one clock
//! times both ways, therefore no two clocks need to agree.

use super::{Bench, sh};
use homing_model::Failure;
use serde::{Deserialize, Serialize};

/// A kind of change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// `new file` or `new content`.
    pub change: String,
    /// Half the time of a round, milliseconds: the median; `None` if no round was completed.
    pub median_ms: Option<f64>,
    /// The longest.
    pub max_ms: Option<f64>,
    /// Rounds that were not completed when both sides stopped, 90 s after they started.
    pub lost: u32,
}

impl Delay {
    /// Describes it in a sentence.
    pub fn sentence(&self) -> String {
        let lost =
            if self.lost == 0 { String::new() } else { format!("; {} of the trials unseen after 90 s", self.lost) };
        match (self.median_ms, self.max_ms) {
            (Some(median), Some(max)) => {
                format!(
                    "{} is seen by another host after {median:.1} ms (median; longest {max:.1} ms{lost})",
                    self.change
                )
            }
            _ => format!("{} was not seen by another host within 90 s", self.change),
        }
    }
}

/// The waiting side queries the name all the time: a cached "no such file" must count. The loops use only builtins of
/// the shell.
const SERVE: &str = r#"
cd -- "$1" || exit; end=$(( $(date +%s) + 90 )); n=0
for i in $(seq "$3"); do
echo "$i" > "$2.ping.$i"
t0=$(date +%s%N)
if [ "$2" = content ]; then echo "$i" > content.ping
  while read -r x < content.pong; [ "$x" != "$i" ]; do n=$((n+1)); [ $((n % 2000)) = 0 ] && [ "$(date +%s)" -gt $end ] && exit 0; done
else : > "new.a.$i"
  while [ ! -e "new.b.$i" ]; do n=$((n+1)); [ $((n % 2000)) = 0 ] && [ "$(date +%s)" -gt $end ] && exit 0; done
fi
echo $(( $(date +%s%N) - t0 ))
done
"#;
const RETURN: &str = r#"
cd -- "$1" || exit; end=$(( $(date +%s) + 90 )); n=0
for i in $(seq "$3"); do
if [ "$2" = content ]; then
  while read -r x < content.ping; [ "$x" != "$i" ]; do n=$((n+1)); [ $((n % 2000)) = 0 ] && [ "$(date +%s)" -gt $end ] && exit 0; done
  echo "$i" > content.pong
else
  while [ ! -e "new.a.$i" ]; do n=$((n+1)); [ $((n % 2000)) = 0 ] && [ "$(date +%s)" -gt $end ] && exit 0; done
  : > "new.b.$i"
fi
done
"#;

/// Measures both kinds of change between the first two hosts.
pub fn measure(bench: &Bench, folder: &str) -> Result<Vec<Delay>, Failure> {
    let place = format!("{folder}/see");
    let ready = r#"mkdir -- "$1" && cd -- "$1" && echo 0 > content.ping && echo 0 > content.pong"#;
    bench.all(&bench.setup.hosts[..1], |_, _| sh(ready, &[&place]), "preparing the trials")?;
    let see = r#"i=0; while [ ! -e "$1/content.pong" ]; do ls "$1" >/dev/null 2>&1; i=$((i+1)); [ $i -gt 900 ] && exit 1; sleep 0.1; done"#;
    bench.all(&bench.setup.hosts[1..2], |_, _| sh(see, &[&place]), "waiting for the trials' folder")?;
    let trials = bench.setup.trials.to_string();
    let mut delays = Vec::new();
    for (word, change) in [("new", "new file"), ("content", "new content")] {
        let side = |text: &str| sh(text, &[&place, word, &trials]);
        let commands = [(bench.setup.hosts[1].clone(), side(RETURN)), (bench.setup.hosts[0].clone(), side(SERVE))];
        let said = bench.executor.programs(&commands);
        if let Some(why) = said.iter().find_map(|s| s.as_ref().err()) {
            (bench.reporter.note)(&format!("how soon other hosts see a {change} could not be measured: {why}"));
        }
        // A side that gives up exits with 0, because the completed rounds count.
        let text = said[1].as_deref().unwrap_or("");
        let mut halves: Vec<f64> = text.lines().filter_map(|l| Some(l.trim().parse::<f64>().ok()? / 2e6)).collect();
        halves.sort_by(f64::total_cmp);
        delays.push(Delay {
            change: change.into(),
            median_ms: halves.get(halves.len() / 2).copied(),
            max_ms: halves.last().copied(),
            lost: bench.setup.trials - halves.len() as u32,
        });
    }
    Ok(delays)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_seen_is_kept_and_read_back() {
        let delay = |median_ms, lost| Delay { change: "new file".into(), median_ms, max_ms: median_ms, lost };
        assert_eq!(
            delay(Some(2.0), 1).sentence(),
            "new file is seen by another host after 2.0 ms (median; longest 2.0 ms; 1 of the trials unseen after 90 s)"
        );
        let never = delay(None, 5);
        assert_eq!(never.sentence(), "new file was not seen by another host within 90 s");
        let text = serde_json::to_string(&never).unwrap();
        assert_eq!(serde_json::from_str::<Delay>(&text).unwrap(), never);
    }
}
