//! Which packets belong to a slice.

use crate::Invalid;
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use slicewise_model::{AccessEntry, AccessList, ClassMap, Condition, IpPrefix, MatchMode};
use slicewise_wire::{PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP};
use std::fmt;
use std::ops::RangeInclusive;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// ICMP (RFC 792).
const PROTOCOL_ICMP: u8 = 1;
/// The largest VLAN id (IEEE 802.1Q; 4095 is reserved).
const VLAN_MAX: u16 = 4094;
/// The largest code point (RFC 2474).
const DSCP_MAX: u8 = 63;

/// Header fields of a packet in the forward direction, which must all hold; at least one. A field that is not given may have any
/// value. In the backward direction source and destination are exchanged. Inside a GTP-U tunnel, addresses, protocol, ports
/// and DSCP are those of the inner packet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1)]
pub struct Match {
    /// Source address or prefix, of IPv4 or IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "192.0.2.0/24", min_length = 1, max_length = 64)]
    pub source: Option<String>,
    /// Destination address or prefix, of IPv4 or IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "198.51.100.7", min_length = 1, max_length = 64)]
    pub destination: Option<String>,
    /// IP protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Source port of UDP, TCP or SCTP, or a range of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "80", pattern = "^[0-9]{1,5}(-[0-9]{1,5})?$")]
    pub source_port: Option<String>,
    /// Destination port of UDP, TCP or SCTP, or a range of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "5000-5009", pattern = "^[0-9]{1,5}(-[0-9]{1,5})?$")]
    pub destination_port: Option<String>,
    /// Differentiated services code point (RFC 2474).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 63)]
    pub dscp: Option<u8>,
    /// Id of the outermost VLAN tag (IEEE 802.1Q).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 4094)]
    pub vlan: Option<u16>,
    /// Id of the second VLAN tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 4094)]
    pub inner_vlan: Option<u16>,
    /// Tunnel endpoint identifier of the GTP-U tunnel around the packet (3GPP TS 29.281). Each direction of a tunnel has its own, so a slice with it has
    /// one direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub teid: Option<u32>,
}

/// An IP protocol: `"udp"`, `"tcp"`, `"sctp"`, `"icmp"` or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Protocol {
    /// By name.
    Name(ProtocolName),
    /// By number, 0 to 255.
    #[schema(value_type = ProtocolNumber)]
    Number(u8),
}

/// A protocol number in the description of the API.
struct ProtocolNumber;

impl PartialSchema for ProtocolNumber {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new().schema_type(Type::Integer);
        number.minimum(Some(0)).maximum(Some(255)).into()
    }
}

impl ToSchema for ProtocolNumber {}

/// Protocols that have a name here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolName {
    /// ICMP (RFC 792).
    Icmp,
    /// TCP (RFC 9293).
    Tcp,
    /// UDP (RFC 768).
    Udp,
    /// SCTP (RFC 9260).
    Sctp,
}

impl Protocol {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Number(number) => number,
            Self::Name(ProtocolName::Icmp) => PROTOCOL_ICMP,
            Self::Name(ProtocolName::Tcp) => PROTOCOL_TCP,
            Self::Name(ProtocolName::Udp) => PROTOCOL_UDP,
            Self::Name(ProtocolName::Sctp) => PROTOCOL_SCTP,
        }
    }
}

impl From<u8> for Protocol {
    fn from(number: u8) -> Self {
        match number {
            PROTOCOL_ICMP => Self::Name(ProtocolName::Icmp),
            PROTOCOL_TCP => Self::Name(ProtocolName::Tcp),
            PROTOCOL_UDP => Self::Name(ProtocolName::Udp),
            PROTOCOL_SCTP => Self::Name(ProtocolName::Sctp),
            other => Self::Number(other),
        }
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Protocol;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"udp\", \"tcp\", \"sctp\", \"icmp\" or a number from 0 to 255")
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Protocol, E> {
                let number = u8::try_from(number)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))?;
                Ok(Protocol::Number(number))
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Protocol, E> {
                let number = u8::try_from(number)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
                Ok(Protocol::Number(number))
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Protocol, E> {
                Ok(Protocol::Name(match name {
                    "icmp" => ProtocolName::Icmp,
                    "tcp" => ProtocolName::Tcp,
                    "udp" => ProtocolName::Udp,
                    "sctp" => ProtocolName::Sctp,
                    other => return Err(E::invalid_value(Unexpected::Str(other), &self)),
                }))
            }
        }
        deserializer
            .deserialize_any(Reader)
            .map_err(D::Error::custom)
    }
}

impl Match {
    /// The match of the opposite direction: source and destination exchanged.
    #[must_use]
    pub fn mirrored(&self) -> Self {
        Self {
            source: self.destination.clone(),
            destination: self.source.clone(),
            source_port: self.destination_port.clone(),
            destination_port: self.source_port.clone(),
            ..self.clone()
        }
    }

    /// Source prefix.
    ///
    /// # Errors
    /// If the text is not a prefix.
    pub fn source_prefix(&self) -> Result<Option<IpPrefix>, Invalid> {
        prefix(self.source.as_deref(), "/source")
    }

    /// Destination prefix.
    ///
    /// # Errors
    /// If the text is not a prefix.
    pub fn destination_prefix(&self) -> Result<Option<IpPrefix>, Invalid> {
        prefix(self.destination.as_deref(), "/destination")
    }

    /// Source ports.
    ///
    /// # Errors
    /// If the text is neither a port nor a range.
    pub fn source_ports(&self) -> Result<Option<RangeInclusive<u16>>, Invalid> {
        ports(self.source_port.as_deref(), "/source_port")
    }

    /// Destination ports.
    ///
    /// # Errors
    /// If the text is neither a port nor a range.
    pub fn destination_ports(&self) -> Result<Option<RangeInclusive<u16>>, Invalid> {
        ports(self.destination_port.as_deref(), "/destination_port")
    }

    /// The conditions that must all hold.
    ///
    /// # Errors
    /// The first field that is not valid, or that there is none.
    pub fn conditions(&self) -> Result<Vec<Condition>, Invalid> {
        let mut conditions = Vec::new();
        let vlan = |id: Option<u16>, at: &str| match id {
            Some(id) if id > VLAN_MAX => Err(Invalid::new(
                at,
                format!("VLAN {id} is above {VLAN_MAX}, the largest id"),
            )),
            id => Ok(id.map(|id| id..=id)),
        };
        conditions.extend(vlan(self.vlan, "/vlan")?.map(Condition::OuterVlan));
        conditions.extend(vlan(self.inner_vlan, "/inner_vlan")?.map(Condition::InnerVlan));
        let (source, destination) = (self.source_prefix()?, self.destination_prefix()?);
        if let (Some(source), Some(destination)) = (source, destination)
            && source.address().is_ipv4() != destination.address().is_ipv4()
        {
            return Err(Invalid::new(
                "",
                format!(
                    "{source} and {destination} are of different IP versions: no packet has both"
                ),
            ));
        }
        conditions.extend(source.map(Condition::Source));
        conditions.extend(destination.map(Condition::Destination));
        conditions.extend(
            self.protocol
                .map(|protocol| Condition::Protocol(protocol.number())),
        );
        conditions.extend(self.source_ports()?.map(Condition::SourcePort));
        conditions.extend(self.destination_ports()?.map(Condition::DestinationPort));
        if let Some(dscp) = self.dscp {
            if dscp > DSCP_MAX {
                let problem = format!("DSCP {dscp} is above {DSCP_MAX}, the largest code point");
                return Err(Invalid::new("/dscp", problem));
            }
            conditions.push(Condition::Dscp(1 << dscp));
        }
        if let Some(teid) = self.teid {
            if teid == 0 {
                let problem = "TEID 0 is not used by user packets: the smallest is 1";
                return Err(Invalid::new("/teid", problem));
            }
            conditions.push(Condition::GtpTeid(teid..=teid));
        }
        if conditions.is_empty() {
            let problem = "states no header field, so it would be all traffic: state at least one";
            return Err(Invalid::new("", problem));
        }
        Ok(conditions)
    }
}

/// The class map `name` of packets that one of `matches` describes.
///
/// # Errors
/// The first field that is not valid; its place begins with the position in the list.
pub fn class_map(name: &str, matches: &[Match]) -> Result<ClassMap, Invalid> {
    let each = |(index, one): (usize, &Match)| {
        let conditions = one.conditions();
        conditions.map_err(|invalid| invalid.within(&format!("/{index}")))
    };
    let mut all: Vec<Vec<Condition>> = matches
        .iter()
        .enumerate()
        .map(each)
        .collect::<Result<_, _>>()?;
    let (mode, conditions) = match all.as_mut_slice() {
        [one] => (MatchMode::All, std::mem::take(one)),
        _ => (
            MatchMode::Any,
            all.into_iter().filter_map(together).collect(),
        ),
    };
    Ok(ClassMap {
        name: name.to_owned(),
        mode,
        conditions,
    })
}

/// One condition that holds if all of `conditions` do.
fn together(mut conditions: Vec<Condition>) -> Option<Condition> {
    match conditions.pop() {
        Some(only) if conditions.is_empty() => Some(only),
        None => None,
        last => {
            conditions.extend(last);
            let permit = true;
            let entries = vec![AccessEntry { permit, conditions }];
            let name = "all-of".to_owned();
            Some(Condition::AccessList(AccessList { name, entries }))
        }
    }
}

fn prefix(text: Option<&str>, at: &str) -> Result<Option<IpPrefix>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let prefix: IpPrefix = text
        .parse()
        .map_err(|problem: String| Invalid::new(at, problem))?;
    let written = text.split('/').next().unwrap_or_default();
    if written.parse() != Ok(prefix.address()) {
        let problem = format!("{text:?} has bits beyond its prefix length: expected \"{prefix}\"");
        return Err(Invalid::new(at, problem));
    }
    Ok(Some(prefix))
}

fn ports(text: Option<&str>, at: &str) -> Result<Option<RangeInclusive<u16>>, Invalid> {
    let Some(text) = text else { return Ok(None) };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| is_number)
    };
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(Some(first..=last)),
        _ => Err(Invalid::new(
            at,
            format!(
                "{text:?} is neither a port nor a range of ports: expected for example \"80\" or \"5000-5009\""
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Match {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_field_becomes_a_condition_and_the_mirror_image_exchanges_the_ends() {
        let one = read(
            r#"{"source": "192.0.2.0/24", "destination": "198.51.100.7", "protocol": "udp", "source_port": "1-9",
                "destination_port": "80", "dscp": 46, "vlan": 5, "inner_vlan": 6, "teid": 7}"#,
        );
        assert_eq!(one.conditions().unwrap().len(), 9);
        assert_eq!(one.mirrored().source.as_deref(), Some("198.51.100.7"));
        assert_eq!(one.mirrored().destination_port.as_deref(), Some("1-9"));
        assert_eq!(one.mirrored().mirrored(), one);
        let map = class_map("a", &[one, read(r#"{"vlan": 9}"#)]).unwrap();
        assert_eq!((map.mode, map.conditions.len()), (MatchMode::Any, 2));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let wrong = [
            "{}",
            r#"{"source": "192.0.2.1/24"}"#,
            r#"{"source": "192.0.2.0/33"}"#,
            r#"{"source": "192.0.2.0/24", "destination": "2001:db8::1"}"#,
            r#"{"destination_port": "90-80"}"#,
            r#"{"source_port": "+80"}"#,
            r#"{"dscp": 64}"#,
            r#"{"vlan": 4095}"#,
            r#"{"teid": 0}"#,
        ];
        let problems = wrong.map(|text| class_map("a", &[read(text)]).unwrap_err().to_string());
        insta::assert_snapshot!(problems.join("\n"));
        let unreadable = [
            r#"{"protocol": "ospf"}"#,
            r#"{"protocol": 256}"#,
            r#"{"protocol": -1}"#,
            r#"{"port": "80"}"#,
        ];
        let problems =
            unreadable.map(|text| serde_json::from_str::<Match>(text).unwrap_err().to_string());
        insta::assert_snapshot!(problems.join("\n"));
    }
}
