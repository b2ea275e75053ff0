//! Classic BPF programs and an assembler for them.
//!
//! The machine: McCanne and Jacobson, *The BSD Packet Filter* (USENIX 1993), with the extensions of
//! Linux (`linux/filter.h`). Jumps go forward only, and a conditional one at most 255 instructions
//! far; the assembler puts an unconditional jump, which goes any distance, where that is too short.

use std::fmt;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation, with the size and kind of its operand.
    pub code: u16,
    /// Instructions skipped where a condition holds.
    pub jump_true: u8,
    /// Instructions skipped where it does not.
    pub jump_false: u8,
    /// The operand.
    pub operand: u32,
}

/// A program; its [`Display`](fmt::Display) is what `tc` takes as `bytecode`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

impl Program {
    /// The instructions in order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.len())?;
        for i in &self.0 {
            let (t, e) = (i.jump_true, i.jump_false);
            write!(f, ",{} {t} {e} {}", i.code, i.operand)?;
        }
        Ok(())
    }
}

/// Operations without a jump, as `linux/bpf_common.h` puts their codes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Op {
    LoadByte = 0x30,
    LoadHalf = 0x28,
    LoadByteAtX = 0x50,
    LoadHalfAtX = 0x48,
    LoadWordAtX = 0x40,
    LoadImmediate = 0x00,
    LoadLength = 0x80,
    LoadScratch = 0x60,
    LoadXImmediate = 0x01,
    LoadXScratch = 0x61,
    Store = 0x02,
    StoreX = 0x03,
    Add = 0x04,
    AddX = 0x0c,
    SubtractX = 0x1c,
    And = 0x54,
    ShiftLeft = 0x64,
    ShiftRight = 0x74,
    AToX = 0x07,
    Return = 0x06,
}

/// Conditions of a jump: on the accumulator, against the operand or X.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Test {
    Equal = 0x15,
    Greater = 0x25,
    AtLeast = 0x35,
    AnyBit = 0x45,
    AtLeastX = 0x3d,
}

/// An unconditional jump.
const JUMP: u16 = 0x05;

/// A place in a program that is placed once, after every jump to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

#[derive(Debug, Clone, Copy)]
enum Step {
    Plain(Op, u32),
    Branch {
        test: Test,
        operand: u32,
        then: Label,
        otherwise: Label,
    },
    Jump(Label),
}

#[derive(Debug, Default)]
pub(super) struct Assembler {
    steps: Vec<Step>,
    /// The step each label stands before; the program's end while it is not placed.
    labels: Vec<usize>,
}

/// How far a conditional jump reaches.
const REACH: usize = u8::MAX as usize;

impl Assembler {
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(usize::MAX);
        Label(self.labels.len() - 1)
    }

    pub(super) fn place(&mut self, label: Label) {
        if let Some(place) = self.labels.get_mut(label.0) {
            debug_assert_eq!(*place, usize::MAX, "a label is placed once");
            *place = self.steps.len();
        }
    }

    pub(super) fn op(&mut self, op: Op, operand: u32) {
        self.steps.push(Step::Plain(op, operand));
    }

    pub(super) fn branch(&mut self, test: Test, operand: u32, then: Label, otherwise: Label) {
        self.steps.push(Step::Branch {
            test,
            operand,
            then,
            otherwise,
        });
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.steps.push(Step::Jump(to));
    }

    /// The step that a label stands before.
    fn step_at(&self, label: Label) -> usize {
        let end = self.steps.len();
        self.labels.get(label.0).map_or(end, |&step| step.min(end))
    }

    /// The finished program.
    pub(super) fn finish(&self) -> Program {
        let places = self.layout();
        let distance = |from: usize, label: Label| {
            let to = places.get(self.step_at(label)).copied().unwrap_or(from);
            debug_assert!(to > from, "jumps go forward");
            to.saturating_sub(from + 1)
        };
        let jump = |from: usize, label: Label| Instruction {
            code: JUMP,
            jump_true: 0,
            jump_false: 0,
            operand: u32::try_from(distance(from, label)).unwrap_or(u32::MAX),
        };
        let mut program = Vec::new();
        for (&step, pair) in self.steps.iter().zip(places.windows(2)) {
            let &[at, next] = pair else { continue };
            match step {
                Step::Plain(op, operand) => program.push(Instruction {
                    code: op as u16,
                    jump_true: 0,
                    jump_false: 0,
                    operand,
                }),
                Step::Jump(label) if next > at => program.push(jump(at, label)),
                Step::Jump(_) => {}
                Step::Branch {
                    test,
                    operand,
                    then,
                    otherwise,
                } => {
                    // What is out of reach is reached by one of the jumps right behind.
                    let mut stubs = Vec::new();
                    let mut reach = |label| {
                        let far = distance(at, label);
                        u8::try_from(far).unwrap_or_else(|_| {
                            let stub = stubs.len();
                            stubs.push(jump(at + 1 + stub, label));
                            u8::try_from(stub).unwrap_or(0)
                        })
                    };
                    let (jump_true, jump_false) = (reach(then), reach(otherwise));
                    program.push(Instruction {
                        code: test as u16,
                        jump_true,
                        jump_false,
                        operand,
                    });
                    debug_assert_eq!(stubs.len(), next - at - 1, "as many as laid out");
                    program.append(&mut stubs);
                }
            }
        }
        Program(program)
    }

    /// Where each step begins, and where the program ends. Steps only grow from round to round, so
    /// there is a last one.
    fn layout(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.steps.iter().map(|_| 1).collect();
        for (index, (step, size)) in self.steps.iter().zip(&mut sizes).enumerate() {
            if matches!(step, Step::Jump(label) if self.step_at(*label) == index + 1) {
                *size = 0;
            }
        }
        loop {
            let places: Vec<usize> = std::iter::once(0)
                .chain(sizes.iter().scan(0, |sum, size| {
                    *sum += size;
                    Some(*sum)
                }))
                .collect();
            let is_far = |at: usize, label: Label| {
                let to = places.get(self.step_at(label)).copied().unwrap_or(at);
                to.saturating_sub(at + 1) > REACH
            };
            let mut changed = false;
            for ((step, size), &at) in self.steps.iter().zip(&mut sizes).zip(&places) {
                if let Step::Branch {
                    then, otherwise, ..
                } = *step
                {
                    let needed =
                        1 + usize::from(is_far(at, then)) + usize::from(is_far(at, otherwise));
                    changed |= needed > *size;
                    *size = needed.max(*size);
                }
            }
            if !changed {
                return places;
            }
        }
    }
}
