//! The graphics processors of a job on its host.

use super::Keeper;
use super::orders::{Hand, Orders};
use crate::job::JobSpec;
use homing_lease::{UnitError, UnitLease, UnitWish, take_units};
use homing_model::resource::{GPU, PARTS, shown_amount};

impl Keeper<'_> {
    /// Waits for the graphics processors of the job and leases them; the runner starts a job when enough are free, but
    /// a run or another user may come first. Returns the reason of an end that was requested meanwhile. The job's
    /// limits count from then on.
    pub(super) fn take_gpus(&self) -> Result<Result<Vec<UnitLease>, String>, String> {
        let parts = self.spec.gpu_parts;
        if parts == 0 {
            return Ok(Ok(Vec::new()));
        }
        let all = u64::from((self.gpus)());
        if parts > all * PARTS {
            return Err(format!("it needs {} of gpu, but {} has {all}", shown_amount(parts), self.host()));
        }
        let free = JobSpec { limit_s: None, memory_bytes: None, ..self.spec.clone() };
        let mut orders = Orders::new(Hand::Here, self.dir, self.index, &free);
        let taken = take_units(&[UnitWish { name: GPU.into(), parts, all }], |_, _| {
            orders.carry_out();
            orders.reason.is_none()
        });
        match taken {
            Ok((leases, variables)) => {
                *self.units.borrow_mut() = variables;
                Ok(Ok(leases))
            }
            Err(UnitError::Unwanted) => Ok(Err(orders.reason.unwrap_or_default())),
            Err(UnitError::Unkept(why)) => Err(why),
        }
    }
}
