//! The link that attaches the program.

use super::Mode;
use crate::bpf::{Command, Program, call, number_of, open};
use std::io;
use std::os::fd::OwnedFd;

const ATTACH_TYPE_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// A program at an interface. When its last descriptor is closed, even because the process died, the interface
/// is as it was before.
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
                program: number_of(program),
                interface,
                attach_type: ATTACH_TYPE_XDP,
                flags,
            };
            open(Command::LinkCreate, &attributes).map(Self)
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
        let _ = call(Command::LinkDetach, &attributes);
    }
}
