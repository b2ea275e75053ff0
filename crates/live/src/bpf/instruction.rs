//! Instructions (RFC 9669).

/// One of the registers that programs use by name. A call takes arguments in the first ones and destroys
/// them; [`Register::SIX`] to nine it leaves alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Register(u8);

impl Register {
    /// Result of a call, and of the program.
    pub(crate) const RESULT: Self = Self(0);
    /// First argument; the context when the program begins.
    pub(crate) const ONE: Self = Self(1);
    /// Second argument.
    pub(crate) const TWO: Self = Self(2);
    /// Third argument.
    pub(crate) const THREE: Self = Self(3);
    /// Fourth argument.
    pub(crate) const FOUR: Self = Self(4);
    /// The first that calls leave alone.
    pub(crate) const SIX: Self = Self(6);
    /// The end of the program's stack, which grows down; cannot be set.
    pub(crate) const STACK_END: Self = Self(10);
}

/// One instruction of eBPF (RFC 9669, section 3): opcode, destination and source register, offset,
/// immediate value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) opcode: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// `LDX | MEM | W` and `LDX | MEM | DW`.
const LOAD_WORD: u8 = 0x61;
const LOAD_DOUBLE: u8 = 0x79;
/// `LD | IMM | DW`: 64 bits that are part of the program; takes two instructions.
const SET_DOUBLE: u8 = 0x18;
/// As source register of [`SET_DOUBLE`]: the value is a map's descriptor.
const IS_MAP: u8 = 1;
/// `ALU64 | MOV`, from an immediate value (`K`) and a register (`X`).
const SET: u8 = 0xb7;
const COPY: u8 = 0xbf;
/// `ALU64 | ADD | K`.
const ADD: u8 = 0x07;
/// `JMP | JEQ | K`, `JMP | JNE | K`, `JMP | JNE | X`.
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT: u8 = 0x55;
const JUMP_IF_DIFFERENT: u8 = 0x5d;
/// `JMP | CALL`.
const CALL: u8 = 0x85;
/// `JMP | EXIT`.
const EXIT: u8 = 0x95;

/// Jumps count instructions from the one that follows.
impl Instruction {
    const fn new(opcode: u8, to: Register, from: Register, offset: i16, immediate: i32) -> Self {
        Self {
            opcode,
            registers: from.0 << 4 | to.0,
            offset,
            immediate,
        }
    }

    const fn to(opcode: u8, to: Register, offset: i16, immediate: i32) -> Self {
        Self::new(opcode, to, Register(0), offset, immediate)
    }

    /// `to = *(u32 *)(from + offset)`
    pub(crate) const fn load_word(to: Register, from: Register, offset: i16) -> Self {
        Self::new(LOAD_WORD, to, from, offset, 0)
    }

    /// `to = *(u64 *)(from + offset)`
    pub(crate) const fn load_double(to: Register, from: Register, offset: i16) -> Self {
        Self::new(LOAD_DOUBLE, to, from, offset, 0)
    }

    /// `to = value`
    pub(crate) const fn set(to: Register, value: i32) -> Self {
        Self::to(SET, to, 0, value)
    }

    /// `to = value`, 64 bits.
    pub(crate) const fn set_double(to: Register, value: u64) -> [Self; 2] {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        let low = i32::from_le_bytes([a, b, c, d]);
        let high = i32::from_le_bytes([e, f, g, h]);
        [
            Self::to(SET_DOUBLE, to, 0, low),
            Self::to(0, Register(0), 0, high),
        ]
    }

    /// `to = &map`, a map by its descriptor.
    pub(crate) const fn set_map(to: Register, map: i32) -> [Self; 2] {
        [
            Self::new(SET_DOUBLE, to, Register(IS_MAP), 0, map),
            Self::to(0, Register(0), 0, 0),
        ]
    }

    /// `to = from`
    pub(crate) const fn copy(to: Register, from: Register) -> Self {
        Self::new(COPY, to, from, 0, 0)
    }

    /// `to += value`
    pub(crate) const fn add(to: Register, value: i32) -> Self {
        Self::to(ADD, to, 0, value)
    }

    /// `if (register == value) skip instructions`
    pub(crate) const fn jump_if_equal(register: Register, value: i32, skip: i16) -> Self {
        Self::to(JUMP_IF_EQUAL, register, skip, value)
    }

    /// `if (register != value) skip instructions`
    pub(crate) const fn jump_if_not(register: Register, value: i32, skip: i16) -> Self {
        Self::to(JUMP_IF_NOT, register, skip, value)
    }

    /// `if (one != other) skip instructions`
    pub(crate) const fn jump_if_different(one: Register, other: Register, skip: i16) -> Self {
        Self::new(JUMP_IF_DIFFERENT, one, other, skip, 0)
    }

    /// `RESULT = function(ONE, TWO, …)`, a function of the kernel by its number in `enum bpf_func_id`.
    pub(crate) const fn call(function: i32) -> Self {
        Self::to(CALL, Register(0), 0, function)
    }

    /// `return RESULT`
    pub(crate) const fn exit() -> Self {
        Self::to(EXIT, Register(0), 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_encoded_as_the_kernel_reads_it() {
        let code = |i: Instruction| (i.opcode, i.registers, i.offset, i.immediate);
        let (one, six) = (Register::ONE, Register::SIX);
        assert_eq!(
            code(Instruction::load_word(one, six, 16)),
            (0x61, 0x61, 16, 0)
        );
        assert_eq!(code(Instruction::copy(six, one)), (0xbf, 0x16, 0, 0));
        assert_eq!(code(Instruction::add(one, -8)), (0x07, 0x01, 0, -8));
        assert_eq!(
            code(Instruction::jump_if_equal(six, 2, 3)),
            (0x15, 0x06, 3, 2)
        );
        assert_eq!(
            code(Instruction::jump_if_not(six, 2, 3)),
            (0x55, 0x06, 3, 2)
        );
        assert_eq!(
            code(Instruction::jump_if_different(six, one, 3)),
            (0x5d, 0x16, 3, 0)
        );
        let [low, high] = Instruction::set_double(one, 0x0000_0001_8000_0002);
        assert_eq!(code(low), (0x18, 0x01, 0, i32::MIN + 2));
        assert_eq!(code(high), (0, 0, 0, 1));
        let [map, rest] = Instruction::set_map(one, 7);
        assert_eq!((code(map), code(rest)), ((0x18, 0x11, 0, 7), (0, 0, 0, 0)));
        assert_eq!(size_of::<Instruction>(), 8);
    }
}
