//! Limits the power that hosts draw together: no more tasks start than fit under the limit. Pure.
//!
//! A host always draws its idle power. Each used slot adds an equal part of the difference between idle and full
//! power. This is the linear model of Fan, Weber and Barroso, "Power Provisioning for a Warehouse-sized Computer"
//! (ISCA 2007), with slots for utilisation. The administrator configures the full power, best measured under the
//! site's own load.

use homing_place::HostIx;
use std::collections::HashMap;

/// The power that one host draws, watts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Draw {
    /// Without tasks.
    pub idle_w: f64,
    /// With all slots in use.
    pub full_w: f64,
}

/// Hosts with a common limit: a fuse, a UPS, a contract.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circuit {
    /// The name for users.
    pub name: String,
    /// The limit, watts.
    pub limit_w: f64,
    /// All hosts on the circuit, whether in the run or not.
    pub hosts: HashMap<String, Draw>,
}

impl Circuit {
    /// Returns the power that is left when all hosts are idle, milliwatts; `None` if their idle power exceeds the
    /// limit.
    fn room_mw(&self) -> Option<u64> {
        let idle: f64 = self.hosts.values().map(|draw| draw.idle_w).sum();
        let left = (self.limit_w - idle) * 1000.0;
        (left >= 0.0).then_some(left as u64)
    }
}

#[derive(Clone, Debug)]
struct Plug {
    /// The circuits that the host draws from.
    circuits: Vec<usize>,
    /// The power of a slot, milliwatts, rounded up.
    slot_mw: u64,
}

/// The power in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct PowerBudget {
    circuits: Vec<Circuit>,
    /// The power of running tasks on each circuit, milliwatts.
    used_mw: Vec<u64>,
    plugs: HashMap<HostIx, Plug>,
}

impl PowerBudget {
    pub fn new(circuits: Vec<Circuit>) -> PowerBudget {
        PowerBudget { used_mw: vec![0; circuits.len()], circuits, plugs: HashMap::new() }
    }

    /// Adds a host. Returns how many of its slots may ever be in use, and the circuit that limits them.
    pub fn host_up(&mut self, host: HostIx, name: &str, slots: u32) -> Option<(u32, &str)> {
        let of = |circuit: &Circuit| circuit.hosts.get(name).copied();
        let on: Vec<usize> = (0..self.circuits.len()).filter(|at| of(&self.circuits[*at]).is_some()).collect();
        let draw = on.first().and_then(|at| of(&self.circuits[*at]))?;
        let slot_mw = ((draw.full_w - draw.idle_w).max(0.0) * 1000.0 / f64::from(slots.max(1))).ceil() as u64;
        self.plugs.insert(host, Plug { circuits: on.clone(), slot_mw });
        let most = |at: &usize| self.circuits[*at].room_mw().map_or(0, |room| fit(room, slot_mw));
        let tightest = on.into_iter().min_by_key(|at| most(at))?;
        Some((most(&tightest).min(slots), &self.circuits[tightest].name))
    }

    /// Returns how many more slots of a host may be used now.
    pub fn room(&self, host: HostIx) -> u32 {
        let Some(plug) = self.plugs.get(&host) else { return u32::MAX };
        let of = |at: &usize| {
            let room = self.circuits[*at].room_mw().unwrap_or(0);
            fit(room.saturating_sub(self.used_mw[*at]), plug.slot_mw)
        };
        plug.circuits.iter().map(of).min().unwrap_or(u32::MAX)
    }

    /// Counts slots that come into use (`begins`) or become free.
    pub fn claim(&mut self, host: HostIx, slots: u32, begins: bool) {
        let Some(plug) = self.plugs.get(&host) else { return };
        let watts = plug.slot_mw.saturating_mul(u64::from(slots));
        for at in &plug.circuits {
            let used = &mut self.used_mw[*at];
            *used = if begins { used.saturating_add(watts) } else { used.saturating_sub(watts) };
        }
    }

    /// Returns the names of the circuits without power for one more slot of any host.
    pub fn full(&self) -> Vec<&str> {
        let on = |at: usize| self.plugs.values().any(|plug| plug.circuits.contains(&at));
        let full = |at: &usize| {
            let left = self.circuits[*at].room_mw().unwrap_or(0).saturating_sub(self.used_mw[*at]);
            self.plugs.values().filter(|plug| plug.circuits.contains(at)).all(|plug| fit(left, plug.slot_mw) == 0)
        };
        (0..self.circuits.len()).filter(|at| on(*at) && full(at)).map(|at| self.circuits[at].name.as_str()).collect()
    }
}

fn fit(room_mw: u64, slot_mw: u64) -> u32 {
    room_mw.checked_div(slot_mw).map_or(u32::MAX, |slots| slots.min(u64::from(u32::MAX)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circuit(limit_w: f64, hosts: &[(&str, f64, f64)]) -> Circuit {
        let draw =
            |(name, idle_w, full_w): &(&str, f64, f64)| (name.to_string(), Draw { idle_w: *idle_w, full_w: *full_w });
        Circuit { name: "rack".into(), limit_w, hosts: hosts.iter().map(draw).collect() }
    }

    #[test]
    fn idle_hosts_draw_and_each_slot_takes_its_part() {
        let mut power = PowerBudget::new(vec![circuit(400.0, &[("n1", 100.0, 200.0), ("n2", 100.0, 300.0)])]);
        assert_eq!(power.host_up(0, "n1", 4), Some((4, "rack")));
        assert_eq!(power.host_up(1, "n2", 2), Some((2, "rack")));
        assert_eq!(power.host_up(2, "elsewhere", 2), None);
        assert_eq!((power.room(0), power.room(1), power.room(2)), (8, 2, u32::MAX));
        power.claim(1, 1, true);
        power.claim(0, 3, true);
        assert_eq!((power.room(0), power.room(1)), (1, 0));
        assert_eq!(power.full(), Vec::<&str>::new(), "n1 has room for one more");
        power.claim(0, 1, true);
        assert_eq!(power.full(), ["rack"]);
        power.claim(1, 1, false);
        assert_eq!((power.room(0), power.room(1)), (4, 1));
    }

    #[test]
    fn hosts_that_are_too_much_when_idle_start_nothing() {
        let mut power = PowerBudget::new(vec![circuit(150.0, &[("n1", 100.0, 200.0), ("n2", 100.0, 200.0)])]);
        assert_eq!(power.host_up(0, "n1", 4), Some((0, "rack")));
        assert_eq!(power.room(0), 0);
    }

    #[test]
    fn of_two_circuits_the_tighter_one_counts() {
        let wide = circuit(1000.0, &[("n1", 100.0, 200.0), ("n2", 100.0, 200.0)]);
        let tight = Circuit { name: "fuse".into(), ..circuit(150.0, &[("n1", 100.0, 200.0)]) };
        let mut power = PowerBudget::new(vec![wide, tight]);
        assert_eq!(power.host_up(0, "n1", 2), Some((1, "fuse")));
        assert_eq!(power.host_up(1, "n2", 2), Some((2, "rack")));
        power.claim(0, 1, true);
        assert_eq!((power.room(0), power.room(1), power.full()), (0, 15, vec!["fuse"]));
    }
}
