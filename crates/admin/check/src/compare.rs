//! Compares hosts: the value of most hosts, and the hosts that differ.

use crate::answers::HostAnswers;
use std::cmp::Ordering;

/// A value that differs between hosts.
pub(crate) struct Split<'a, T> {
    /// The most frequent value; if several are equally frequent, that of the first host.
    pub most: T,
    /// The hosts with this value.
    pub like: Vec<&'a HostAnswers>,
    /// The other hosts, each with its value.
    pub others: Vec<(&'a HostAnswers, T)>,
}

impl<T> Split<'_, T> {
    /// Returns `2 of 3 hosts`, for a sentence.
    pub fn most_of(&self) -> String {
        let (like, all) = (self.like.len(), self.like.len() + self.others.len());
        if like * 2 > all { format!("{like} of {all} hosts") } else { self.like[0].name.clone() }
    }
}

/// Splits hosts by their values; `None`: all agree, or at most one host has a value.
pub(crate) fn split<'a, T: PartialEq + Clone>(
    said: impl IntoIterator<Item = (&'a HostAnswers, T)>,
) -> Option<Split<'a, T>> {
    let said: Vec<(&HostAnswers, T)> = said.into_iter().collect();
    let mut votes: Vec<(&T, usize)> = Vec::new();
    for (_, value) in &said {
        match votes.iter_mut().find(|(known, _)| *known == value) {
            Some((_, n)) => *n += 1,
            None => votes.push((value, 1)),
        }
    }
    // `max_by_key` returns the last of equal maxima: hence the reverse order.
    let most = votes.iter().rev().max_by_key(|(_, n)| *n)?.0.clone();
    let (like, others): (Vec<_>, Vec<_>) = said.into_iter().partition(|(_, v)| *v == most);
    (!others.is_empty()).then(|| Split { most, like: like.into_iter().map(|(h, _)| h).collect(), others })
}

/// Returns the middle value, the upper one of two. `None`: there are fewer than `least`, which do not show a usual
/// value.
pub(crate) fn middle<T: Copy + PartialOrd>(values: impl IntoIterator<Item = T>, least: usize) -> Option<T> {
    let mut all: Vec<T> = values.into_iter().collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    all.get(all.len() / 2).copied().filter(|_| all.len() >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minority_is_named_and_the_first_breaks_a_tie() {
        let hosts: Vec<HostAnswers> = ["n1", "n2", "n3"].map(HostAnswers::named).into();
        let says = |values: [u8; 3]| split(hosts.iter().zip(values));
        let two = says([5, 6, 5]).unwrap();
        assert_eq!((two.most, two.others[0].0.name.as_str(), two.most_of().as_str()), (5, "n2", "2 of 3 hosts"));
        let none = says([7, 8, 9]).unwrap();
        assert_eq!((none.most, none.others.len(), none.most_of().as_str()), (7, 2, "n1"));
        assert!(says([1, 1, 1]).is_none());
        assert!(split(hosts.iter().take(1).zip([1])).is_none());
    }

    #[test]
    fn the_middle_of_too_few_is_not_known() {
        assert_eq!(middle([3.5, 1.0, 2.0], 3), Some(2.0));
        assert_eq!(middle([4u64, 1], 2), Some(4));
        assert_eq!([middle([4u64, 1], 3), middle([0u64; 0], 0)], [None, None]);
    }
}
