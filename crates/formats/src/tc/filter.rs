//! A class map as a classic BPF program over a packet at egress.
//!
//! The program first reads what the conditions need into scratch memory, an absent field as
//! [`ABSENT`], by the same rules as `slicewise-wire` parses frames; then it walks the conditions. It
//! returns -1 where the class map matches, which has `cls_bpf` use the `flowid` of the filter, and
//! 0 otherwise.

use super::classic_bpf::{Assembler, Label, Op, Program, Test};
use slicewise_model::{ClassMap, Condition, IpPrefix, MatchMode};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Most instructions of a filter: they must fit in one request of `tc` to the kernel (16 KiB).
pub const INSTRUCTIONS_MAX: usize = 2_000;

/// A field that the packet does not have. No field has this value.
const ABSENT: u32 = u32::MAX;
/// Return value for a packet that belongs to the class.
const MATCH: u32 = u32::MAX;
/// Where Linux keeps the outer tag of a packet, beside it (`SKF_AD_VLAN_TAG` and
/// `SKF_AD_VLAN_TAG_PRESENT` from `SKF_AD_OFF`, `linux/filter.h`).
const TAG_BESIDE: u32 = 0xffff_f000 + 44;
const IS_TAG_BESIDE: u32 = 0xffff_f000 + 48;

/// 802.1Q, 802.1ad, and what QinQ used before 802.1ad.
const TAG_TYPES: [u32; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags looked through in the packet.
const MOST_TAGS: u32 = 8;
/// IPv6 extension headers looked through.
const MOST_EXTENSIONS: usize = 8;
const FRAGMENT: u32 = 44;
const AUTHENTICATION: u32 = 51;
const EXTENSIONS: [u32; 8] = [0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140];

/// Scratch memory: one word each.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
enum Slot {
    OuterVlan,
    InnerVlan,
    IpVersion,
    IpOffset,
    Protocol,
    TransportOffset,
    SourcePort,
    DestinationPort,
    Dscp,
    /// Bytes of the IP packet, then where it ends.
    IpEnd,
    Other,
}

/// Which fields a class map looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FieldsUsed {
    pub(super) outer_vlan: bool,
    pub(super) inner_vlan: bool,
    /// IP version, addresses or DSCP.
    pub(super) ip: bool,
    /// Protocol or ports.
    pub(super) transport: bool,
    /// TEID of the tunnel.
    pub(super) tunnel: bool,
    /// `EtherType` or type of ICMP.
    pub(super) control: bool,
}

impl FieldsUsed {
    pub(super) fn of(map: &ClassMap) -> Self {
        let mut used = Self::default();
        map.conditions.iter().for_each(|c| used.add(c));
        used
    }

    fn add(&mut self, condition: &Condition) {
        match condition {
            Condition::Everything => {}
            Condition::OuterVlan(_) => self.outer_vlan = true,
            Condition::InnerVlan(_) => self.inner_vlan = true,
            Condition::Source(_) | Condition::Destination(_) | Condition::Dscp(_) => self.ip = true,
            Condition::Protocol(_) | Condition::SourcePort(_) | Condition::DestinationPort(_) => {
                self.transport = true;
            }
            Condition::GtpTeid(_) => self.tunnel = true,
            Condition::Ethertype(_) | Condition::IcmpType(_) => self.control = true,
            Condition::AccessList(list) => list
                .entries
                .iter()
                .flat_map(|entry| &entry.conditions)
                .for_each(|c| self.add(c)),
            Condition::Not(inner) => self.add(inner),
        }
    }

    fn vlan(self) -> bool {
        self.outer_vlan || self.inner_vlan
    }

    fn network(self) -> bool {
        self.ip || self.transport
    }
}

/// Why a class map has no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// It would have more than [`INSTRUCTIONS_MAX`] instructions.
    #[error(
        "its conditions take {instructions} instructions, more than the {INSTRUCTIONS_MAX} that fit in \
         one request to the kernel: match fewer values, or blocks of them"
    )]
    TooLong {
        /// How many.
        instructions: usize,
    },
    /// It matches the TEID.
    #[error(
        "the exported filters look at the outermost IP packet, not at the TEID of a GTP-U tunnel: match \
         the addresses of the tunnel's ends"
    )]
    Tunnel,
    /// It matches an `EtherType` or a type of ICMP.
    #[error(
        "the exported filters read neither EtherTypes nor types of ICMP: match the protocol, or leave the class out"
    )]
    Control,
}

/// The program that matches what `map` does.
///
/// # Errors
/// If it is too long, or if the map matches what programs do not read.
pub fn compile(map: &ClassMap) -> Result<Program, FilterError> {
    let mut compiler = Compiler {
        code: Assembler::default(),
        used: FieldsUsed::of(map),
    };
    if compiler.used.tunnel {
        return Err(FilterError::Tunnel);
    }
    if compiler.used.control {
        return Err(FilterError::Control);
    }
    let (yes, no) = (compiler.code.label(), compiler.code.label());
    compiler.read_headers();
    match map.mode {
        MatchMode::All if map.conditions.is_empty() => compiler.code.jump(no),
        MatchMode::All => compiler.all(&map.conditions, yes, no),
        MatchMode::Any => compiler.any(&map.conditions, yes, no),
    }
    compiler.code.place(yes);
    compiler.code.op(Op::Return, MATCH);
    compiler.code.place(no);
    compiler.code.op(Op::Return, 0);
    let program = compiler.code.finish();
    match program.instructions().len() {
        instructions if instructions > INSTRUCTIONS_MAX => {
            Err(FilterError::TooLong { instructions })
        }
        _ => Ok(program),
    }
}

struct Compiler {
    code: Assembler,
    used: FieldsUsed,
}

impl Compiler {
    fn load(&mut self, slot: Slot) {
        self.code.op(Op::LoadScratch, slot as u32);
    }

    fn load_x(&mut self, slot: Slot) {
        self.code.op(Op::LoadXScratch, slot as u32);
    }

    fn store(&mut self, slot: Slot) {
        self.code.op(Op::Store, slot as u32);
    }

    fn set(&mut self, slot: Slot, value: u32) {
        self.code.op(Op::LoadImmediate, value);
        self.store(slot);
    }

    /// Go on where the test holds, else to `otherwise`.
    fn require(&mut self, test: Test, operand: u32, otherwise: Label) {
        let on = self.code.label();
        self.code.branch(test, operand, on, otherwise);
        self.code.place(on);
    }

    /// Go to `to` where the test holds, else on.
    fn leave_if(&mut self, test: Test, operand: u32, to: Label) {
        let on = self.code.label();
        self.code.branch(test, operand, to, on);
        self.code.place(on);
    }

    fn read_headers(&mut self) {
        if !self.used.vlan() && !self.used.network() {
            return;
        }
        let (vlan, network, transport) =
            (self.used.vlan(), self.used.network(), self.used.transport);
        self.code.op(Op::LoadImmediate, ABSENT);
        for (slot, is_read) in [
            (Slot::OuterVlan, vlan),
            (Slot::InnerVlan, self.used.inner_vlan),
            (Slot::IpVersion, network),
            (Slot::Dscp, network),
            (Slot::Protocol, transport),
            (Slot::SourcePort, transport),
            (Slot::DestinationPort, transport),
        ] {
            if is_read {
                self.store(slot);
            }
        }
        let body = self.code.label();
        let network = self.code.label();
        self.read_tags(network, body);
        self.code.place(network);
        if self.used.network() {
            self.read_network(body);
        }
        self.code.place(body);
    }

    /// VLAN tags; at `network` the accumulator holds the type of what follows them.
    fn read_tags(&mut self, network: Label, body: Label) {
        if self.used.vlan() {
            let none = self.code.label();
            self.code.op(Op::LoadByte, IS_TAG_BESIDE);
            self.leave_if(Test::Equal, 0, none);
            self.code.op(Op::LoadHalf, TAG_BESIDE);
            self.code.op(Op::And, 0x0fff);
            self.store(Slot::OuterVlan);
            self.code.place(none);
        }
        let counted = if self.used.inner_vlan { 2 } else { 1 };
        let most = if self.used.network() {
            MOST_TAGS
        } else {
            counted
        };
        for tag in 0..most {
            let (is_tag, is_not) = (self.code.label(), self.code.label());
            self.code.op(Op::LoadHalf, 12 + 4 * tag);
            for tag_type in TAG_TYPES {
                self.leave_if(Test::Equal, tag_type, is_tag);
            }
            self.code.jump(is_not);
            self.code.place(is_not);
            self.network_at(14 + 4 * tag, network);
            self.code.place(is_tag);
            if self.used.vlan() && tag < counted {
                self.keep_tag(tag);
            }
        }
        if self.used.network() {
            self.code.op(Op::LoadHalf, 12 + 4 * most);
            self.network_at(14 + 4 * most, network);
        } else {
            self.code.jump(body);
        }
    }

    /// A tag in the packet is the second one where the first is kept beside it.
    fn keep_tag(&mut self, tag: u32) {
        let (free, taken, kept) = (self.code.label(), self.code.label(), self.code.label());
        self.code.op(Op::LoadHalf, 14 + 4 * tag);
        self.code.op(Op::And, 0x0fff);
        self.code.op(Op::AToX, 0);
        let (first, second) = match tag {
            0 => (Slot::OuterVlan, Some(Slot::InnerVlan)),
            _ => (Slot::InnerVlan, None),
        };
        self.load(first);
        self.code.branch(Test::Equal, ABSENT, free, taken);
        self.code.place(free);
        self.code.op(Op::StoreX, first as u32);
        self.code.jump(kept);
        self.code.place(taken);
        if let Some(second) = second
            && self.used.inner_vlan
        {
            self.code.op(Op::StoreX, second as u32);
        }
        self.code.place(kept);
    }

    fn network_at(&mut self, offset: u32, network: Label) {
        self.code.op(Op::LoadXImmediate, offset);
        self.code.op(Op::StoreX, Slot::IpOffset as u32);
        self.code.jump(network);
    }

    /// IP headers; the accumulator holds their type.
    fn read_network(&mut self, body: Label) {
        let (v4, v6, ports) = (self.code.label(), self.code.label(), self.code.label());
        self.leave_if(Test::Equal, 0x0800, v4);
        self.code.branch(Test::Equal, 0x86dd, v6, body);
        self.code.place(v4);
        self.read_v4(ports, body);
        self.code.place(v6);
        self.read_v6(ports, body);
        self.code.place(ports);
        if self.used.transport {
            self.read_ports(body);
        }
    }

    /// Bytes from the IP header on are `IpEnd`; `body` where they are fewer than `least`, or the
    /// first of them does not state `version`.
    fn begin_network(&mut self, version: u32, least: u32, body: Label) {
        self.load_x(Slot::IpOffset);
        self.code.op(Op::LoadLength, 0);
        self.code.op(Op::SubtractX, 0);
        self.require(Test::AtLeast, least, body);
        self.store(Slot::IpEnd);
        self.code.op(Op::LoadByteAtX, 0);
        self.code.op(Op::And, 0xf0);
        self.require(Test::Equal, version << 4, body);
    }

    /// `IpEnd` becomes the length in the accumulator, unless that is zero or more than there is.
    fn end_at_stated_length(&mut self, added: u32) {
        let held = self.code.label();
        self.leave_if(Test::Equal, 0, held);
        self.code.op(Op::Add, added);
        self.code.op(Op::AToX, 0);
        self.load(Slot::IpEnd);
        self.require(Test::AtLeastX, 0, held);
        self.code.op(Op::StoreX, Slot::IpEnd as u32);
        self.code.place(held);
    }

    /// `slot` += the offset of the IP header, which X holds.
    fn add_ip_offset(&mut self, slot: Slot) {
        self.load(slot);
        self.code.op(Op::AddX, 0);
        self.store(slot);
    }

    fn read_v4(&mut self, ports: Label, body: Label) {
        self.begin_network(4, 20, body);
        self.code.op(Op::LoadByteAtX, 0);
        self.code.op(Op::And, 0x0f);
        self.code.op(Op::ShiftLeft, 2);
        self.require(Test::AtLeast, 20, body);
        self.store(Slot::TransportOffset);
        self.code.op(Op::LoadHalfAtX, 2);
        self.end_at_stated_length(0);
        self.load_x(Slot::TransportOffset);
        self.load(Slot::IpEnd);
        self.require(Test::AtLeastX, 0, body);
        self.load_x(Slot::IpOffset);
        self.add_ip_offset(Slot::IpEnd);
        self.add_ip_offset(Slot::TransportOffset);
        self.set(Slot::IpVersion, 4);
        self.code.op(Op::LoadByteAtX, 1);
        self.code.op(Op::ShiftRight, 2);
        self.store(Slot::Dscp);
        self.code.op(Op::LoadByteAtX, 9);
        self.store(Slot::Protocol);
        // Later fragments have no ports.
        self.code.op(Op::LoadHalfAtX, 6);
        self.code.branch(Test::AnyBit, 0x1fff, body, ports);
    }

    fn read_v6(&mut self, ports: Label, body: Label) {
        self.begin_network(6, 40, body);
        self.set(Slot::IpVersion, 6);
        self.code.op(Op::LoadHalfAtX, 0);
        self.code.op(Op::ShiftRight, 6);
        self.code.op(Op::And, 0x3f);
        self.store(Slot::Dscp);
        if !self.used.transport {
            self.code.jump(body);
            return;
        }
        self.code.op(Op::LoadByteAtX, 6);
        self.store(Slot::Protocol);
        self.code.op(Op::LoadHalfAtX, 4);
        self.end_at_stated_length(40);
        self.load_x(Slot::IpOffset);
        self.add_ip_offset(Slot::IpEnd);
        self.set(Slot::TransportOffset, 40);
        self.add_ip_offset(Slot::TransportOffset);
        for _ in 0..MOST_EXTENSIONS {
            self.read_extension(ports, body);
        }
        self.load(Slot::Protocol);
        for extension in EXTENSIONS {
            self.leave_if(Test::Equal, extension, body);
        }
        self.code.jump(ports);
    }

    /// One extension header: `ports` where there is none.
    fn read_extension(&mut self, ports: Label, body: Label) {
        let [extension, fragment, authentication, length_known] =
            [(); 4].map(|()| self.code.label());
        self.load(Slot::Protocol);
        for number in EXTENSIONS {
            self.leave_if(Test::Equal, number, extension);
        }
        self.code.jump(ports);
        self.code.place(extension);
        self.load_x(Slot::TransportOffset);
        self.code.op(Op::LoadLength, 0);
        self.require(Test::AtLeastX, 0, body);
        self.code.op(Op::SubtractX, 0);
        self.require(Test::AtLeast, 8, body);
        self.code.op(Op::LoadByteAtX, 1);
        self.store(Slot::Other);
        self.load(Slot::Protocol);
        self.leave_if(Test::Equal, FRAGMENT, fragment);
        self.leave_if(Test::Equal, AUTHENTICATION, authentication);
        self.load(Slot::Other);
        self.code.op(Op::Add, 1);
        self.code.op(Op::ShiftLeft, 3);
        self.code.jump(length_known);
        self.code.place(authentication);
        self.load(Slot::Other);
        self.code.op(Op::Add, 2);
        self.code.op(Op::ShiftLeft, 2);
        self.code.jump(length_known);
        self.code.place(fragment);
        // Of a later fragment no more is known than what it is a piece of.
        let first = self.code.label();
        self.code.op(Op::LoadByteAtX, 0);
        self.store(Slot::Protocol);
        self.code.op(Op::LoadHalfAtX, 2);
        self.code.branch(Test::AnyBit, 0xfff8, body, first);
        self.code.place(first);
        self.code.op(Op::LoadImmediate, 8);
        self.code.place(length_known);
        self.code.op(Op::AddX, 0);
        self.store(Slot::TransportOffset);
        self.code.op(Op::LoadByteAtX, 0);
        self.store(Slot::Protocol);
    }

    /// Ports, where the packet holds the whole header of a transport that has them.
    fn read_ports(&mut self, body: Label) {
        let known = self.code.label();
        self.load(Slot::Protocol);
        let [udp, tcp, sctp] = [(); 3].map(|()| self.code.label());
        self.leave_if(Test::Equal, 17, udp);
        self.leave_if(Test::Equal, 6, tcp);
        self.code.branch(Test::Equal, 132, sctp, body);
        for (transport, header_bytes) in [(udp, 8), (tcp, 20), (sctp, 12)] {
            self.code.place(transport);
            self.code.op(Op::LoadImmediate, header_bytes);
            self.code.jump(known);
        }
        self.code.place(known);
        self.load_x(Slot::TransportOffset);
        self.code.op(Op::AddX, 0);
        self.code.op(Op::AToX, 0);
        self.load(Slot::IpEnd);
        self.require(Test::AtLeastX, 0, body);
        self.load(Slot::TransportOffset);
        self.code.op(Op::Add, 4);
        self.code.op(Op::AToX, 0);
        self.code.op(Op::LoadLength, 0);
        self.require(Test::AtLeastX, 0, body);
        self.load_x(Slot::TransportOffset);
        self.code.op(Op::LoadHalfAtX, 0);
        self.store(Slot::SourcePort);
        self.code.op(Op::LoadHalfAtX, 2);
        self.store(Slot::DestinationPort);
    }

    fn all(&mut self, conditions: &[Condition], yes: Label, no: Label) {
        for condition in conditions {
            let next = self.code.label();
            self.condition(condition, next, no);
            self.code.place(next);
        }
        self.code.jump(yes);
    }

    fn any(&mut self, conditions: &[Condition], yes: Label, no: Label) {
        for condition in conditions {
            let next = self.code.label();
            self.condition(condition, yes, next);
            self.code.place(next);
        }
        self.code.jump(no);
    }

    fn condition(&mut self, condition: &Condition, yes: Label, no: Label) {
        match condition {
            Condition::Everything => self.code.jump(yes),
            Condition::OuterVlan(range) => self.range(Slot::OuterVlan, range, yes, no),
            Condition::InnerVlan(range) => self.range(Slot::InnerVlan, range, yes, no),
            Condition::SourcePort(range) => self.range(Slot::SourcePort, range, yes, no),
            Condition::DestinationPort(range) => self.range(Slot::DestinationPort, range, yes, no),
            Condition::Source(prefix) => self.prefix(*prefix, 12, 8, yes, no),
            Condition::Destination(prefix) => self.prefix(*prefix, 16, 24, yes, no),
            Condition::Protocol(protocol) => {
                self.load(Slot::Protocol);
                self.code.branch(Test::Equal, (*protocol).into(), yes, no);
            }
            Condition::Dscp(set) => self.dscp(*set, yes, no),
            // Refused before.
            Condition::GtpTeid(_) | Condition::Ethertype(_) | Condition::IcmpType(_) => {
                self.code.jump(no);
            }
            Condition::AccessList(list) => {
                for entry in &list.entries {
                    let (decided, next) = (self.code.label(), self.code.label());
                    self.all(&entry.conditions, decided, next);
                    self.code.place(decided);
                    self.code.jump(if entry.permit { yes } else { no });
                    self.code.place(next);
                }
                self.code.jump(no);
            }
            Condition::Not(inner) => self.condition(inner, no, yes),
        }
    }

    fn range(&mut self, slot: Slot, range: &RangeInclusive<u16>, yes: Label, no: Label) {
        self.load(slot);
        if range.start() == range.end() {
            self.code
                .branch(Test::Equal, (*range.start()).into(), yes, no);
            return;
        }
        self.require(Test::AtLeast, (*range.start()).into(), no);
        self.code
            .branch(Test::Greater, (*range.end()).into(), no, yes);
    }

    /// Code points in runs of neighbours: an absent one is above all of them.
    fn dscp(&mut self, set: u64, yes: Label, no: Label) {
        self.load(Slot::Dscp);
        let mut first = 0;
        while first < 64 {
            let rest = set >> first;
            let skipped = rest.trailing_zeros();
            let run = rest.checked_shr(skipped).unwrap_or(0).trailing_ones();
            if run == 0 {
                break;
            }
            first += skipped;
            let next = self.code.label();
            self.require(Test::AtLeast, first, no);
            self.code.branch(Test::Greater, first + run - 1, next, yes);
            self.code.place(next);
            first += run;
        }
        self.code.jump(no);
    }

    fn prefix(&mut self, prefix: IpPrefix, v4_at: u32, v6_at: u32, yes: Label, no: Label) {
        let length = u32::from(prefix.length());
        let (version, words, at) = match prefix.address() {
            IpAddr::V4(address) => (4, vec![u32::from(address)], v4_at),
            IpAddr::V6(address) => {
                let words = address.octets();
                let words = words.chunks_exact(4);
                let word = |b: &[u8]| b.iter().fold(0, |word, b| word << 8 | u32::from(*b));
                (6, words.map(word).collect(), v6_at)
            }
        };
        self.load(Slot::IpVersion);
        self.require(Test::Equal, version, no);
        self.load_x(Slot::IpOffset);
        for (index, word) in (0u32..).zip(words) {
            let bits = length.saturating_sub(32 * index).min(32);
            if bits == 0 {
                break;
            }
            self.code.op(Op::LoadWordAtX, at + 4 * index);
            if bits < 32 {
                self.code.op(Op::And, u32::MAX << (32 - bits));
            }
            self.require(Test::Equal, word, no);
        }
        self.code.jump(yes);
    }
}
