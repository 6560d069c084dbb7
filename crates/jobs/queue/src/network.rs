//! Names the network between the ranks of a job for MPI libraries.

use homing_model::RawText;
use std::ffi::CStr;
use std::net::IpAddr;

/// The variable with the job's subnet. The host that starts the command adds the name of its own interface.
const SUBNET: &str = "HOMING_NET_SUBNET";

/// Returns the smallest subnet that has all of these addresses, as `10.2.0.0/29`; none without addresses of one
/// family.
pub fn subnet(addresses: &[IpAddr]) -> Option<String> {
    let bits = |address: &IpAddr| match address {
        IpAddr::V4(a) => (u128::from(u32::from(*a)) << 96, 32),
        IpAddr::V6(a) => (u128::from(*a), 128),
    };
    let (first, width) = bits(addresses.first()?);
    if addresses.iter().any(|address| bits(address).1 != width) {
        return None;
    }
    let differing = addresses.iter().fold(0, |sum, address| sum | (first ^ bits(address).0));
    let prefix = differing.leading_zeros().min(width);
    let kept = if prefix == 0 { 0 } else { first & (u128::MAX << (128 - prefix)) };
    let base =
        if width == 32 { IpAddr::from(((kept >> 96) as u32).to_be_bytes()) } else { IpAddr::from(kept.to_be_bytes()) };
    Some(format!("{base}/{prefix}"))
}

/// Whether a subnet has an address.
pub fn has(of: &str, address: IpAddr) -> bool {
    let prefix = |text: &str| text.rsplit_once('/').and_then(|(_, n)| n.parse::<u32>().ok());
    let base = of.split('/').next().and_then(|base| base.parse().ok());
    let together = base.and_then(|base| subnet(&[base, address]));
    together.and_then(|together| Some(prefix(&together)? >= prefix(of)?)).unwrap_or(false)
}

/// Returns the variables of a job that is to use the network of this name.
pub fn variables(name: &str, subnet: &str) -> Vec<(RawText, RawText)> {
    let all = [("HOMING_NET", name), (SUBNET, subnet), ("OMPI_MCA_btl_tcp_if_include", subnet)];
    all.map(|(name, value)| (name.into(), value.into())).into()
}

/// Returns the variables for MPICH, which knows interfaces by name alone: Hydra for its daemons, UCX for the ranks.
pub(crate) fn of_interface(env: &[(RawText, RawText)]) -> Vec<(String, String)> {
    let asked = env.iter().find(|(name, _)| name.0 == SUBNET.as_bytes());
    let found = asked.and_then(|(_, subnet)| interface(std::str::from_utf8(&subnet.0).ok()?));
    let named = |name: String| MPICH.map(|variable| (variable.to_string(), name.clone()));
    found.into_iter().flat_map(named).collect()
}

/// Variables of MPICH that hold the name of an interface.
const MPICH: [&str; 2] = ["HYDRA_IFACE", "UCX_NET_DEVICES"];

/// Returns shell lines that set them in a script on the host.
pub(crate) fn lines(env: &[(RawText, RawText)]) -> String {
    if !env.iter().any(|(name, _)| name.0 == SUBNET.as_bytes()) {
        return String::new();
    }
    let set = MPICH.map(|variable| format!("{variable}=$homing_net; export {variable}\n")).concat();
    format!(
        "homing_net=$(ip -o addr show to \"${SUBNET}\" 2>/dev/null | {{ read -r _ name _; echo \"$name\"; }})\n\
         if [ -n \"$homing_net\" ]; then\n{set}fi\n"
    )
}

/// Returns the interface of this host that has an address of the subnet.
fn interface(subnet: &str) -> Option<String> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call fills in a list, which is read before it is freed, and freed once.
    unsafe {
        if libc::getifaddrs(&mut first) != 0 {
            return None;
        }
        let all = std::iter::successors(first.as_ref(), |one| one.ifa_next.as_ref());
        let ours = |one: &&libc::ifaddrs| address(one.ifa_addr).is_some_and(|address| has(subnet, address));
        let name = all.filter(|one| !one.ifa_name.is_null()).find(ours);
        let name = name.map(|one| CStr::from_ptr(one.ifa_name).to_string_lossy().into_owned());
        libc::freeifaddrs(first);
        name
    }
}

/// Returns the address in a list entry.
///
/// # Safety `of` is null or points to an address of the kernel.
unsafe fn address(of: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the family gives the type of the address.
    unsafe {
        match i32::from(of.as_ref()?.sa_family) {
            libc::AF_INET => Some(IpAddr::from((*of.cast::<libc::sockaddr_in>()).sin_addr.s_addr.to_ne_bytes())),
            libc::AF_INET6 => Some(IpAddr::from((*of.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[&str]) -> Option<String> {
        subnet(&all.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn the_smallest_subnet_has_them_all() {
        assert_eq!(of(&["10.2.0.1", "10.2.0.2", "10.2.0.4"]).as_deref(), Some("10.2.0.0/29"));
        assert_eq!(of(&["10.2.0.9"]).as_deref(), Some("10.2.0.9/32"));
        assert_eq!(of(&["10.2.0.1", "192.168.0.1"]).as_deref(), Some("0.0.0.0/0"));
        assert_eq!(of(&["fd00::1", "fd00::2"]).as_deref(), Some("fd00::/126"));
        assert_eq!((of(&[]), of(&["10.2.0.1", "fd00::1"])), (None, None));
    }

    #[test]
    fn a_subnet_has_its_own_addresses() {
        for (subnet, address, is) in [
            ("10.2.0.0/29", "10.2.0.7", true),
            ("10.2.0.0/29", "10.2.0.8", false),
            ("10.2.0.9/32", "10.2.0.9", true),
            ("10.2.0.9/32", "10.2.0.8", false),
            ("0.0.0.0/0", "192.168.0.1", true),
            ("fd00::/126", "fd00::3", true),
            ("fd00::/126", "10.2.0.1", false),
        ] {
            assert_eq!(has(subnet, address.parse().unwrap()), is, "{subnet} {address}");
        }
    }

    #[test]
    fn this_machine_is_on_its_loopback() {
        let env = variables("own", "127.0.0.0/8");
        assert_eq!(of_interface(&env), MPICH.map(|name| (name.to_string(), "lo".to_string())));
        assert_eq!(of_interface(&[]), []);
        assert_eq!(of_interface(&variables("far", "203.0.113.0/24")), []);
    }
}
