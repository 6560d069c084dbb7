//! Expands a file with different values for each host.

use crate::site::ClusterSite;

/// Returns the text for a host, which is the `index`th, from 1. `{host}`, `{index}` and `{addr.NETWORK}` are
/// replaced. All other braces stay, because configuration files contain them.
pub fn expand(template: &str, host: &str, index: usize, site: &ClusterSite) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), template);
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        let Some(name) = rest[1..].split_once('}').map(|(name, _)| name) else { break };
        match value(name, host, index, site)? {
            Some(value) => {
                text.push_str(&value);
                rest = &rest[name.len() + 2..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    Ok(text + rest)
}

fn value(name: &str, host: &str, index: usize, site: &ClusterSite) -> Result<Option<String>, String> {
    let Some(network) = name.strip_prefix("addr.") else {
        return Ok(match name {
            "host" => Some(host.into()),
            "index" => Some(index.to_string()),
            _ => None,
        });
    };
    let address = site.addresses.get(host).and_then(|of| of.get(network));
    let missing = || format!("{{{name}}}: [host.{host}] of the cluster file has no address {network}");
    address.map(|a| Some(a.to_string())).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_its_values_and_other_braces_stay() {
        let of = |a: &str| [("storage".to_string(), a.parse().unwrap())].into();
        let site = ClusterSite { addresses: [("n2".to_string(), of("10.9.0.2"))].into(), ..ClusterSite::default() };
        let text = "name={host} {{index}} ip={addr.storage} ${HOME} { { {x} {";
        assert_eq!(expand(text, "n2", 2, &site).unwrap(), "name=n2 {2} ip=10.9.0.2 ${HOME} { { {x} {");
        let why = expand(text, "n3", 3, &site).unwrap_err();
        assert_eq!(why, "{addr.storage}: [host.n3] of the cluster file has no address storage");
    }
}
