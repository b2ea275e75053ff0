//! The program at the interface.

use super::xsk_map::XskMap;
use crate::bpf::{Instruction, Program, ProgramType, Register};
use std::io;

/// `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;
/// Verdict on a frame for which there is no socket: it passes as if the program were not attached.
const XDP_PASS: i32 = 2;
/// Where `struct xdp_md` has the receive queue.
const RECEIVE_QUEUE_AT: i16 = 16;

/// `return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS)`
const fn instructions(map: i32) -> [Instruction; 6] {
    let [map, map_rest] = Instruction::set_map(Register::ONE, map);
    [
        Instruction::load_word(Register::TWO, Register::ONE, RECEIVE_QUEUE_AT),
        map,
        map_rest,
        Instruction::set(Register::THREE, XDP_PASS),
        Instruction::call(REDIRECT_MAP),
        Instruction::exit(),
    ]
}

/// Have the kernel check and take the program.
pub(super) fn load(map: &XskMap) -> io::Result<Program> {
    Program::load(ProgramType::Xdp, &instructions(map.number()))
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
    }
}
