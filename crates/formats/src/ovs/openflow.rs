//! OpenFlow rules that choose queues, as ovs-ofctl(8) takes them: fields of ovs-fields(7), actions of ovs-actions(7).

use super::lexer::Word;
use super::values::{number, ports, prefix, small};
use crate::error::{Span, TextError, closest, one_of};
use crate::flow::Flow;
use slicewise_model::IpPrefix;

/// "If the field is not specified, the flow's priority will default to 32768" (ovs-ofctl(8)).
const PRIORITY: u16 = 32_768;
/// The largest VLAN id (IEEE 802.1Q).
const VLAN_MAX: u16 = 4094;
/// Protocols with ports.
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;

/// Words that stand for an EtherType and a protocol: whether IPv4, and which protocol.
pub(super) const SHORTHANDS: [(&str, bool, Option<u8>); 10] = [
    ("ip", true, None),
    ("icmp", true, Some(1)),
    ("tcp", true, Some(TCP)),
    ("udp", true, Some(UDP)),
    ("sctp", true, Some(SCTP)),
    ("ipv6", false, None),
    ("icmp6", false, Some(58)),
    ("tcp6", false, Some(TCP)),
    ("udp6", false, Some(UDP)),
    ("sctp6", false, Some(SCTP)),
];
/// Every spelling that [`Reader::field`] takes.
const FIELDS: [&str; 24] = [
    "priority", "table", "cookie", "in_port", "dl_vlan", "dl_type", "nw_src", "ip_src", "nw_dst",
    "ip_dst", "ipv6_src", "ipv6_dst", "nw_proto", "ip_proto", "nw_tos", "ip_dscp", "tp_src",
    "tcp_src", "udp_src", "sctp_src", "tp_dst", "tcp_dst", "udp_dst", "sctp_dst",
];

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) priority: u16,
    pub(super) flow: Flow,
    pub(super) queue: u32,
    /// Where its queue is named, else the action that sends it to the default queue.
    pub(super) at: Span,
    /// The port that its frames come in by, as it is written.
    pub(super) in_port: Option<(String, Span)>,
    /// Which slice's frames they are, where a port stands for one: its place in the order of slices.
    pub(super) slice: Option<usize>,
    /// It is a rule for all of them.
    pub(super) is_all_of_port: bool,
}

/// Read a rule.
pub(super) fn read(text: &Word<'_>) -> Result<Rule, TextError> {
    let Some((fields, actions)) = parts(text) else {
        return Err(text
            .error("has no actions")
            .expected("`FIELDS actions=set_queue:N,normal`"));
    };
    let mut reader = Reader::default();
    for field in fields.split(|c| c == ',' || c.is_whitespace()) {
        reader.field(&field)?;
    }
    let (queue, at) = queue(&actions)?;
    Ok(Rule {
        priority: reader.priority.unwrap_or(PRIORITY),
        flow: reader.flow(),
        queue,
        at,
        in_port: reader.in_port,
        slice: None,
        is_all_of_port: false,
    })
}

/// Returns true if a text is meant as a rule.
pub(super) fn is_rule(text: &Word<'_>) -> bool {
    parts(text).is_some()
}

/// The fields of a rule, and its actions, which come last.
fn parts<'a>(text: &Word<'a>) -> Option<(Word<'a>, Word<'a>)> {
    let mut is_start = true;
    for at in 0.. {
        let rest = text.from(at);
        if rest.is_empty() {
            return None;
        }
        let actions = rest
            .strip_prefix("actions=")
            .or(rest.strip_prefix("action="));
        if let (true, Some(actions)) = (is_start, actions) {
            return Some((text.to(at), actions));
        }
        let first = rest.to(1);
        is_start = [",", " ", "\t"].iter().any(|separator| first.is(separator));
    }
    None
}

/// The queue of the frames of a rule: the default queue where none is set.
fn queue(actions: &Word<'_>) -> Result<(u32, Span), TextError> {
    const EXPECTED: &str = "`set_queue:N`, `enqueue:PORT:N`, `normal` or `output:PORT`";
    let items = items(actions);
    let number_of = |word: &Word<'_>| small(word, "the number of a queue", 0..=u32::MAX - 1);
    let (mut queue, mut is_sent) = (None, None);
    for item in &items {
        let set = item.strip_prefix("set_queue:");
        let enqueue = enqueued(item);
        if is_sent.is_some() && !item.is("pop_queue") {
            return Err(item
                .error("comes after the frame was sent")
                .expected("one output"));
        }
        if let Some(number) = set.or(enqueue) {
            if queue.is_some() {
                return Err(item.error("chooses a second queue").expected("one queue"));
            }
            queue = Some((number_of(&number)?, number.span()));
            is_sent = enqueue.map(|_| item.span());
        } else if is_output(item) {
            is_sent = Some(item.span());
        } else if !item.is("pop_queue") {
            return Err(item
                .error("is not an action that is read")
                .expected(EXPECTED));
        }
    }
    match is_sent {
        Some(sent) => Ok(queue.unwrap_or((0, sent))),
        None => Err(
            TextError::at(actions.span(), "the rule sends its frames nowhere")
                .expected("`normal` or `output:PORT` at the end"),
        ),
    }
}

/// The actions of a list; a comma within parentheses separates none.
fn items<'a>(actions: &Word<'a>) -> Vec<Word<'a>> {
    let (mut items, mut start, mut depth) = (Vec::new(), 0, 0usize);
    let text = actions.text();
    let length = text.chars().count();
    for (at, c) in text.chars().chain([',']).enumerate() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' if depth == 0 || at == length => {
                items.push(actions.to(at).from(start));
                start = at + 1;
            }
            _ => {}
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

/// The queue of `enqueue:PORT:QUEUE` or `enqueue(PORT,QUEUE)`.
fn enqueued<'a>(item: &Word<'a>) -> Option<Word<'a>> {
    let in_parentheses = item
        .strip_prefix("enqueue(")
        .and_then(|rest| rest.strip_suffix(")"));
    let rest = in_parentheses.or_else(|| item.strip_prefix("enqueue:"))?;
    rest.split_once(|c| c == ':' || c == ',')
        .map(|(_, queue)| queue)
}

fn is_output(item: &Word<'_>) -> bool {
    let text = item.text();
    text.eq_ignore_ascii_case("normal")
        || text
            .strip_prefix("output:")
            .is_some_and(|port| !port.is_empty())
        || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
}

#[derive(Default)]
struct Reader {
    priority: Option<u16>,
    in_port: Option<(String, Span)>,
    flow: Flow,
    is_ipv4: Option<bool>,
}

impl Reader {
    fn flow(&self) -> Flow {
        let mut flow = self.flow.clone();
        if let (Some(is_ipv4), None) = (self.is_ipv4, flow.is_ipv4()) {
            flow.source = Some(match is_ipv4 {
                true => IpPrefix::ALL_IPV4,
                false => IpPrefix::ALL_IPV6,
            });
        }
        flow
    }

    fn field(&mut self, field: &Word<'_>) -> Result<(), TextError> {
        let Some((name, value)) = field.split_once(|c| c == '=') else {
            let mut known = SHORTHANDS.iter();
            let Some(&(_, is_ipv4, protocol)) = known.find(|(name, ..)| field.is(name)) else {
                let names: Vec<&str> = SHORTHANDS.iter().map(|(name, ..)| *name).collect();
                let expected = format!("{}, or `FIELD=VALUE`", names.join(", "));
                return Err(field
                    .error("is not a protocol that is read")
                    .expected(expected));
            };
            once(field, self.is_ipv4.is_some())?;
            self.is_ipv4 = Some(is_ipv4);
            self.flow.protocol = protocol;
            return Ok(());
        };
        match name.text().as_str() {
            "priority" => {
                once(&name, self.priority.is_some())?;
                self.priority = Some(small(&value, "a priority", 0..=u16::MAX)?);
            }
            "in_port" => {
                once(&name, self.in_port.is_some())?;
                self.in_port = Some((value.text(), field.span()));
            }
            "cookie" => {}
            "table" => {
                number(&value, "the first table alone", 0..=0)?;
            }
            "dl_vlan" => {
                once(&name, self.flow.vlan.is_some())?;
                let id = small(&value, "a VLAN id", 0..=VLAN_MAX)?;
                self.flow.vlan = Some(id..=id);
            }
            "dl_type" => {
                once(&name, self.is_ipv4.is_some())?;
                let is_ipv4 = number(&value, "an EtherType", 0..=0xffff)? == 0x0800;
                if !is_ipv4 && !value.is("0x86dd") {
                    let expected = "`0x0800` (IPv4) or `0x86dd` (IPv6)";
                    return Err(value.error("is not read").expected(expected));
                }
                self.is_ipv4 = Some(is_ipv4);
            }
            other => return self.ip_field(other, &name, &value),
        }
        Ok(())
    }

    /// A field that a packet has if fields before say so: others are ignored by the switch.
    fn ip_field(&mut self, text: &str, name: &Word<'_>, value: &Word<'_>) -> Result<(), TextError> {
        let needs = |is_there: bool, words: &str| match is_there {
            true => Ok(()),
            false => Err(name
                .error("has no effect")
                .expected(format!("{words} before it"))),
        };
        let flow = &mut self.flow;
        match text {
            "nw_src" | "ip_src" => {
                needs(self.is_ipv4 == Some(true), "`ip`")?;
                once(name, flow.source.is_some())?;
                flow.source = Some(prefix(value, true)?);
            }
            "nw_dst" | "ip_dst" => {
                needs(self.is_ipv4 == Some(true), "`ip`")?;
                once(name, flow.destination.is_some())?;
                flow.destination = Some(prefix(value, true)?);
            }
            "ipv6_src" => {
                needs(self.is_ipv4 == Some(false), "`ipv6`")?;
                once(name, flow.source.is_some())?;
                flow.source = Some(prefix(value, false)?);
            }
            "ipv6_dst" => {
                needs(self.is_ipv4 == Some(false), "`ipv6`")?;
                once(name, flow.destination.is_some())?;
                flow.destination = Some(prefix(value, false)?);
            }
            "nw_proto" | "ip_proto" => {
                needs(self.is_ipv4.is_some(), "`ip` or `ipv6`")?;
                once(name, flow.protocol.is_some())?;
                flow.protocol = Some(small(value, "a protocol", 0..=u8::MAX)?);
            }
            "nw_tos" | "ip_dscp" => {
                needs(self.is_ipv4.is_some(), "`ip` or `ipv6`")?;
                once(name, flow.dscp.is_some())?;
                let dscp = match text {
                    "nw_tos" => number(value, "a type of service", 0..=255)? >> 2,
                    _ => number(value, "a DSCP", 0..=63)?,
                };
                flow.dscp = Some(1 << dscp);
            }
            "tp_src" | "tcp_src" | "udp_src" | "sctp_src" => {
                needs(has_ports(flow.protocol), "`tcp`, `udp` or `sctp`")?;
                once(name, flow.source_ports.is_some())?;
                flow.source_ports = Some(ports(value)?);
            }
            "tp_dst" | "tcp_dst" | "udp_dst" | "sctp_dst" => {
                needs(has_ports(flow.protocol), "`tcp`, `udp` or `sctp`")?;
                once(name, flow.destination_ports.is_some())?;
                flow.destination_ports = Some(ports(value)?);
            }
            _ => {
                let help = closest(text, FIELDS.iter().copied());
                return Err(name
                    .error("is not a field that is read")
                    .expected(one_of(&FIELDS))
                    .maybe_help(help.map(|field| format!("did you mean `{field}`?"))));
            }
        }
        Ok(())
    }
}

pub(super) fn has_ports(protocol: Option<u8>) -> bool {
    matches!(protocol, Some(TCP | UDP | SCTP))
}

fn once(word: &Word<'_>, is_given: bool) -> Result<(), TextError> {
    match is_given {
        true => Err(word
            .error("contradicts a field before it")
            .expected("each field once")),
        false => Ok(()),
    }
}
