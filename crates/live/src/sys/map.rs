//! Memory that is shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

/// A mapping of memory, unmapped when dropped. The kernel may write to it at any time, so it is
/// accessed through pointers only; code that makes a slice of it must state why nothing else writes there.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    length: usize,
}

/// Smallest page of any processor.
const PAGE_BYTES: usize = 4096;

// SAFETY: a mapping belongs to the process, not to a thread; `Map` has no interior state.
unsafe impl Send for Map {}
// SAFETY: of a shared mapping only the address can be had.
unsafe impl Sync for Map {}

impl Map {
    /// Zeroed memory of this process, all of it present.
    ///
    /// # Errors
    /// Where there is not so much memory.
    pub fn anonymous(length: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let map = Self::new(length, flags, -1, 0)?;
        map.touch_all();
        Ok(map)
    }

    /// Write to each page: the kernel then provides it. On all processors, as that takes longer than anything else at the start.
    fn touch_all(&self) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = self.length.div_ceil(threads).next_multiple_of(PAGE_BYTES);
        std::thread::scope(|scope| {
            for first in (0..self.length).step_by(part) {
                let last = (first + part).min(self.length);
                scope.spawn(move || {
                    for offset in (first..last).step_by(PAGE_BYTES) {
                        // SAFETY: within the mapping, which nobody else has yet, and whose bytes are zero.
                        unsafe { self.at(offset, 1).write_volatile(0) };
                    }
                });
            }
        });
    }

    /// A ring of a socket, at `offset` in what the socket has to map.
    ///
    /// # Errors
    /// Where the socket has no such ring.
    pub fn of_socket(socket: BorrowedFd<'_>, length: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::new(length, flags, socket.as_raw_fd(), offset)
    }

    fn new(length: usize, flags: i32, descriptor: i32, offset: i64) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                descriptor,
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// Bytes mapped.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns true if nothing is mapped.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address of byte `offset`, from which `length` bytes must be in the mapping.
    ///
    /// # Panics
    /// If they are not: an error of the caller, never caused by a packet.
    #[inline]
    #[must_use]
    pub fn at(&self, offset: usize, length: usize) -> NonNull<u8> {
        assert!(
            offset <= self.length && length <= self.length - offset,
            "{length} bytes at {offset} of a mapping of {}",
            self.length
        );
        // SAFETY: just checked to be within the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no slice of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
