//! The program at the interface, assembled here: no compiler, no object file, and every instruction to
//! be read.

use super::bpf::{Program, XskMap};
use std::io;

/// One instruction of eBPF (RFC 9669, section 3): opcode, destination and source register, offset,
/// immediate value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instruction {
    opcode: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    const fn new(opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Self {
        Self {
            opcode,
            registers: from << 4 | to,
            offset,
            immediate,
        }
    }
}

/// `LDX | MEM | W`: load a word from memory.
const LOAD_WORD: u8 = 0x61;
/// `LD | IMM | DW`: load 64 bits that are part of the program; takes two instructions.
const LOAD_64: u8 = 0x18;
/// As source register of [`LOAD_64`]: the value is a map's descriptor.
const IS_MAP: u8 = 1;
/// `ALU64 | MOV | K`: set a register.
const SET: u8 = 0xb7;
/// `JMP | CALL`.
const CALL: u8 = 0x85;
/// `JMP | EXIT`.
const EXIT: u8 = 0x95;
/// `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;
/// What becomes of a frame that there is no socket for: as if we were not there.
const XDP_PASS: i32 = 2;
/// Where `struct xdp_md` has the receive queue.
const RECEIVE_QUEUE_AT: i16 = 16;

/// `return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS)`
const fn instructions(map: i32) -> [Instruction; 6] {
    [
        Instruction::new(LOAD_WORD, 2, 1, RECEIVE_QUEUE_AT, 0),
        Instruction::new(LOAD_64, 1, IS_MAP, 0, map),
        Instruction::new(0, 0, 0, 0, 0),
        Instruction::new(SET, 3, 0, 0, XDP_PASS),
        Instruction::new(CALL, 0, 0, 0, REDIRECT_MAP),
        Instruction::new(EXIT, 0, 0, 0, 0),
    ]
}

/// Have the kernel check and take the program.
pub(super) fn load(map: &XskMap) -> io::Result<Program> {
    Program::load(&instructions(map.number()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_encoded_as_the_kernel_reads_it() {
        let [load, map, .., call, exit] = instructions(7);
        assert_eq!((load.opcode, load.registers, load.offset), (0x61, 0x12, 16));
        assert_eq!((map.opcode, map.registers, map.immediate), (0x18, 0x11, 7));
        assert_eq!((call.opcode, call.immediate), (0x85, 51));
        assert_eq!(exit.opcode, 0x95);
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
