//! Assigns flows to slices: by class maps, as in a study; without class maps by VLAN, otherwise by flow.

use slicewise_model::ClassMap;
use slicewise_wire::{Headers, IpVersion};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Most slices found without class maps; further traffic goes into one more, `other`.
pub const AUTOMATIC_SLICES_MAX: usize = 32;
/// Name of the slice of everything else.
const OTHER: &str = "other";

/// The slices of a run.
#[derive(Debug, Clone)]
pub enum Slices {
    /// Slices of a study: a flow belongs to the first that matches, or to none.
    Matched(Vec<ClassMap>),
    /// Found during the analysis.
    Automatic(AutomaticSlices),
}

/// Slices by VLAN, or by flow where a frame has no tag.
#[derive(Debug, Clone, Default)]
pub struct AutomaticSlices {
    known: BTreeMap<String, usize>,
}

/// Slice of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SliceOfFlow {
    /// To this slice.
    Known(usize),
    /// A new slice with this name and the next number.
    New(String),
    /// To none.
    None,
}

impl Slices {
    /// The slices of a study, in its order.
    #[must_use]
    pub fn matched<'a>(maps: impl IntoIterator<Item = &'a ClassMap>) -> Self {
        Self::Matched(maps.into_iter().cloned().collect())
    }

    /// Slice of a flow with these headers.
    pub fn slice_of(&mut self, headers: &Headers) -> SliceOfFlow {
        match self {
            Self::Matched(maps) => maps
                .iter()
                .position(|map| map.matches(headers))
                .map_or(SliceOfFlow::None, SliceOfFlow::Known),
            Self::Automatic(slices) => slices.slice_of(headers),
        }
    }
}

impl AutomaticSlices {
    fn slice_of(&mut self, headers: &Headers) -> SliceOfFlow {
        let mut name = automatic_name(headers);
        if let Some(&index) = self.known.get(&name) {
            return SliceOfFlow::Known(index);
        }
        if self.known.len() >= AUTOMATIC_SLICES_MAX {
            OTHER.clone_into(&mut name);
            if let Some(&index) = self.known.get(&name) {
                return SliceOfFlow::Known(index);
            }
        }
        let index = self.known.len();
        self.known.insert(name.clone(), index);
        SliceOfFlow::New(name)
    }
}

fn automatic_name(headers: &Headers) -> String {
    match headers.vlan_tags {
        0 => FlowName(headers).to_string(),
        1 => format!("VLAN {}", headers.outer_vlan),
        _ => format!("VLAN {}.{}", headers.outer_vlan, headers.inner_vlan),
    }
}

/// A flow in one line: `UDP 10.0.0.1:49152 > 10.0.0.2:5201`.
#[derive(Debug, Clone, Copy)]
pub struct FlowName<'a>(pub &'a Headers);

impl fmt::Display for FlowName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = self.0;
        match h.protocol {
            6 => f.write_str("TCP")?,
            17 => f.write_str("UDP")?,
            1 => f.write_str("ICMP")?,
            58 => f.write_str("ICMPv6")?,
            132 => f.write_str("SCTP")?,
            other => write!(f, "protocol {other}")?,
        }
        let source = address(h.ip_version, h.source);
        let destination = address(h.ip_version, h.destination);
        if !h.has_ports {
            return write!(f, " {source} > {destination}");
        }
        // An IPv6 address has colons of its own (RFC 5952, section 6).
        let (open, close) = match h.ip_version {
            IpVersion::V6 => ("[", "]"),
            _ => ("", ""),
        };
        write!(
            f,
            " {open}{source}{close}:{} > {open}{destination}{close}:{}",
            h.source_port, h.destination_port
        )
    }
}

/// An address as text.
#[must_use]
pub fn address(version: IpVersion, address: u128) -> String {
    match version {
        // In the low 32 bits.
        IpVersion::V4 => Ipv4Addr::from(u32::try_from(address).unwrap_or(u32::MAX)).to_string(),
        IpVersion::V6 => Ipv6Addr::from(address).to_string(),
        IpVersion::None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_model::{Condition, MatchMode};

    fn flow(vlan: Option<u16>, source_port: u16) -> Headers {
        Headers {
            source: u32::from(Ipv4Addr::new(10, 0, 0, 1)).into(),
            destination: u32::from(Ipv4Addr::new(10, 0, 0, 2)).into(),
            ip_version: IpVersion::V4,
            protocol: 17,
            has_ports: true,
            source_port,
            destination_port: 5201,
            vlan_tags: u8::from(vlan.is_some()),
            outer_vlan: vlan.unwrap_or(0),
            ..Headers::default()
        }
    }

    #[test]
    fn a_flow_belongs_to_the_first_slice_that_matches_or_to_none() {
        let map = |name: &str, vlan| ClassMap {
            name: name.to_owned(),
            mode: MatchMode::All,
            conditions: vec![Condition::OuterVlan(vlan..=vlan)],
        };
        let mut slices = Slices::matched(&[map("a", 10), map("b", 20), map("c", 20)]);
        assert_eq!(slices.slice_of(&flow(Some(20), 1)), SliceOfFlow::Known(1));
        assert_eq!(slices.slice_of(&flow(Some(10), 1)), SliceOfFlow::Known(0));
        assert_eq!(slices.slice_of(&flow(None, 1)), SliceOfFlow::None);
    }

    #[test]
    fn without_class_maps_slices_follow_vlans_or_else_flows() {
        let mut slices = Slices::Automatic(AutomaticSlices::default());
        let new = |name: &str| SliceOfFlow::New(name.to_owned());
        assert_eq!(slices.slice_of(&flow(Some(10), 1)), new("VLAN 10"));
        assert_eq!(slices.slice_of(&flow(Some(10), 2)), SliceOfFlow::Known(0));
        let by_flow = new("UDP 10.0.0.1:7 > 10.0.0.2:5201");
        assert_eq!(slices.slice_of(&flow(None, 7)), by_flow);
        assert_eq!(slices.slice_of(&flow(None, 7)), SliceOfFlow::Known(1));
    }

    #[test]
    fn more_flows_than_slices_share_one() {
        let mut slices = Slices::Automatic(AutomaticSlices::default());
        for port in 0..32 {
            assert!(matches!(
                slices.slice_of(&flow(None, port)),
                SliceOfFlow::New(_)
            ));
        }
        let other = SliceOfFlow::New(OTHER.to_owned());
        assert_eq!(slices.slice_of(&flow(None, 100)), other);
        assert_eq!(slices.slice_of(&flow(None, 101)), SliceOfFlow::Known(32));
        assert_eq!(slices.slice_of(&flow(None, 3)), SliceOfFlow::Known(3));
    }

    #[test]
    fn an_ipv6_flow_is_written_with_brackets() {
        let headers = Headers {
            ip_version: IpVersion::V6,
            source: 1,
            destination: 2,
            protocol: 6,
            has_ports: true,
            source_port: 80,
            destination_port: 443,
            ..Headers::default()
        };
        assert_eq!(FlowName(&headers).to_string(), "TCP [::1]:80 > [::2]:443");
    }
}
