//! The map by which the program finds the sockets.

use crate::bpf::{Command, address, call, number_of, open};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

const MAP_TYPE_XSKMAP: u32 = 17;

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
        open(Command::MapCreate, &attributes).map(Self)
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
        call(Command::MapUpdate, &attributes).map(|_| ())
    }

    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}
