//! VLAN tags at the interface of a host, where the kernel has no VLAN interfaces (module 8021q).
//!
//! Two small eBPF programs at traffic control: one puts tags on frames by their addresses when they
//! leave, the other takes all tags off when frames arrive, so that the host's own IP never sees any.
//! They go when the interface or its namespace goes.

mod program;

use crate::bpf::filter::{self, Hook};
use crate::bpf::{Program, ProgramType};
use crate::sys::interface::Interfaces;
use crate::sys::netlink::Netlink;
use std::io;
use std::net::IpAddr;

/// Most rules at an interface. A frame is compared with them one after the other, 3 to 5 ns each.
pub const MOST_RULES: usize = 1_000;

/// The greatest VLAN identifier (IEEE 802.1Q; 0 is that of a tag with a priority only, and 4095 is reserved).
const GREATEST_VLAN: u16 = 4_094;

/// Which tags frames from one address to another get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagRule {
    /// Whom they are from.
    pub source: IpAddr,
    /// Whom they are for; of the same family.
    pub destination: IpAddr,
    /// Identifier in the (outer) tag, 0 to 4094. The tag has type 0x8100 and priority 0.
    pub vlan: u16,
    /// Identifier in a second tag behind it, if there is to be one; also of type 0x8100.
    pub inner_vlan: Option<u16>,
}

/// Have frames that leave `interface`, in the network namespace that this thread is in, tagged by the
/// first of `rules` with their addresses, and up to two tags taken off every frame that arrives. Rules that
/// were there are replaced.
///
/// Turn VLAN insertion off ([`Interfaces::send_as_on_a_wire`]), or between virtual interfaces the outer
/// tag travels as metadata instead of in the frame. With two tags, the MTU at the other end must exceed that
/// of the longest packet by 4 bytes: interfaces allow for one tag only.
///
/// # Errors
/// `InvalidInput` for more than [`MOST_RULES`] and for rules that cannot be; without `CAP_NET_ADMIN` and
/// `CAP_BPF`; where the kernel lacks `clsact` or `cls_bpf`.
pub fn attach(interface: &str, rules: &[TagRule]) -> io::Result<()> {
    check(rules)?;
    let doing = |what: &'static str| {
        move |error: io::Error| {
            let problem = format!("VLAN tags at `{interface}`: {what}: {error}");
            io::Error::new(error.kind(), problem)
        }
    };
    let state = Interfaces::new()?.state(interface);
    let state = state.map_err(doing("cannot read its state"))?;
    let load = |instructions: &[_]| Program::load(ProgramType::Classifier, instructions);
    let push = load(&program::push_tags(rules)).map_err(doing("cannot load an eBPF program"))?;
    let pop = load(&program::pop_tags()).map_err(doing("cannot load an eBPF program"))?;
    let netlink = Netlink::new()?;
    filter::prepare(&netlink, state.index).map_err(doing("cannot create a `clsact` qdisc"))?;
    for (hook, program) in [(Hook::Ingress, &pop), (Hook::Egress, &push)] {
        filter::attach(&netlink, state.index, hook, program)
            .map_err(doing("cannot attach an eBPF program"))?;
    }
    Ok(())
}

fn check(rules: &[TagRule]) -> io::Result<()> {
    let refused = |problem| Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    if rules.len() > MOST_RULES {
        return refused(format!(
            "{} rules for VLAN tags at an interface, and {MOST_RULES} are possible",
            rules.len()
        ));
    }
    for rule in rules {
        if rule.source.is_ipv4() != rule.destination.is_ipv4() {
            return refused(format!(
                "from {} to {}: the addresses are of two families",
                rule.source, rule.destination
            ));
        }
        for vlan in [Some(rule.vlan), rule.inner_vlan].into_iter().flatten() {
            if vlan > GREATEST_VLAN {
                return refused(format!("VLAN {vlan}: identifiers are 0 to {GREATEST_VLAN}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn refuses_rules_that_cannot_be() {
        let rule = TagRule {
            source: Ipv4Addr::LOCALHOST.into(),
            destination: Ipv4Addr::BROADCAST.into(),
            vlan: 4_094,
            inner_vlan: Some(1),
        };
        let refusal = |rules: &[TagRule]| check(rules).unwrap_err().to_string();
        assert!(check(&[rule; MOST_RULES]).is_ok());
        assert_snapshot!(
            refusal(&[rule; MOST_RULES + 1]),
            @"1001 rules for VLAN tags at an interface, and 1000 are possible"
        );
        let vlan = 4_095;
        assert_snapshot!(refusal(&[TagRule { vlan, ..rule }]), @"VLAN 4095: identifiers are 0 to 4094");
        let inner_vlan = Some(4_095);
        assert_snapshot!(refusal(&[TagRule { inner_vlan, ..rule }]), @"VLAN 4095: identifiers are 0 to 4094");
        let destination = Ipv6Addr::LOCALHOST.into();
        assert_snapshot!(
            refusal(&[TagRule { destination, ..rule }]),
            @"from 127.0.0.1 to ::1: the addresses are of two families"
        );
    }
}
