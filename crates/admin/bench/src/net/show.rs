//! Formats the findings as sentences, then the best values of each host.

use super::ask::Hosts;
use homing_model::document;
use homing_model::units::count;
use homing_network::{FlowRate, Judge, Latency, NetworkFinding, NetworkMeasurements, Pair, ServerRates};
use std::fmt::Write;

/// The best values of a host.
#[derive(Default, serde::Serialize)]
struct BestRates {
    sends_mbit_per_s: Option<f64>,
    receives_mbit_per_s: Option<f64>,
    /// Both directions at once, together.
    at_once_mbit_per_s: Option<f64>,
    /// Half of a round trip of one byte: the median with the nearest partner, and its 99th percentile.
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

fn best(measured: &NetworkMeasurements, host: usize) -> BestRates {
    let most = |flows: &mut dyn Iterator<Item = FlowRate>| flows.map(|flow| flow.mbit_per_s).reduce(f64::max);
    let own = || measured.pairs().filter(move |pair| pair.has(host));
    let from = own().flat_map(Pair::one_way).filter(|(from, ..)| *from == host).map(|(.., flow)| flow);
    let to = own().flat_map(Pair::one_way).filter(|(_, to, _)| *to == host).map(|(.., flow)| flow);
    let together = own().filter_map(|pair| pair.both).map(|(there, back)| there.mbit_per_s + back.mbit_per_s);
    let bytes = own().flat_map(|pair| &pair.latency).filter(|latency| latency.bytes == 1);
    let nearest = bytes.min_by(|a, b| a.p50_us.total_cmp(&b.p50_us));
    BestRates {
        sends_mbit_per_s: most(&mut from.into_iter()),
        receives_mbit_per_s: most(&mut to.into_iter()),
        at_once_mbit_per_s: together.reduce(f64::max),
        p50_us: nearest.map(|latency| latency.p50_us),
        p99_us: nearest.map(|latency| latency.p99_us),
    }
}

/// Returns the measurement as text for people.
pub fn text(measured: &NetworkMeasurements, found: &[NetworkFinding]) -> String {
    let mut text = String::new();
    for finding in found {
        let _ = writeln!(text, "{}\n    look at: {}", finding.sentence, finding.look);
    }
    if found.is_empty() {
        let _ = writeln!(text, "nothing is slow: {}", well(measured));
    }
    let wide = measured.hosts.iter().map(|host| host.name.len()).max().unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "\n{:<wide$} {:>7} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "HOST", "LINK", "MTU", "SENDS", "RECEIVES", "AT ONCE", "P50 US", "P99 US"
    );
    for (at, host) in measured.hosts.iter().enumerate() {
        let best = best(measured, at);
        let _ = writeln!(
            text,
            "{:<wide$} {:>7} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}",
            host.name,
            number(host.speed.map(f64::from), 0),
            number(host.mtu.map(f64::from), 0),
            number(best.sends_mbit_per_s, 0),
            number(best.receives_mbit_per_s, 0),
            number(best.at_once_mbit_per_s, 0),
            number(best.p50_us, 1),
            number(best.p99_us, 1),
        );
    }
    text + "Mbit/s of the best round of each host; P50 and P99: half of the round trip of one byte to its nearest partner\n"
}

fn well(measured: &NetworkMeasurements) -> String {
    let hosts = count(measured.hosts.len() as u64, "host");
    format!("{hosts} at {:.0} Mbit/s each way", Judge::new(measured).expected(0, 1))
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

/// Returns the rates of storage servers as text.
pub fn more(served: &[ServerRates]) -> String {
    served.iter().flat_map(ServerRates::sentences).fold(String::new(), |text, line| text + "\n" + &line + "\n")
}

/// Returns the measurement as JSON.
pub fn json(measured: &NetworkMeasurements, found: &[NetworkFinding], served: &[ServerRates]) -> String {
    let host = |(at, host)| serde_json::json!({ "host": host, "best": best(measured, at) });
    let hosts: Vec<_> = measured.hosts.iter().enumerate().map(host).collect();
    let measured = serde_json::json!({
        "findings": found,
        "hosts": hosts,
        "rounds": measured.rounds,
        "storage": served,
        "exit": i32::from(!found.is_empty()),
    });
    document::line(measured)
}

/// The latency of messages of one size between two hosts.
#[derive(serde::Serialize)]
pub struct Point {
    #[serde(flatten)]
    took: Latency,
    /// The rate of messages of this size, one after another.
    mbit_per_s: f64,
    /// That rate as a share of the speed that the slower link negotiated, where that is known.
    share: Option<f64>,
}

/// Computes the points of all sizes. `speed` is that of the slower link, Mbit/s.
pub fn points(took: &[Latency], speed: Option<u32>) -> Vec<Point> {
    let point = |took: &Latency| {
        let mbit_per_s = f64::from(took.bytes) * 8.0 / took.p50_us;
        Point { took: *took, mbit_per_s, share: speed.map(|speed| mbit_per_s / f64::from(speed)) }
    };
    took.iter().filter(|took| took.p50_us > 0.0).map(point).collect()
}

/// The curve of TCP, and that of MPI where it was requested.
pub struct Curve {
    /// The curve of TCP.
    pub tcp: Vec<Point>,
    /// The name of the MPI, and its points.
    pub mpi: Option<(String, Vec<Point>)>,
}

/// Returns a curve as text for people.
pub fn curve(hosts: &Hosts, curve: &Curve) -> String {
    let [a, b] = [0, 1].map(|at| &hosts.known[at].name);
    let mut text = format!("messages between {a} and {b}: half of the round trip\n");
    let share = |point: &Point| point.share.map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
    let _ = write!(text, "{:>8} {:>10} {:>10} {:>10} {:>8}", "BYTES", "P50 US", "P99 US", "MBIT/S", "OF LINK");
    let heads = format!(" {:>10} {:>10} {:>8} {:>8}", "MPI US", "MPI MBIT/S", "OF LINK", "OF TCP");
    let _ = writeln!(text, "{}", if curve.mpi.is_some() { heads.as_str() } else { "" });
    for point in &curve.tcp {
        let Latency { bytes, p50_us, p99_us, .. } = point.took;
        let _ = write!(text, "{bytes:>8} {p50_us:>10.1} {p99_us:>10.1} {:>10.1} {:>8}", point.mbit_per_s, share(point));
        let other = curve.mpi.iter().flat_map(|(_, points)| points).find(|other| other.took.bytes == bytes);
        let _ = match other {
            None => writeln!(text),
            Some(other) => writeln!(
                text,
                " {:>10.1} {:>10.1} {:>8} {:>8}",
                other.took.p50_us,
                other.mbit_per_s,
                share(other),
                format!("{:.0} %", other.mbit_per_s / point.mbit_per_s * 100.0)
            ),
        };
    }
    curve.mpi.iter().for_each(|(name, _)| text += &format!("MPI: {name}\n"));
    text
}

/// Returns a curve as JSON.
pub fn curve_json(hosts: &Hosts, curve: &Curve) -> String {
    let mpi = curve.mpi.as_ref().map(|(name, points)| serde_json::json!({ "name": name, "curve": points }));
    document::line(serde_json::json!({ "hosts": hosts.known, "curve": curve.tcp, "mpi": mpi }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_tells_what_share_of_the_slower_link_it_uses() {
        let took = |bytes, p50_us| Latency { bytes, p50_us, ..Latency::default() };
        let all = [took(1, 8.0), took(100, 0.0), took(1000, 16.0)];
        let told: Vec<_> = points(&all, Some(1000)).iter().map(|p| (p.took.bytes, p.mbit_per_s, p.share)).collect();
        assert_eq!(told, [(1, 1.0, Some(0.001)), (1000, 500.0, Some(0.5))]);
        assert_eq!(points(&all, None)[0].share, None);
    }
}
