//! `-R exec`: the command runs on this machine, once for each host, with the host's name in the place of `%h`.

/// Returns the words with the host and its number in place of `%h`, `%host`, `%hosts`, `%n`, `%rank`, also in braces.
/// `%%` is `%`.
pub fn filled(words: &str, host: &str, rank: usize) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), words);
    while let Some((before, after)) = rest.split_once('%') {
        text += before;
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let (braced, body) = after.strip_prefix('{').map_or((false, after), |body| (true, body));
        let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(body.len());
        let (name, behind) = body.split_at(end);
        let closed = behind.strip_prefix('}').filter(|_| braced);
        match (name, braced && closed.is_none()) {
            ("h" | "host" | "hosts", false) => text += host,
            ("n" | "rank", false) => text += &rank.to_string(),
            _ => return Err(format!("%{after}: %h is the host, %n its number, %% a single %")),
        }
        rest = closed.unwrap_or(behind);
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_and_its_number_are_filled_in() {
        let of = |text| filled(text, "n7", 3);
        assert_eq!(of("ping %h; echo %{host}x %n %rank %hosts 5%%").unwrap(), "ping n7; echo n7x 3 3 n7 5%");
        for wrong in ["date +%Y", "%", "%{h", "% h"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
