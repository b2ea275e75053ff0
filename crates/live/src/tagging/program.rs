//! The two programs.

use super::TagRule;
use crate::bpf::{Instruction, Register};
use std::net::IpAddr;

/// Functions of the kernel (`enum bpf_func_id`).
const VLAN_PUSH: i32 = 18;
const VLAN_POP: i32 = 19;
const LOAD_BYTES: i32 = 26;
/// Verdict on a frame: it goes on, to filters of others if there are any; or it is dropped.
const TC_ACT_UNSPEC: i32 = -1;
const TC_ACT_SHOT: i32 = 2;
/// Where `struct __sk_buff` has the protocol, in the byte order of the network.
const PROTOCOL_AT: i16 = 16;

/// Where frames have two addresses one behind the other, and how long both are.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    ethertype: u16,
    at: i32,
    /// Parts of eight bytes.
    parts: i16,
}

const V4: Addresses = Addresses {
    ethertype: 0x0800,
    at: 14 + 12,
    parts: 1,
};
const V6: Addresses = Addresses {
    ethertype: 0x86dd,
    at: 14 + 8,
    parts: 4,
};

/// A number as it is in a frame, read as this machine reads numbers.
fn in_frame(number: u16) -> i32 {
    i32::from(number.to_be())
}

/// Tags by addresses, for frames that leave. No frame leaves without the tags that it should have: if the kernel
/// has no memory to add one, the frame is lost.
///
/// Addresses are copied to the program's stack first: a packet may be in several pieces. The kernel's verifier
/// does not track comparisons of values read from the stack, so it checks the rules once, not once for every
/// path that leads there.
pub(super) fn push_tags(rules: &[TagRule]) -> Vec<Instruction> {
    let mut program = vec![Instruction::copy(Register::SIX, Register::ONE)];
    for addresses in [V4, V6] {
        let is_v4 = addresses.ethertype == V4.ethertype;
        let rules = rules.iter().filter(|rule| rule.source.is_ipv4() == is_v4);
        let bytes = addresses.parts * 8;
        let mut section = vec![
            Instruction::copy(Register::ONE, Register::SIX),
            Instruction::set(Register::TWO, addresses.at),
            Instruction::copy(Register::THREE, Register::STACK_END),
            Instruction::add(Register::THREE, -i32::from(bytes)),
            Instruction::set(Register::FOUR, i32::from(bytes)),
            Instruction::call(LOAD_BYTES),
            Instruction::jump_if_equal(Register::RESULT, 0, 2),
        ];
        section.extend(end(TC_ACT_UNSPEC));
        section.extend(rules.flat_map(rule));
        section.extend(end(TC_ACT_UNSPEC));
        program.extend([
            Instruction::load_word(Register::ONE, Register::SIX, PROTOCOL_AT),
            Instruction::jump_if_not(Register::ONE, in_frame(addresses.ethertype), skip(&section)),
        ]);
        program.extend(section);
    }
    program.extend(end(TC_ACT_UNSPEC));
    program
}

/// Up to two tags off, for frames that arrive. Removing a tag from an untagged frame does nothing.
pub(super) fn pop_tags() -> Vec<Instruction> {
    let mut program = vec![
        Instruction::copy(Register::SIX, Register::ONE),
        Instruction::call(VLAN_POP),
        Instruction::copy(Register::ONE, Register::SIX),
        Instruction::call(VLAN_POP),
    ];
    program.extend(end(TC_ACT_UNSPEC));
    program
}

/// Tags, and the end, where the addresses on the stack are those of the rule; else on to what follows.
fn rule(rule: &TagRule) -> Vec<Instruction> {
    let mut action = Vec::new();
    // Behind the addresses, before any tag that is there: the inner one comes first.
    for vlan in [rule.inner_vlan, Some(rule.vlan)].into_iter().flatten() {
        action.extend([
            Instruction::copy(Register::ONE, Register::SIX),
            Instruction::set(Register::TWO, in_frame(0x8100)),
            Instruction::set(Register::THREE, i32::from(vlan)),
            Instruction::call(VLAN_PUSH),
            Instruction::jump_if_equal(Register::RESULT, 0, 2),
        ]);
        action.extend(end(TC_ACT_SHOT));
    }
    action.extend(end(TC_ACT_UNSPEC));
    // From the end, where addresses of a testbed differ most, so that most rules are left at once; and
    // written from the end, so that jumps know how far it is.
    let octets = octets(rule);
    let mut program = action;
    for (index, part) in octets.as_chunks::<8>().0.iter().enumerate() {
        let from_end = i16::try_from(octets.len() - index * 8).unwrap_or(0);
        let [low, high] = Instruction::set_double(Register::TWO, u64::from_ne_bytes(*part));
        let compare = [
            Instruction::load_double(Register::ONE, Register::STACK_END, -from_end),
            low,
            high,
            Instruction::jump_if_different(Register::ONE, Register::TWO, skip(&program)),
        ];
        program.splice(0..0, compare);
    }
    program
}

/// Both addresses, as in a frame.
fn octets(rule: &TagRule) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    [octets(rule.source), octets(rule.destination)].concat()
}

/// The distance of a jump over this. It fits for as many rules as there may be, which is tested.
fn skip(instructions: &[Instruction]) -> i16 {
    i16::try_from(instructions.len()).unwrap_or(i16::MAX)
}

const fn end(result: i32) -> [Instruction; 2] {
    [
        Instruction::set(Register::RESULT, result),
        Instruction::exit(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::MOST_RULES;
    use super::*;

    fn v4(inner_vlan: Option<u16>) -> TagRule {
        TagRule {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            vlan: 7,
            inner_vlan,
        }
    }

    fn v6() -> TagRule {
        TagRule {
            source: [0xfd00, 0, 0, 0, 0, 0, 0, 1].into(),
            destination: [0xfd00, 0, 0, 0, 0, 0, 0, 2].into(),
            vlan: 7,
            inner_vlan: Some(8),
        }
    }

    /// Returns the effect of a program on a frame: pushed identifiers and its result, by walking through it.
    fn walk(program: &[Instruction], protocol: u16, addresses: &[u8]) -> (Vec<i64>, i64) {
        let (mut registers, mut stack, mut pushed) = ([0i64; 11], [0u8; 64], Vec::new());
        let mut at = 0usize;
        loop {
            let i = program[at];
            let (to, from) = (usize::from(i.registers & 15), usize::from(i.registers >> 4));
            let immediate = i64::from(i.immediate);
            let jumps = match i.opcode {
                0x15 => registers[to] == immediate,
                0x55 => registers[to] != immediate,
                0x5d => registers[to] != registers[from],
                _ => false,
            };
            match i.opcode {
                0xbf => registers[to] = registers[from],
                0xb7 => registers[to] = immediate,
                0x07 => registers[to] += immediate,
                0x61 => registers[to] = i64::from(protocol.to_be()),
                0x79 => {
                    let start = usize::try_from(64 + i.offset).unwrap();
                    let bytes = stack[start..start + 8].try_into().unwrap();
                    registers[to] = i64::from_ne_bytes(bytes);
                }
                0x18 => {
                    let low = i64::from(i.immediate.cast_unsigned());
                    registers[to] = i64::from(program[at + 1].immediate) << 32 | low;
                    at += 1;
                }
                0x85 if i.immediate == LOAD_BYTES => {
                    let start = usize::try_from(64 + registers[3]).unwrap();
                    let length = usize::try_from(registers[4]).unwrap();
                    stack[start..start + length].copy_from_slice(addresses);
                    registers[0] = 0;
                }
                0x85 => {
                    pushed.push(registers[3]);
                    registers[0] = 0;
                }
                0x95 => return (pushed, registers[0]),
                _ => {}
            }
            at = at
                .checked_add_signed(isize::from(if jumps { i.offset } else { 0 }))
                .unwrap()
                + 1;
        }
    }

    #[test]
    fn the_first_rule_with_the_addresses_pushes_the_inner_tag_first() {
        let other = TagRule {
            destination: [10, 0, 0, 3].into(),
            vlan: 9,
            ..v4(None)
        };
        let program = push_tags(&[v4(Some(8)), other, v4(None), v6()]);
        let tags = |protocol, rule: &TagRule| walk(&program, protocol, &octets(rule));
        assert_eq!(tags(0x0800, &v4(None)), (vec![8, 7], -1));
        assert_eq!(tags(0x0800, &other), (vec![9], -1));
        assert_eq!(tags(0x86dd, &v6()), (vec![8, 7], -1));
        for index in 0..32 {
            let mut addresses = octets(&v6());
            addresses[index] ^= 1;
            assert_eq!(walk(&program, 0x86dd, &addresses), (vec![], -1));
        }
        assert_eq!(
            walk(&program, 0x0800, &[10, 0, 0, 2, 10, 0, 0, 1]),
            (vec![], -1)
        );
        assert_eq!(walk(&program, 0x0806, &[]), (vec![], -1));
    }

    #[test]
    fn jumps_reach_over_as_many_rules_as_there_may_be() {
        for one in [v4(Some(8)), v6()] {
            let program = push_tags(&vec![one; MOST_RULES]);
            assert!(program.iter().all(|i| i.offset < i16::MAX));
            assert!(program.len() > 20 * MOST_RULES);
        }
    }
}
