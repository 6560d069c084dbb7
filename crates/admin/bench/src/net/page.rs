//! Shows a measurement on one page: the findings as sentences, the pairs as a picture, and the numbers of each host.

use super::show::{more, text};
use homing_network::{Judge, NetworkFinding, NetworkMeasurements, Pair, ServerRates};
use homing_report::{chart, picture};

/// Returns one page that loads nothing from elsewhere.
pub fn page(measured: &NetworkMeasurements, found: &[NetworkFinding], served: &[ServerRates]) -> String {
    let judge = Judge::new(measured);
    let names: Vec<String> = measured.hosts.iter().map(|host| host.name.clone()).collect();
    let rate = |from: usize, to: usize| {
        let flows = measured.pairs().flat_map(Pair::one_way).filter(|(f, t, _)| (*f, *t) == (from, to));
        let best = flows.map(|(.., flow)| flow.mbit_per_s).reduce(f64::max)?;
        Some((best, best / judge.expected(from, to)))
    };
    let took = |from: usize, to: usize| {
        let own = measured.pairs().filter(|pair| pair.is(from, to)).flat_map(|pair| &pair.latency);
        own.filter(|took| took.bytes == 1).map(|took| took.p50_us).reduce(f64::min)
    };
    let mut all: Vec<f64> = (0..names.len()).flat_map(|a| (0..a).filter_map(move |b| took(a, b))).collect();
    all.sort_by(f64::total_cmp);
    let usual = all.get(all.len() / 2).copied().unwrap_or(1.0);
    let latency =
        |from: usize, to: usize| took(from, to).map(|took| (took, (usual / took.max(f64::MIN_POSITIVE)).min(1.0)));
    let said: Vec<String> = match found {
        [] => vec!["nothing is slow".into()],
        _ => found.iter().map(|finding| format!("{}; look at: {}", finding.sentence, finding.look)).collect(),
    };
    let mut body = chart::list("Slow hosts and links", &said);
    body += &picture::matrix("Mbit/s from the host of the row to the host of the column, best round", &names, &rate);
    body += &picture::matrix("Latency of one byte (half of the round trip), microseconds", &names, &latency);
    let numbers = text(measured, found) + &more(served);
    body += &format!(
        "<h2>All numbers</h2><pre>{}</pre>",
        numbers.lines().map(|line| homing_report::escape(line) + "\n").collect::<String>()
    );
    let about = "White is the usual rate, red is half of it or less, grey is a pair that was not measured. A few pairs are enough to \
                 find the slow hosts; --pairs measures all.";
    chart::page("The network between the hosts", &[about.to_string()], &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_network::{BackgroundTraffic, FlowRate, NetworkHost, Round};

    #[test]
    fn a_pair_is_a_cell_and_a_name_is_no_markup() {
        let flow = |mbit_per_s| Some(FlowRate { mbit_per_s, again: 0.0 });
        let host = |name: &str| NetworkHost { name: name.into(), ..NetworkHost::default() };
        let pair = Pair { a: 0, b: 1, there: flow(930.0), back: flow(310.0), ..Pair::default() };
        let rounds = vec![Round { load: BackgroundTraffic::Crowd, pairs: vec![pair] }];
        let page = page(&NetworkMeasurements { hosts: vec![host("n1"), host("<n2>")], rounds }, &[], &[]);
        assert!(page.contains("n1 to &lt;n2&gt;: 930.0") && page.contains("&lt;n2&gt; to n1: 310.0, 33 %"), "{page}");
        assert!(!page.contains("<n2>") && page.contains("nothing is slow"), "{page}");
    }
}
