//! Decides how many records one command takes: a fixed number, or as many as its line holds.

use crate::error::BatchError;
use crate::options::Packing;
use crate::records::LONGEST_ITEM;
use crate::sources::Combinations;
use homing_model::RawText;
use std::collections::VecDeque;

/// Gathers the records of one command after the other.
pub(crate) struct Packer {
    packing: Packing,
    /// Records that were read for a later command.
    waiting: VecDeque<Vec<RawText>>,
}

impl Packer {
    pub(crate) fn new(packing: Packing) -> Packer {
        Packer { packing, waiting: VecDeque::new() }
    }

    /// Returns the number of commands for this many records, if it does not depend on their content.
    pub(crate) fn commands(&self, records: u64) -> Option<u64> {
        let Packing { records: most, full, length, .. } = self.packing;
        (!full && length.is_none()).then(|| records.div_ceil(most.unwrap_or(1).max(1) as u64))
    }

    fn most(&self) -> usize {
        let unsaid = if self.packing.full { usize::MAX } else { 1 };
        self.packing.records.unwrap_or(unsaid).max(1)
    }

    /// Returns the length that a command line must stay below, bytes.
    fn limit(&self) -> Option<usize> {
        let said = self.packing.length.map(|length| length.min(LONGEST_ITEM));
        said.or(self.packing.full.then_some(LONGEST_ITEM))
    }

    fn record(&mut self, from: &mut Combinations) -> Result<Option<Vec<RawText>>, BatchError> {
        match self.waiting.pop_front() {
            Some(record) => Ok(Some(record)),
            None => from.next(),
        }
    }

    fn is_empty(&mut self, from: &mut Combinations) -> Result<bool, BatchError> {
        let next = self.record(from)?;
        let empty = next.is_none();
        self.waiting.extend(next);
        Ok(empty)
    }

    /// Returns the values of the next command. `length` is the length of the command line with given values, bytes.
    pub(crate) fn values(
        &mut self,
        from: &mut Combinations,
        length: impl Fn(&[RawText]) -> usize,
    ) -> Result<Option<Vec<RawText>>, BatchError> {
        let Some(first) = self.record(from)? else { return Ok(None) };
        let limit = self.limit();
        let mut so_far = if limit.is_some() { length(&first) } else { 0 };
        if let Some(limit) = limit.filter(|limit| so_far >= *limit) {
            return Err(BatchError::LongCommand { length: so_far, limit });
        }
        let mut records = vec![first];
        while records.len() < self.most()
            && let Some(next) = self.record(from)?
        {
            if let Some(limit) = limit {
                so_far += length(&[next.as_slice(), &next].concat()) - length(&next);
                if so_far >= limit {
                    self.waiting.push_front(next);
                    break;
                }
            }
            records.push(next);
        }
        if self.packing.spread.is_some() && self.waiting.is_empty() && self.is_empty(from)? {
            self.spread(&mut records);
        }
        Ok(Some(records.concat()))
    }

    /// Divides the rest among the slots at the end of the input.
    fn spread(&mut self, records: &mut Vec<Vec<RawText>>) {
        let Some(slots) = self.packing.spread.take().filter(|_| records.len() > 1) else { return };
        let most = records.len().div_ceil(slots.max(1));
        self.packing.records = Some(most);
        self.waiting.extend(records.split_off(most));
    }
}
