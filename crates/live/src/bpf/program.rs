//! A program in the kernel.

use super::{Command, Instruction, address, open};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// `enum bpf_prog_type`: what a program may do, and what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ProgramType {
    /// `BPF_PROG_TYPE_SCHED_CLS`: at traffic control.
    Classifier = 3,
    /// `BPF_PROG_TYPE_XDP`: at the driver.
    Xdp = 6,
}

const ATTACH_TYPE_XDP: u32 = 37;
/// The program can take frames in several pieces.
const F_XDP_HAS_FRAGS: u32 = 1 << 5;

/// A program that the kernel has checked.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    /// Have the kernel check and take a program.
    pub(crate) fn load(kind: ProgramType, instructions: &[Instruction]) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            count: u32,
            instructions: u64,
            licence: u64,
            log_level: u32,
            log_bytes: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
            name: [u8; 16],
            interface: u32,
            attach_type: u32,
        }
        let (flags, attach_type) = match kind {
            ProgramType::Classifier => (0, 0),
            ProgramType::Xdp => (F_XDP_HAS_FRAGS, ATTACH_TYPE_XDP),
        };
        // No function of the kernel that is called here is for programs under the GPL only.
        let licence = c"Apache-2.0";
        let mut attributes = Attributes {
            kind: kind as u32,
            count: u32::try_from(instructions.len()).unwrap_or(0),
            instructions: address(instructions.as_ptr()),
            licence: address(licence.as_ptr()),
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags,
            name: *b"slicewise\0\0\0\0\0\0\0",
            interface: 0,
            attach_type,
        };
        let loaded = open(Command::ProgramLoad, &attributes).or_else(|error| {
            // Kernels before 5.18 know no frames in several pieces.
            attributes.flags = 0;
            match error.raw_os_error() {
                Some(libc::EINVAL) if flags != 0 => open(Command::ProgramLoad, &attributes),
                _ => Err(error),
            }
        });
        loaded.map(Self)
    }
}

impl AsRawFd for Program {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
