//! Packets that something on the way changes, so that none of them matches: address translation, rewritten
//! identifications or sequence numbers, tunnels. At the sending end they look lost.

use crate::offload::Packets;
use crate::slices::FlowName;
use slicewise_wire::{Headers, IpVersion};
use std::collections::HashMap;
use std::fmt;

/// Flows whose packets were probably changed on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFlows {
    change: Change,
    /// The largest flow of the sending end, and how many there are.
    sent: (String, usize),
    /// The same of the receiving end.
    received: (String, usize),
    /// Packets seen only at the sending end, and only at the receiving end.
    packets: (u64, u64),
    /// True if some of them are in tunnels that can be looked into.
    is_readable: bool,
}

/// Change that probably happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Addresses or ports are translated.
    Translated,
    /// Packets keep addresses and ports.
    Rewritten,
    /// Packets get other headers.
    Tunnelled,
}

/// Flows of the two ends, with their packets that were seen at that end only.
pub(crate) struct OneEndedFlows<'a> {
    /// Flows of the sending end.
    pub(crate) sent: &'a [Headers],
    /// Packets of each of them.
    pub(crate) sent_packets: &'a [u64],
    pub(crate) lost: &'a [Packets],
    /// Flows of the receiving end.
    pub(crate) received: &'a [Headers],
    pub(crate) unsent: &'a [Packets],
    /// How far the receiving clock is ahead, ns.
    pub(crate) alignment_ns: i64,
    /// Packets of the receiving end were seldom changed: they arrived after the time-out.
    pub(crate) are_late: bool,
}

/// Addresses, ports and protocol.
type Ends = (u128, u128, u16, u16, u8);

/// The fields that flows of a group have in common; the others are 0.
type InCommon = fn(&Headers) -> Ends;

/// One flow of one end, whatever its tags and code points.
#[derive(Debug, Clone, Copy)]
struct Flow<'a> {
    headers: &'a Headers,
    /// All of its packets; of the receiving end, those seen there only.
    packets: u64,
    alone: Packets,
}

/// Flows of both ends that may be the same traffic.
#[derive(Default)]
struct Group<'a> {
    sent: Vec<Flow<'a>>,
    received: Vec<Flow<'a>>,
}

impl OneEndedFlows<'_> {
    /// The flows that look changed, if there are any: as many packets of the same lengths at about the same
    /// time, seen at one end only, have something in common.
    pub(crate) fn changed(&self) -> Option<ChangedFlows> {
        let sent = by_ends(self.sent, self.lost, |flow| {
            self.sent_packets.get(flow).copied().unwrap_or_default()
        });
        let received = by_ends(self.received, self.unsent, |_| 0);
        let both = sent.iter().filter_map(|(ends, sent)| {
            let mut group = Group::default();
            group.sent.push(*sent);
            group.received.push(*received.get(ends)?);
            // A flow that is only partly changed counts if most of its packets are, or if not one is lost.
            let unsent = &group.received.first()?.alone;
            let is_most = sent.alone.count * 2 >= sent.packets;
            let is_exact = sent.alone.count >= MANY && sent.alone.equal(unsent);
            (!self.are_late && (is_most || is_exact)).then_some(group)
        });
        largest(both.filter_map(|group| self.judge(&group, Change::Rewritten))).or_else(|| {
            let only = |flow: &&Flow<'_>| flow.alone.count > 0 && !is_multicast(flow.headers);
            let lost = |flow: &&Flow<'_>| flow.alone.count >= flow.packets;
            let sent_only = sent
                .iter()
                .filter(|(ends, _)| !received.contains_key(*ends));
            let sent_only: Vec<Flow<'_>> = sent_only
                .map(|(_, flow)| flow)
                .filter(only)
                .filter(lost)
                .copied()
                .collect();
            let received_only = received
                .iter()
                .filter(|(ends, _)| !sent.contains_key(*ends));
            let received_only: Vec<Flow<'_>> = received_only
                .map(|(_, flow)| flow)
                .filter(only)
                .copied()
                .collect();
            COMMON.iter().find_map(|&(change, common)| {
                let mut groups: HashMap<_, Group<'_>> = HashMap::new();
                for flow in &sent_only {
                    groups
                        .entry(common(flow.headers))
                        .or_default()
                        .sent
                        .push(*flow);
                }
                for flow in &received_only {
                    groups
                        .entry(common(flow.headers))
                        .or_default()
                        .received
                        .push(*flow);
                }
                largest(
                    groups
                        .values()
                        .filter_map(|group| self.judge(group, change)),
                )
            })
        })
    }

    /// Compares all flows of a group, or each with each.
    fn judge(&self, group: &Group<'_>, change: Change) -> Option<ChangedFlows> {
        let (lost, unsent) = (sum(&group.sent), sum(&group.received));
        let all = self.agree(&lost, &unsent, change);
        if all {
            return Some(ChangedFlows::new(change, &group.sent, &group.received));
        }
        if change != Change::Translated {
            return None;
        }
        let pairs = group.sent.iter().take(MOST_COMPARED).flat_map(|sent| {
            let received = group.received.iter().take(MOST_COMPARED);
            received.filter_map(|received| {
                let many = sent.alone.count >= MANY;
                (many && self.agree(&sent.alone, &received.alone, change))
                    .then(|| ChangedFlows::new(change, &[*sent], &[*received]))
            })
        });
        largest(pairs)
    }

    /// Returns true if packets seen at the receiving end only may be those seen at the sending end only.
    fn agree(&self, lost: &Packets, unsent: &Packets, change: Change) -> bool {
        let least = match change {
            Change::Rewritten => FEW,
            Change::Translated if crossed_routers(lost, unsent) => FEW,
            Change::Translated if lost.equal(unsent) => SOME,
            Change::Translated | Change::Tunnelled => MANY,
        };
        // Some may be lost, and a few duplicated.
        let most = lost.count - lost.count / 8;
        let fewest = if least == FEW { lost.count / 2 } else { most };
        let number = lost.count >= least
            && unsent.count >= least.max(fewest)
            && unsent.count <= lost.count + lost.count / 8;
        let [lost_bytes, unsent_bytes] = [lost, unsent].map(Packets::mean_bytes);
        // A tunnel begins or ends on the way, or the payload of the same flow is encrypted.
        let added = match change {
            Change::Tunnelled => TUNNEL_BYTES,
            Change::Rewritten if lost.count >= MANY && unsent.count >= most => TUNNEL_BYTES,
            Change::Rewritten | Change::Translated => 0,
        };
        let length = unsent_bytes.abs_diff(lost_bytes) <= lost_bytes / 16 + added;
        let begins_ns = unsent
            .first_ns
            .saturating_add_signed(self.alignment_ns.saturating_neg());
        number && length && begins_ns.abs_diff(lost.first_ns) <= APART_NS
    }
}

/// Fields that flows of the two ends have in common if they are the same traffic, the most specific first: all but the
/// source (address translation of hosts), all but the destination (of servers, and of answers), the ports (of both
/// addresses), nothing.
const COMMON: [(Change, InCommon); 4] = [
    (Change::Translated, |of| {
        (0, of.destination, 0, of.destination_port, of.protocol)
    }),
    (Change::Translated, |of| {
        (of.source, 0, of.source_port, 0, of.protocol)
    }),
    (Change::Translated, |of| {
        (0, 0, of.source_port, of.destination_port, of.protocol)
    }),
    (Change::Tunnelled, |_| (0, 0, 0, 0, 0)),
];

/// Fewer may be chance.
const FEW: u64 = 4;

/// Fewer may be chance, even if numbers and lengths are equal.
const SOME: u64 = 8;

/// Fewer may be chance where less is known.
const MANY: u64 = 32;

/// Flows of each end of a group compared with each other.
const MOST_COMPARED: usize = 1_000;

/// Bytes that a tunnel or encryption adds to a packet, or removes from it.
const TUNNEL_BYTES: u64 = 100;

/// Packets of captures this far apart are not the same, ns: longer than any queue, or a difference of clocks.
const APART_NS: u64 = 2_500_000_000;

fn by_ends<'a>(
    flows: &'a [Headers],
    alone: &[Packets],
    packets: impl Fn(usize) -> u64,
) -> HashMap<Ends, Flow<'a>> {
    let mut by_ends: HashMap<Ends, Flow<'a>> = HashMap::new();
    for (number, headers) in flows.iter().enumerate() {
        let ends = (
            headers.source,
            headers.destination,
            headers.source_port,
            headers.destination_port,
            headers.protocol,
        );
        let alone = alone.get(number).copied().unwrap_or_default();
        let flow = Flow {
            headers,
            packets: packets(number),
            alone: alone.without(header_bytes(headers)),
        };
        let known = by_ends.entry(ends).or_insert(Flow {
            packets: 0,
            alone: Packets::default(),
            ..flow
        });
        known.packets += flow.packets;
        known.alone.join(&flow.alone);
    }
    by_ends
}

/// Bytes before the IP payload.
fn header_bytes(headers: &Headers) -> u64 {
    let ip = if headers.ip_version == IpVersion::V6 {
        40
    } else {
        20
    };
    u64::from(headers.l3_offset) + ip
}

/// Hosts of both ends may send alike to a group.
fn is_multicast(headers: &Headers) -> bool {
    match headers.ip_version {
        IpVersion::V6 => headers.destination >> 120 == 0xff,
        _ => headers.destination >> 28 == 0xe,
    }
}

/// Returns true if the mean time to live differs by 1 to [`MOST_HOPS`].
fn crossed_routers(lost: &Packets, unsent: &Packets) -> bool {
    let ttl = |packets: &Packets| packets.ttl_sum / packets.count.max(1);
    (1..=MOST_HOPS).contains(&ttl(lost).abs_diff(ttl(unsent)))
}

/// Initial times to live are further apart: 32, 64, 128 and 255.
const MOST_HOPS: u64 = 30;

fn sum(flows: &[Flow<'_>]) -> Packets {
    let mut sum = Packets::default();
    for flow in flows {
        sum.join(&flow.alone);
    }
    sum
}

fn largest(found: impl Iterator<Item = ChangedFlows>) -> Option<ChangedFlows> {
    // The order of a map must not show.
    found.max_by(|a, b| (a.packets, &b.sent, &b.received).cmp(&(b.packets, &a.sent, &a.received)))
}

impl ChangedFlows {
    fn new(change: Change, sent: &[Flow<'_>], received: &[Flow<'_>]) -> Self {
        let named = |flows: &[Flow<'_>]| {
            let names = flows.iter().map(|flow| {
                let name = FlowName(flow.headers).to_string();
                (std::cmp::Reverse(flow.alone.count), name)
            });
            let first = names.min().map(|(_, name)| name);
            (first.unwrap_or_default(), flows.len())
        };
        Self {
            change,
            sent: named(sent),
            received: named(received),
            packets: (sum(sent).count, sum(received).count),
            is_readable: (sent.iter().chain(received)).any(|flow| flow.headers.is_encapsulating()),
        }
    }
}

impl fmt::Display for ChangedFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lost, unsent) = self.packets;
        let flows = |(first, count): &(String, usize)| match count {
            0 | 1 => first.clone(),
            2 => format!("{first} and 1 other flow"),
            more => format!("{first} and {} other flows", more - 1),
        };
        let sent = flows(&self.sent);
        let (received, why) = match self.change {
            Change::Rewritten => (
                "the same flow".to_owned(),
                "something on the way rewrites IP identifications, TCP sequence numbers, options or \
                 payload, as firewalls and proxies do",
            ),
            Change::Translated => (
                flows(&self.received),
                "addresses or ports are translated on the way (NAT, load balancing)",
            ),
            Change::Tunnelled => (
                flows(&self.received),
                "a tunnel or encryption on the way gives packets other headers",
            ),
        };
        let instead = match self.is_readable {
            true => "`--inner` matches the packets inside",
            false => {
                "Capture both ends on one side of that; or leave these packets out of both captures"
            }
        };
        write!(
            f,
            "{lost} packets of {sent} were seen only at the sender, and {unsent} of {received}, of \
             similar lengths and at the same time, only at the receiver. Probably {why}. Such \
             packets cannot be matched, so loss is unknown. {instead}"
        )
    }
}
