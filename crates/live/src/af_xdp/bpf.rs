//! The `bpf(2)` system call: a map of sockets, a program, and the link that attaches it.

use super::Mode;
use super::program::Instruction;
use crate::sys::checked;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `enum bpf_cmd`.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapUpdate = 2,
    ProgramLoad = 5,
    LinkCreate = 28,
    LinkDetach = 34,
}

const MAP_TYPE_XSKMAP: u32 = 17;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
/// The program can take frames in several pieces.
const F_XDP_HAS_FRAGS: u32 = 1 << 5;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// Calls with the part of `union bpf_attr` that the command reads; the kernel takes what is beyond it as
/// zero.
fn bpf<T>(command: Command, attributes: &T) -> io::Result<i32> {
    // SAFETY: `attributes` is alive and of the length given; pointers in it are to memory that the
    // callers below keep alive over the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    checked(i32::try_from(result).unwrap_or(-1))
}

fn owned(descriptor: i32) -> OwnedFd {
    // SAFETY: just opened by the kernel, and owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn number_of(descriptor: &impl AsRawFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).unwrap_or(0)
}

/// From receive queues to sockets.
#[derive(Debug)]
pub(super) struct XskMap(OwnedFd);

impl XskMap {
    pub(super) fn new(queues: u32) -> io::Result<Self> {
        #[repr(C)]
        struct Attributes {
            kind: u32,
            key_bytes: u32,
            value_bytes: u32,
            entries: u32,
        }
        let attributes = Attributes {
            kind: MAP_TYPE_XSKMAP,
            key_bytes: 4,
            value_bytes: 4,
            entries: queues,
        };
        bpf(Command::MapCreate, &attributes).map(|map| Self(owned(map)))
    }

    pub(super) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        #[repr(C)]
        struct Attributes {
            map: u32,
            padding: u32,
            key: u64,
            value: u64,
            flags: u64,
        }
        let value = number_of(&socket);
        let attributes = Attributes {
            map: number_of(&self.0),
            padding: 0,
            key: address(&raw const queue),
            value: address(&raw const value),
            flags: 0,
        };
        bpf(Command::MapUpdate, &attributes).map(|_| ())
    }

    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// A program that the kernel has checked.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    pub(super) fn load(instructions: &[Instruction]) -> io::Result<Self> {
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
        let licence = c"Apache-2.0";
        let mut attributes = Attributes {
            kind: PROGRAM_TYPE_XDP,
            count: u32::try_from(instructions.len()).unwrap_or(0),
            instructions: address(instructions.as_ptr()),
            licence: address(licence.as_ptr()),
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags: F_XDP_HAS_FRAGS,
            name: *b"slicewise\0\0\0\0\0\0\0",
            interface: 0,
            attach_type: ATTACH_TYPE_XDP,
        };
        let loaded = bpf(Command::ProgramLoad, &attributes).or_else(|error| {
            // Kernels before 5.18 know no frames in several pieces.
            attributes.flags = 0;
            match error.raw_os_error() {
                Some(libc::EINVAL) => bpf(Command::ProgramLoad, &attributes),
                _ => Err(error),
            }
        });
        loaded.map(|program| Self(owned(program)))
    }
}

/// A program at an interface. When the last descriptor of it is closed, be it because the process
/// died, the interface is as it was.
#[derive(Debug)]
pub(super) struct Link(OwnedFd);

impl Link {
    /// In the interface's driver, or else behind it.
    pub(super) fn attach(program: &Program, interface: u32) -> io::Result<(Self, Mode)> {
        #[repr(C)]
        struct Attributes {
            program: u32,
            interface: u32,
            attach_type: u32,
            flags: u32,
        }
        let attach = |flags| {
            let attributes = Attributes {
                program: number_of(&program.0),
                interface,
                attach_type: ATTACH_TYPE_XDP,
                flags,
            };
            bpf(Command::LinkCreate, &attributes).map(|link| Self(owned(link)))
        };
        match attach(XDP_FLAGS_DRV_MODE) {
            Ok(link) => Ok((link, Mode::Native)),
            // Somebody else's program is there: two cannot be.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Err(error),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
            Err(_) => attach(XDP_FLAGS_SKB_MODE).map(|link| (link, Mode::Generic)),
        }
    }

    /// Take the program away now.
    pub(super) fn detach(&self) {
        #[repr(C)]
        struct Attributes {
            link: u32,
        }
        let attributes = Attributes {
            link: number_of(&self.0),
        };
        // Where the interface has gone it is detached already.
        let _ = bpf(Command::LinkDetach, &attributes);
    }
}

/// As the kernel wants addresses.
fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}
