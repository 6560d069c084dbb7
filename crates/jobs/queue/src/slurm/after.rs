//! LSF's conditions as Slurm's dependencies, if Slurm has an equivalent. Pure.

use crate::array;
use crate::depend::{Expr, parse};

/// Returns the value of `--dependency`. `id_of` finds the newest job of a name. The error names the part that Slurm
/// cannot express.
pub(super) fn dependency(text: &str, id_of: &mut dyn FnMut(&str) -> Option<u64>) -> Result<String, String> {
    let expr = parse(text)?;
    let all = join(&expr, id_of)?;
    if all.contains(&'?') && all.contains(&',') {
        return Err(format!("{text}: Slurm takes && or || in one condition, not both"));
    }
    Ok(all.into_iter().collect())
}

fn join(expr: &Expr, id_of: &mut dyn FnMut(&str) -> Option<u64>) -> Result<Vec<char>, String> {
    let mut both = |a: &Expr, between: char, b: &Expr| -> Result<Vec<char>, String> {
        let mut left = join(a, id_of)?;
        left.push(between);
        left.extend(join(b, id_of)?);
        Ok(left)
    };
    match expr {
        Expr::And(a, b) => both(a, ',', b),
        Expr::Or(a, b) => both(a, '?', b),
        Expr::Not(_) => Err("Slurm has no ! in conditions".into()),
        Expr::Test { word, job, code } => {
            if word.starts_with("num") {
                return Err(format!("{word}({job}, ...): Slurm does not count the elements of an array"));
            }
            if code.is_some() {
                return Err(format!(
                    "exit({job}, ...): Slurm distinguishes only success and failure, not exit statuses"
                ));
            }
            let kind = match word.as_str() {
                "post_err" => return Err(format!("{word}({job}): Slurm runs no command of a queue after a job")),
                "done" | "post_done" => "afterok",
                "exit" => "afternotok",
                "ended" => "afterany",
                _ => "after",
            };
            let id = match array::job_id(job) {
                Some((id, None)) => id.to_string(),
                Some((id, Some(index))) => format!("{id}_{index}"),
                None => id_of(job).ok_or_else(|| format!("{job}: no such job"))?.to_string(),
            };
            Ok(format!("{kind}:{id}").chars().collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_can_express_and_what_not() {
        let of = |text: &str| dependency(text, &mut |name| (name == "prep").then_some(9));
        assert_eq!(of("12").unwrap(), "afterok:12");
        assert_eq!(of("done(1) && ended(2[3]) && exit(\"prep\")").unwrap(), "afterok:1,afterany:2_3,afternotok:9");
        assert_eq!(of("started(1) || 2").unwrap(), "after:1?afterok:2");
        for bad in ["!done(1)", "exit(1,3)", "done(1) && (2 || 3)", "done(nobody)"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
