//! The hosts to which data is near, for runs, plans, jobs and iobsub.

/// A host that holds this share of the bytes of the best host is as good.
const AS_GOOD: f64 = 0.95;

/// Returns the hosts to which data is near: those that hold about as many of its bytes as the host that holds most.
pub fn near<H>(bytes: impl IntoIterator<Item = (H, u64)>) -> Vec<H> {
    let all: Vec<(H, u64)> = bytes.into_iter().collect();
    let most = all.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let enough = ((most as f64 * AS_GOOD) as u64).max(1);
    all.into_iter().filter(|(_, bytes)| *bytes >= enough).map(|(host, _)| host).collect()
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn hosts_with_about_as_many_bytes_as_the_best_one_are_near() {
        assert_eq!(near([("a", 1000), ("b", 950), ("c", 949), ("d", 0)]), ["a", "b"]);
        assert_eq!(near([("a", 1), ("b", 0)]), ["a"]);
        assert!(near([("a", 0)]).is_empty() && near::<u8>([]).is_empty());
    }
}
