//! The flows of a slice: header fields as a switch's table takes them.

use super::fields::{Fields, whole, wrong};
use crate::error::{Report, TextError, quoted};
use crate::flow::Flow;
use crate::json::{Node, Value};
use slicewise_model::IpPrefix;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

const KNOWN: [&str; 6] = [
    "ipv4Source",
    "ipv4Destination",
    "protocol",
    "sourcePort",
    "destinationPort",
    "teid",
];
const PROTOCOLS: [(&str, u8); 4] = [("icmp", 1), ("tcp", 6), ("udp", 17), ("sctp", 132)];
/// TCP, UDP and SCTP.
const WITH_PORTS: [u8; 3] = [6, 17, 132];

/// UDP (RFC 768): yellow packets of it have a queue of their own.
pub(super) const UDP: u8 = 17;

/// One flow of a request.
pub(super) fn read(node: &Node, report: &mut Report) -> Option<Flow> {
    let fields = Fields::of(node, "a flow", &KNOWN, report)?;
    let mut take = |name: &str, set: &mut dyn FnMut(&Node) -> Result<(), TextError>| {
        if let Some(node) = fields.get(name) {
            report.add_failure(set(node));
        }
    };
    let mut flow = Flow::default();
    take("ipv4Source", &mut |node| {
        prefix(node, "ipv4Source").map(|prefix| flow.source = Some(prefix))
    });
    take("ipv4Destination", &mut |node| {
        prefix(node, "ipv4Destination").map(|prefix| flow.destination = Some(prefix))
    });
    take("protocol", &mut |node| {
        protocol(node).map(|number| flow.protocol = Some(number))
    });
    take("sourcePort", &mut |node| {
        ports(node, "sourcePort").map(|ports| flow.source_ports = Some(ports))
    });
    take("destinationPort", &mut |node| {
        ports(node, "destinationPort").map(|ports| flow.destination_ports = Some(ports))
    });
    take("teid", &mut |node| {
        teid(node).map(|teid| flow.teid = Some(teid))
    });
    let port = fields.get("sourcePort").or(fields.get("destinationPort"));
    let has_ports = |protocol| WITH_PORTS.contains(&protocol);
    if let Some(port) = port
        && !flow.protocol.is_some_and(has_ports)
        && (flow.protocol.is_some() || fields.get("protocol").is_none())
    {
        report.add(|| {
            TextError::at(port.span, "a flow with ports needs its protocol")
                .expected("`protocol` with \"tcp\", \"udp\" or \"sctp\"")
        });
    }
    if KNOWN.iter().all(|name| fields.get(name).is_none()) {
        report.add(|| {
            TextError::at(node.span, "the flow states no header field")
                .expected("at least one, because it would be all traffic")
        });
    }
    Some(flow)
}

fn prefix(node: &Node, name: &str) -> Result<IpPrefix, TextError> {
    const EXPECTED: &str = "an IPv4 address or prefix such as \"10.0.1.0/24\"";
    let Value::Text(text) = &node.value else {
        return Err(wrong(node, &format!("`{name}`"), EXPECTED));
    };
    let prefix = text.parse::<IpPrefix>().ok();
    let Some(prefix) = prefix.filter(|prefix| prefix.address().is_ipv4()) else {
        let message = format!("{} is not an IPv4 prefix", quoted(text));
        return Err(TextError::at(node.span, message).expected(EXPECTED));
    };
    let written = text.split('/').next().unwrap_or_default();
    if written.parse() != Ok(prefix.address()) {
        let message = format!("{} has bits beyond its prefix length", quoted(text));
        return Err(TextError::at(node.span, message).expected(format!("\"{prefix}\"")));
    }
    Ok(prefix)
}

fn protocol(node: &Node) -> Result<u8, TextError> {
    const EXPECTED: &str = "\"tcp\", \"udp\", \"sctp\", \"icmp\" or a number, 0 to 255";
    match &node.value {
        Value::Number(text) => {
            let number = whole(node, text, 255, EXPECTED)?;
            Ok(u8::try_from(number).unwrap_or(u8::MAX))
        }
        Value::Text(text) => {
            let known = PROTOCOLS.iter();
            let found = known.clone().find(|(name, _)| name == text);
            found.map(|&(_, number)| number).ok_or_else(|| {
                let message = format!("protocol {} is not known", quoted(text));
                TextError::at(node.span, message).expected(EXPECTED)
            })
        }
        _ => Err(wrong(node, "`protocol`", EXPECTED)),
    }
}

fn ports(node: &Node, name: &str) -> Result<RangeInclusive<u16>, TextError> {
    const EXPECTED: &str = "a port, 0 to 65535, or a range such as \"5000-5009\"";
    let (first, last) = match &node.value {
        Value::Number(text) => {
            let port = whole(node, text, u16::MAX.into(), EXPECTED)?;
            let port = u16::try_from(port).unwrap_or(u16::MAX);
            return Ok(port..=port);
        }
        Value::Text(text) => text.split_once('-').unwrap_or((text, text)),
        _ => return Err(wrong(node, &format!("`{name}`"), EXPECTED)),
    };
    let port = |text: &str| {
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| is_number)
    };
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => {
            let message = format!("`{name}` is no port and no range of ports");
            Err(TextError::at(node.span, message).expected(EXPECTED))
        }
    }
}

/// A TEID of user packets; 0 is for other messages (3GPP TS 29.281, section 5.1).
fn teid(node: &Node) -> Result<u32, TextError> {
    const EXPECTED: &str = "a TEID, 1 to 4294967295";
    let Value::Number(text) = &node.value else {
        return Err(wrong(node, "`teid`", EXPECTED));
    };
    let number = whole(node, text, u32::MAX.into(), EXPECTED)?;
    match u32::try_from(number) {
        Ok(teid) if teid > 0 => Ok(teid),
        _ => Err(TextError::at(node.span, "user packets do not carry TEID 0").expected(EXPECTED)),
    }
}

/// A flow as JSON.
///
/// # Errors
/// A part that a request cannot express, as the end of a sentence.
pub(super) fn write(flow: &Flow) -> Result<String, String> {
    let mut members: Vec<String> = Vec::new();
    if flow.vlan.is_some() {
        return Err("matches a VLAN id, which a request does not have".to_owned());
    }
    if flow.dscp.is_some() {
        return Err("matches the DSCP, which a request does not have".to_owned());
    }
    if flow.is_ipv4() == Some(false) {
        return Err("matches IPv6 addresses: a request has those of IPv4".to_owned());
    }
    for (name, prefix) in [
        ("ipv4Source", flow.source),
        ("ipv4Destination", flow.destination),
    ] {
        members.extend(prefix.map(|prefix| format!("\"{name}\": \"{prefix}\"")));
    }
    members.extend(flow.protocol.map(|number| {
        let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
        match named {
            Some((name, _)) => format!("\"protocol\": \"{name}\""),
            None => format!("\"protocol\": {number}"),
        }
    }));
    let has_ports = flow.source_ports.is_some() || flow.destination_ports.is_some();
    if has_ports && !flow.protocol.is_some_and(|it| WITH_PORTS.contains(&it)) {
        return Err("matches ports without the protocol: a flow with ports needs it".to_owned());
    }
    for (name, ports) in [
        ("sourcePort", &flow.source_ports),
        ("destinationPort", &flow.destination_ports),
    ] {
        let Some(ports) = ports else { continue };
        let mut member = format!("\"{name}\": ");
        let (first, last) = (ports.start(), ports.end());
        // Writing into a string cannot fail.
        let _ = match first == last {
            true => write!(member, "{first}"),
            false => write!(member, "\"{first}-{last}\""),
        };
        members.push(member);
    }
    members.extend(flow.teid.map(|teid| format!("\"teid\": {teid}")));
    match members.is_empty() {
        true => Err("matches every frame: a flow states at least one header field".to_owned()),
        false => Ok(format!("{{{}}}", members.join(", "))),
    }
}
