//! Options of `homing sub` that are for Slurm alone.

use homing_model::Failure;

/// Options that are passed on to sbatch.
#[derive(clap::Args)]
pub struct Words {
    /// On Slurm: account that pays for the job
    #[arg(help_heading = "Slurm", long, value_name = "NAME")]
    pub account: Option<String>,
    /// On Slurm: quality of service of the job
    #[arg(help_heading = "Slurm", long, value_name = "NAME")]
    pub qos: Option<String>,
    /// On Slurm: further argument of sbatch, such as --slurm-arg=--mem=2G; may be repeated
    #[arg(help_heading = "Slurm", long, value_name = "ARG", allow_hyphen_values = true)]
    pub slurm_arg: Vec<String>,
}

impl Words {
    /// Returns the words for sbatch. The user's own come last, so that they win.
    pub fn words(&self, slurm: bool) -> Result<Vec<String>, Failure> {
        let named = [("account", &self.account), ("qos", &self.qos)];
        let named = named.into_iter().filter_map(|(name, value)| value.as_ref().map(|v| format!("--{name}={v}")));
        let words: Vec<String> = named.chain(self.slurm_arg.iter().cloned()).collect();
        if !slurm && !words.is_empty() {
            let text = format!("{} works only on Slurm, and this queue is not Slurm's", words.join(" "));
            return Err(Failure::usage(text).hint("--engine slurm; or leave the option out"));
        }
        if let Some(word) = words.iter().find(|w| !w.starts_with('-')) {
            return Err(Failure::usage(format!("--slurm-arg {word}: not an option of sbatch"))
                .hint(format!("--slurm-arg=--{word}")));
        }
        Ok(words)
    }
}
