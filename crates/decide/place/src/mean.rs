//! A mean in which the newest samples count most.

/// Weight of the newest sample: the last ten or so count.
const NEWEST: f64 = 0.2;

/// An exponentially weighted mean; the first samples count alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    value: f64,
    samples: u32,
}

impl Mean {
    pub fn learn(&mut self, sample: f64) {
        self.samples = self.samples.saturating_add(1);
        let weight = NEWEST.max(1.0 / f64::from(self.samples));
        self.value += weight * (sample - self.value);
    }

    pub fn get(&self) -> Option<f64> {
        self.enough(1)
    }

    /// Returns the mean if at least this many samples were taken.
    pub fn enough(&self, samples: u32) -> Option<f64> {
        (self.samples >= samples).then_some(self.value)
    }
}
