//! Names that IOS gives to IP protocols and to ports, in access lists.

use super::words::Words;
use crate::error::{TextError, one_of, quoted, suggestion};

/// Protocols by name, as IOS lists them for extended access lists (IANA protocol numbers).
const PROTOCOLS: [(&str, u8); 14] = [
    ("ahp", 51),
    ("eigrp", 88),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("igmp", 2),
    ("ipinip", 4),
    ("nos", 94),
    ("ospf", 89),
    ("pcp", 108),
    ("pim", 103),
    ("sctp", 132),
    ("tcp", TCP),
    ("udp", UDP),
];
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;

const TCP_PORTS: [(&str, u16); 36] = [
    ("bgp", 179),
    ("chargen", 19),
    ("cmd", 514),
    ("daytime", 13),
    ("discard", 9),
    ("domain", 53),
    ("drip", 3949),
    ("echo", 7),
    ("exec", 512),
    ("finger", 79),
    ("ftp", 21),
    ("ftp-data", 20),
    ("gopher", 70),
    ("hostname", 101),
    ("ident", 113),
    ("irc", 194),
    ("klogin", 543),
    ("kshell", 544),
    ("login", 513),
    ("lpd", 515),
    ("msrpc", 135),
    ("nntp", 119),
    ("pim-auto-rp", 496),
    ("pop2", 109),
    ("pop3", 110),
    ("smtp", 25),
    ("sunrpc", 111),
    ("syslog", 514),
    ("tacacs", 49),
    ("talk", 517),
    ("telnet", 23),
    ("time", 37),
    ("uucp", 540),
    ("whois", 43),
    ("www", 80),
    ("onep-plain", 15001),
];

const UDP_PORTS: [(&str, u16); 28] = [
    ("biff", 512),
    ("bootpc", 68),
    ("bootps", 67),
    ("discard", 9),
    ("dnsix", 195),
    ("domain", 53),
    ("echo", 7),
    ("isakmp", 500),
    ("mobile-ip", 434),
    ("nameserver", 42),
    ("netbios-dgm", 138),
    ("netbios-ns", 137),
    ("netbios-ss", 139),
    ("non500-isakmp", 4500),
    ("ntp", 123),
    ("pim-auto-rp", 496),
    ("rip", 520),
    ("ripv6", 521),
    ("snmp", 161),
    ("snmptrap", 162),
    ("sunrpc", 111),
    ("syslog", 514),
    ("tacacs", 49),
    ("talk", 517),
    ("tftp", 69),
    ("time", 37),
    ("who", 513),
    ("xdmcp", 177),
];

/// The protocol of an extended entry; `None` for `ip`, which means every one.
pub(super) fn protocol(words: &mut Words<'_, '_>) -> Result<Option<u8>, TextError> {
    const EXPECTED: &str =
        "`ip`, `tcp`, `udp`, `icmp` or another protocol by name or number, 1 to 255";
    let word = words.require(EXPECTED)?;
    if word.is("ip") {
        return Ok(None);
    }
    if let Some(&(_, number)) = PROTOCOLS.iter().find(|(name, _)| word.is(name)) {
        return Ok(Some(number));
    }
    if let Some(number) = decimal(word.text)
        && number > 0
        && let Ok(number) = u8::try_from(number)
    {
        return Ok(Some(number));
    }
    let names = PROTOCOLS.iter().map(|&(name, _)| name).chain(["ip"]);
    Err(TextError::at(
        word.span,
        format!("{} is not an IP protocol", quoted(word.text)),
    )
    .expected(EXPECTED)
    .maybe_help(suggestion(word.text, names)))
}

/// The name of a protocol, or its number where IOS has none.
pub(super) fn protocol_name(protocol: u8) -> String {
    PROTOCOLS
        .iter()
        .find(|&&(_, number)| number == protocol)
        .map_or_else(|| protocol.to_string(), |&(name, _)| name.to_owned())
}

/// True where IOS allows ports.
pub(super) const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | SCTP)
}

/// A port of `protocol`, by name or number.
pub(super) fn port(words: &mut Words<'_, '_>, protocol: u8) -> Result<u16, TextError> {
    const EXPECTED: &str = "a port, 0 to 65535";
    let names: &[(&str, u16)] = match protocol {
        TCP => &TCP_PORTS,
        UDP => &UDP_PORTS,
        _ => &[],
    };
    let word = words.require(EXPECTED)?;
    if let Some(&(_, port)) = names.iter().find(|(name, _)| word.is(name)) {
        return Ok(port);
    }
    if let Some(port) = decimal(word.text).and_then(|port| u16::try_from(port).ok()) {
        return Ok(port);
    }
    let error = TextError::at(word.span, format!("{} is not a port", quoted(word.text)));
    let help = suggestion(word.text, names.iter().map(|&(name, _)| name));
    Err(error.expected(EXPECTED).maybe_help(help))
}

/// The words that begin a condition on a port.
pub(super) const PORT_OPERATORS: [&str; 4] = ["eq", "range", "lt", "gt"];

/// "expected `eq` …", for the one operator left out.
pub(super) fn operators() -> String {
    one_of(&PORT_OPERATORS)
}

fn decimal(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}
