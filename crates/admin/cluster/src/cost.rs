//! `[cost]` of the cluster file: prices. homing never assumes a price.

use homing_report::Taken;
use serde::Deserialize;

/// Hours of a year, 365.25 days.
const YEAR_HOURS: f64 = 8766.0;
/// Upper limit of a price.
const HIGHEST: f64 = 1e9;

/// Prices of a site.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The currency.
    pub currency: String,
    host_hour: Option<f64>,
    host_price: Option<f64>,
    host_years: Option<f64>,
    /// Price of a kWh.
    pub kwh: Option<f64>,
    /// Price of storing a GB for a month.
    gb_month: Option<f64>,
}

impl Cost {
    /// Returns the price of a whole host for an hour: the given one, or the host's price divided by the hours of its
    /// use.
    pub fn host_hour(&self) -> Option<f64> {
        self.host_hour.or_else(|| Some(self.host_price? / (self.host_years? * YEAR_HOURS)))
    }

    /// Returns the cost of energy, at least and at most; `None` if the energy or the price is unknown.
    pub fn of_energy(&self, taken: &Taken) -> Option<[f64; 2]> {
        let kwh = self.kwh.filter(|_| taken.is_known())?;
        Some(taken.kwh().map(|taken| taken * kwh))
    }

    /// Returns the cost of storing `bytes` for a month.
    pub fn of_stored(&self, bytes: u64) -> Option<f64> {
        Some(self.gb_month? * bytes as f64 / 1e9)
    }

    /// Returns the wrong key, with the reason.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let prices = [
            ("host_hour", self.host_hour),
            ("host_price", self.host_price),
            ("kwh", self.kwh),
            ("gb_month", self.gb_month),
        ];
        let odd =
            prices.into_iter().find_map(|(key, price)| Some((key, price.filter(|p| !(0.0..HIGHEST).contains(p))?)));
        if let Some((key, price)) = odd {
            return Some((key, format!("{key} = {price} in [cost] is not a price: it must be 0 or more")));
        }
        match (self.host_hour, self.host_price, self.host_years) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Some(("host_hour", "[cost] has host_hour, or host_price and host_years, but not both".into()))
            }
            (_, Some(_), None) => Some(("host_price", "host_price in [cost] needs host_years too".into())),
            (_, None, Some(_)) => Some(("host_years", "host_years in [cost] needs host_price too".into())),
            (.., Some(years)) if !(years > 0.0 && years < 100.0) => {
                Some(("host_years", format!("host_years = {years} in [cost] is not a number of years above 0")))
            }
            _ if prices.iter().all(|(_, price)| price.is_none()) => {
                Some(("[cost]", "[cost] has no price: host_hour = 0.12, kwh = 0.30".into()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(text: &str) -> Cost {
        toml::from_str(&format!("currency = \"EUR\"\n{text}")).unwrap()
    }

    #[test]
    fn a_host_that_is_bought_has_a_price_an_hour() {
        assert_eq!(cost("host_hour = 0.12").host_hour(), Some(0.12));
        assert_eq!(cost("host_price = 8766\nhost_years = 4").host_hour(), Some(0.25));
        assert_eq!(cost("kwh = 0.3").host_hour(), None);
    }

    #[test]
    fn energy_and_stored_bytes_cost_what_is_said_and_nothing_else() {
        use homing_report::{HostUsage, Used};
        let hour = HostUsage { us: 3_600_000_000, busy_us: 1, all_us: 1, ..HostUsage::default() };
        let used = Used { cpu_us: 1, host_us: hour.us, held: hour, ..Used::default() };
        let kwh = used.taken("n1", Some([1000.0, 1000.0]));
        assert_eq!(cost("kwh = 0.5").of_energy(&kwh), Some([0.5, 0.5]));
        assert_eq!(cost("host_hour = 1").of_energy(&kwh), None);
        assert_eq!(cost("kwh = 0.5").of_energy(&used.taken("n1", None)), None);
        assert_eq!(cost("gb_month = 0.02").of_stored(50_000_000_000), Some(1.0));
    }

    #[test]
    fn prices_that_cannot_be_are_named() {
        for (text, key, words) in [
            ("host_hour = -1", "host_hour", "not a price"),
            ("kwh = nan", "kwh", "not a price"),
            ("gb_month = inf", "gb_month", "not a price"),
            ("host_hour = 1\nhost_price = 1\nhost_years = 1", "host_hour", "not both"),
            ("host_hour = 1\nhost_years = 1", "host_hour", "not both"),
            ("host_price = 1", "host_price", "host_years too"),
            ("host_years = 1", "host_years", "host_price too"),
            ("host_price = 1\nhost_years = 0", "host_years", "not a number of years"),
            ("", "[cost]", "no price"),
        ] {
            let (at, why) = cost(text).fault().unwrap_or_else(|| panic!("{text}"));
            assert!(at == key && why.contains(words), "{text}: {at}: {why}");
        }
        for text in ["host_hour = 0", "kwh = 0.3", "gb_month = 0.02", "host_price = 4000\nhost_years = 4\nkwh = 0.3"] {
            assert_eq!(cost(text).fault(), None, "{text}");
        }
    }
}
