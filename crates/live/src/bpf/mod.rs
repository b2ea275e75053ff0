//! eBPF: programs are assembled here, without a compiler or an object file, so every instruction can be read;
//! and
//! the `bpf(2)` system call. The modules that write programs attach them.

#![allow(unsafe_code)]

pub(crate) mod filter;
mod instruction;
mod program;

use crate::sys::checked;
pub(crate) use instruction::{Instruction, Register};
pub(crate) use program::{Program, ProgramType};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `enum bpf_cmd`.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(crate) enum Command {
    MapCreate = 0,
    MapUpdate = 2,
    ProgramLoad = 5,
    LinkCreate = 28,
    LinkDetach = 34,
}

/// Calls with the part of `union bpf_attr` that the command reads; the kernel treats the rest as zero.
pub(crate) fn call<T>(command: Command, attributes: &T) -> io::Result<i32> {
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

/// As [`call`], for commands that open a descriptor.
pub(crate) fn open<T>(command: Command, attributes: &T) -> io::Result<OwnedFd> {
    match command {
        Command::MapCreate | Command::ProgramLoad | Command::LinkCreate => {
            let descriptor = call(command, attributes)?;
            // SAFETY: these commands return a descriptor: just opened, and owned by nobody else.
            Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
        }
        Command::MapUpdate | Command::LinkDetach => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// A descriptor, as attributes have it.
pub(crate) fn number_of(descriptor: &impl AsRawFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).unwrap_or(0)
}

/// As the kernel wants addresses.
pub(crate) fn address<T>(pointer: *const T) -> u64 {
    pointer.expose_provenance() as u64
}
