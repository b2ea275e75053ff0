//! The share of a gateway's link that keeps the link alive: a class of its own, before all others.
//!
//! Protocols whose frames never come from beyond the link, such as ARP, would otherwise wait in class-default, and be lost there
//! together with what overloads it: neighbours then fail, and with them every slice. The class is one more slice with a guarantee in
//! a guaranteed policy, so the admission test counts it, and what exceeds it is excess as of any slice. In other policies it has
//! priority up to its rate.

use super::Checker;
use super::policies::Understood;
use crate::file::{Placed, Span};
use crate::{problem, settings};
use slicewise_model::{
    AccessEntry, AccessList, BurstSpec, CLASS_DEFAULT, ClassMap, ClassSpec, Condition, Discipline,
    GuaranteeSpec, IpPrefix, MatchMode, NamedQueueSpec, PolicyParams, PolicySpec, PrioritySpec,
    QueueLimitSpec, QueueSpec, Rate, RateSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount};

/// Name of the class.
const CLASS: &str = "network-control";
/// Name of the queue of classes that shared one before the class came.
const SHARED_QUEUE: &str = "fifo";
/// The default rate: this part of the link, in percent, and no more than this.
const PERCENT: u64 = 1;
const MAX_DEFAULT: BitRate = BitRate::new(1_000_000);
/// Packets of its queue.
const QUEUE_PACKETS: u32 = 64;
/// ARP (RFC 826), slow protocols (LACP, IEEE 802.3 annex 57A), 802.1X, LLDP (IEEE 802.1AB), PTP (IEEE 1588 annex E), and the service
/// access points of bridge protocol data units (IEEE 802.1D) and of SNAP, which per-VLAN spanning trees use.
const ETHERTYPES: [u16; 7] = [0x0806, 0x8809, 0x888e, 0x88cc, 0x88f7, 0x42, 0xaa];
/// Router and neighbour solicitations and advertisements, and redirects (RFC 4861).
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;
/// Service access point of IS-IS (ISO 10589).
const ISIS: u16 = 0xfe;
/// IP protocols EIGRP (RFC 7868), OSPF (RFC 2328, RFC 5340), PIM (RFC 7761), and VRRP (RFC 9568).
const ROUTING_PROTOCOLS: [u8; 4] = [88, 89, 103, 112];
/// Ports of BGP (RFC 4271), RIP (RFC 2453), `RIPng` (RFC 2080), LDP (RFC 5036), and BFD (RFC 5881, RFC 5883).
const ROUTING_PORTS: [u16; 7] = [179, 520, 521, 646, 3784, 3785, 4784];

settings! {
    /// The share of what a link needs to live: ARP, IPv6 neighbour discovery, LACP, STP, LLDP, PTP and 802.1X.
    impl NetworkControl as "NetworkControlSpec", strict = Self::default(); {
        /// Its rate. Default 1 % of the link, and at most 1 Mbit/s.
        rate,
        /// Its burst. Default that of a guarantee or of a priority class.
        burst,
        /// Routing protocols belong to it, too: BGP, OSPF, IS-IS, EIGRP, RIP, LDP, PIM, VRRP and BFD. Default no.
        routing,
        /// False: these frames are classified as all others. Default true.
        enabled,
    }
}

/// Reservation for the protocols that a link needs.
#[derive(Debug, Clone)]
pub(crate) struct NetworkControl {
    rate: Option<RateSpec>,
    burst: Option<ByteCount>,
    routing: bool,
    enabled: bool,
}

impl Default for NetworkControl {
    fn default() -> Self {
        Self {
            rate: None,
            burst: None,
            routing: false,
            enabled: true,
        }
    }
}

impl NetworkControl {
    fn rate(&self, link: BitRate) -> RateSpec {
        let part = link.scaled(PERCENT, 100).max(BitRate::new(1));
        self.rate
            .unwrap_or(RateSpec::Absolute(part.min(MAX_DEFAULT)))
    }

    /// Add its class to a policy for a link of this rate.
    fn add_to(&self, policy: &mut PolicySpec, link: BitRate) {
        if policy.discipline == Discipline::Fifo {
            share_a_named_queue(policy);
        }
        let rate = self.rate(link);
        let is_guaranteed = policy.discipline == Discipline::Guaranteed;
        let class = ClassSpec {
            guarantee: is_guaranteed.then(|| GuaranteeSpec {
                burst: self.burst.map(BurstSpec::Size),
                ..rate.into()
            }),
            priority: (!is_guaranteed).then_some(PrioritySpec {
                level: 1,
                rate: Some(rate),
                burst: self.burst,
                accounting: Accounting::L2,
            }),
            queue: match is_guaranteed {
                true => QueueSpec::default(),
                false => QueueLimitSpec::Packets(QUEUE_PACKETS).into(),
            },
            ..ClassSpec::new(class_map(self.routing))
        };
        policy.classes.insert(0, class);
    }
}

/// The class map: a few exact values, which are looked up in tables.
fn class_map(routing: bool) -> ClassMap {
    let ethertypes = ETHERTYPES.into_iter().map(Condition::Ethertype);
    let neighbours = NEIGHBOUR_DISCOVERY.map(|number| {
        all_of(vec![
            Condition::Source(IpPrefix::ALL_IPV6),
            Condition::IcmpType(number),
        ])
    });
    let protocols = ROUTING_PROTOCOLS.into_iter().map(Condition::Protocol);
    let ports = ROUTING_PORTS.into_iter().flat_map(|port| {
        [
            Condition::SourcePort(port..=port),
            Condition::DestinationPort(port..=port),
        ]
    });
    let of_routing = [Condition::Ethertype(ISIS)]
        .into_iter()
        .chain(protocols)
        .chain(ports);
    ClassMap {
        name: CLASS.to_owned(),
        mode: MatchMode::Any,
        conditions: ethertypes
            .chain(neighbours)
            .chain(of_routing.filter(|_| routing))
            .collect(),
    }
}

fn all_of(conditions: Vec<Condition>) -> Condition {
    let permit = true;
    let entries = vec![AccessEntry { permit, conditions }];
    let name = "all-of".to_owned();
    Condition::AccessList(AccessList { name, entries })
}

/// A policy of one queue, for all its classes, in which another class can have priority.
fn share_a_named_queue(policy: &mut PolicySpec) {
    policy.discipline = Discipline::MinimumShare;
    let is_default = |class: &ClassSpec| class.name == CLASS_DEFAULT;
    if policy.classes.iter().all(is_default) {
        return;
    }
    if !policy.classes.iter().any(is_default) {
        policy.classes.push(ClassSpec::class_default());
    }
    let mut queue = NamedQueueSpec::new(SHARED_QUEUE);
    for class in &mut policy.classes {
        if is_default(class) {
            queue.queue = std::mem::take(&mut class.queue);
        }
        class.named_queue = Some(SHARED_QUEUE.to_owned());
    }
    policy.queues.push(queue);
}

impl Checker<'_> {
    /// The policy that is understood, with the class, unless that is switched off.
    pub(super) fn with_network_control(
        &mut self,
        control: Option<&Placed<NetworkControl>>,
        understood: &mut Understood,
        path: &[&str],
        otherwise: Span,
        link: Rate,
    ) -> Option<PolicyParams> {
        let own = control.map(|control| control.value.clone());
        let own = own.unwrap_or_default();
        if !own.enabled {
            return self.resolved(understood, path, otherwise, link.into());
        }
        let at = control.map_or(otherwise, |control| control.span);
        if understood
            .spec
            .classes
            .iter()
            .any(|class| class.name == CLASS)
        {
            problem!(self.problems, at => "class `{CLASS}` has the name of the gateway's own class for ARP and the like";
                "rename it, or keep only yours with `network_control: {{enabled: false}}`");
            return None;
        }
        let without = understood.spec.clone();
        own.add_to(&mut understood.spec, link.rate);
        let error = match understood.spec.resolve_for(link.into()) {
            Ok(params) => return Some(params),
            Err(error) => error,
        };
        if without.resolve_for(link.into()).is_err() {
            understood.spec = without;
            return self.resolved(understood, path, otherwise, link.into());
        }
        problem!(self.problems, at => "beside the share of ARP and other network control the policy does not fit: {error}";
            "lower a guarantee, give the share less (`network_control: {{rate: …, burst: …}}`), or do without it \
             (`network_control: {{enabled: false}}`)");
        None
    }
}
