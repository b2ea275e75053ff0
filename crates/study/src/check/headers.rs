//! Header fields of packets.

use super::Checker;
use super::matching::MAX_VLAN;
use crate::params::{SourceHeaders, TunnelParams};
use crate::spec::{At, Dscp, Protocol, Scalar, narrowed};
use crate::{problem, settings};
use slicewise_traffic::scenario::Ecn;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;

/// Addresses reserved for documentation (RFC 5737), for studies whose classes do not look at them.
const DEFAULT_SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const DEFAULT_DESTINATION: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The first ephemeral port (RFC 6335).
const EPHEMERAL: u16 = 49_152;
/// The port of iperf3.
const IPERF3: u16 = 5201;
/// The port of HTTP.
const HTTP: u16 = 80;
/// The IP protocol of TCP.
pub(super) const TCP: u8 = 6;
/// The IP protocol of UDP.
const UDP: u8 = 17;

/// Header fields that neither a source nor its slice states.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    protocol: u8,
    source_port: u16,
    destination_port: u16,
}

impl Defaults {
    /// Of packets that no answer changes.
    pub(super) const OPEN_LOOP: Self = Self {
        protocol: UDP,
        source_port: EPHEMERAL,
        destination_port: IPERF3,
    };
    /// Of an application whose sender opens connections.
    pub(super) const CLIENT: Self = Self {
        protocol: TCP,
        ..Self::OPEN_LOOP
    };
    /// Of one whose sender is asked.
    pub(super) const SERVER: Self = Self {
        protocol: TCP,
        source_port: HTTP,
        destination_port: EPHEMERAL,
    };
}

narrowed! {
    /// A VLAN id.
    #[derive(Copy)]
    VlanId(u16) as "Port": |text| match u16::from_text(text)? {
        id if id > MAX_VLAN => Err(format!("a VLAN id may be at most {MAX_VLAN}")),
        id => Ok(id),
    };
    /// A tunnel endpoint identifier.
    #[derive(Copy)]
    Teid(u32) as "Number": |text| match u32::from_text(text)? {
        0 => Err("TEID 0 is not used by user packets: the smallest is 1".to_owned()),
        teid => Ok(teid),
    };
}

settings! {
    /// The ends of a GTP-U tunnel: the outer packet goes from one to the other, over IPv4.
    struct TunnelSpec as "TunnelSpec" {
        /// Source address of the outer packet. Default 192.0.2.1.
        source: Option<At<IpAddr>>,
        /// Destination address of the outer packet. Default 198.51.100.1.
        destination: Option<At<IpAddr>>,
    }
}

settings! {
    /// Header fields of a source's packets.
    struct HeadersSpec as "HeadersSpec" {
        /// VLAN id of the outermost tag. Default: no tag.
        vlan: Option<At<VlanId>>,
        /// VLAN id of the second tag. Default: no second tag.
        inner_vlan: Option<At<VlanId>>,
        /// Source address. Default 192.0.2.1.
        source: Option<At<IpAddr>>,
        /// Destination address. Default 198.51.100.1.
        destination: Option<At<IpAddr>>,
        /// IP protocol. Default udp, and tcp for an application, which has no other.
        protocol: Option<At<Protocol>>,
        /// Source port. Default 49152; 80 for an application that answers requests.
        source_port: Option<u16>,
        /// Destination port. Default 5201, as iperf3; 49152 for an application that answers requests.
        destination_port: Option<u16>,
        /// Differentiated-services code point. Default 0.
        dscp: Option<Dscp>,
        /// Explicit congestion notification: queues with `ecn: yes` mark packets that are `ect0` or `ect1`
        /// instead of dropping them. Default not_ect. Simulated studies only.
        ecn: Option<Ecn>,
        /// Tunnel endpoint identifier: packets are in a GTP-U tunnel, and the fields above are those of the inner packet; the
        /// outer one has the same tags, code point and congestion notification. Default: no tunnel.
        teid: Option<At<Teid>>,
        /// The ends of that tunnel.
        tunnel: TunnelSpec,
    }
}

impl Checker<'_> {
    /// Header fields: the source's own, else the slice's, else the defaults.
    pub(super) fn headers(
        &mut self,
        own: &HeadersSpec,
        slice: &HeadersSpec,
        defaults: Defaults,
    ) -> SourceHeaders {
        let vlan = own.vlan.as_ref().or(slice.vlan.as_ref());
        let inner_vlan = own.inner_vlan.as_ref().or(slice.inner_vlan.as_ref());
        if let (None, Some(inner)) = (vlan, inner_vlan) {
            problem!(self.problems, inner.span => "a second VLAN tag needs a first: set `vlan` too");
        }
        let source_at = own.source.as_ref().or(slice.source.as_ref());
        let destination_at = own.destination.as_ref().or(slice.destination.as_ref());
        let source = source_at.map_or(DEFAULT_SOURCE.into(), |at| at.value);
        let destination = destination_at.map_or(DEFAULT_DESTINATION.into(), |at| at.value);
        if source.is_ipv4() != destination.is_ipv4()
            && let Some(at) = destination_at.or(source_at)
        {
            problem!(self.problems, at.span => "source {source} and destination {destination} are of different IP \
                versions");
        }
        let protocol = own.protocol.as_ref().or(slice.protocol.as_ref());
        let source_port = own.source_port.or(slice.source_port);
        let destination_port = own.destination_port.or(slice.destination_port);
        let headers = SourceHeaders {
            vlan: vlan.map(|id| id.value.0),
            inner_vlan: inner_vlan.map(|id| id.value.0),
            source,
            destination,
            protocol: protocol.map_or(defaults.protocol, |protocol| protocol.value.0),
            source_port: source_port.unwrap_or(defaults.source_port),
            destination_port: destination_port.unwrap_or(defaults.destination_port),
            dscp: own.dscp.or(slice.dscp).map_or(0, |dscp| dscp.0),
            ecn: own.ecn.or(slice.ecn).unwrap_or(Ecn::NotEct),
            tunnel: self.tunnel(own, slice),
        };
        if headers.has_ports() {
            return headers;
        }
        SourceHeaders {
            source_port: 0,
            destination_port: 0,
            ..headers
        }
    }

    /// The tunnel around the packets, if they are in one.
    fn tunnel(&mut self, own: &HeadersSpec, slice: &HeadersSpec) -> Option<TunnelParams> {
        let teid = own.teid.as_ref().or(slice.teid.as_ref());
        let mut end = |own: &Option<At<IpAddr>>, slice: &Option<At<IpAddr>>, default| {
            let Some(written) = own.as_ref().or(slice.as_ref()) else {
                return default;
            };
            if teid.is_none() {
                problem!(self.problems, written.span => "`tunnel` needs a `teid`, by which its packets are told";
                    "set `teid` too, in these `headers`, or leave `tunnel` out");
            }
            let IpAddr::V4(address) = written.value else {
                problem!(self.problems, written.span => "tunnels go over IPv4, and {} is an address of IPv6",
                    written.value; "write an address such as 192.0.2.1; the packets inside may be of IPv6");
                return default;
            };
            address
        };
        let source = end(&own.tunnel.source, &slice.tunnel.source, DEFAULT_SOURCE);
        let destination = end(
            &own.tunnel.destination,
            &slice.tunnel.destination,
            DEFAULT_DESTINATION,
        );
        Some(TunnelParams {
            teid: NonZeroU32::new(teid?.value.0)?,
            source,
            destination,
        })
    }
}
