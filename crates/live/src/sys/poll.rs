//! Waiting for descriptors or for time.

use super::checked;
use slicewise_units::Duration;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Descriptors and time to wait for.
pub struct PollSet {
    entries: Vec<libc::pollfd>,
}

impl std::fmt::Debug for PollSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PollSet")
            .field("entries", &self.entries.len())
            .finish()
    }
}

impl PollSet {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: Vec::with_capacity(8),
        }
    }

    /// Wait for nothing.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Wait for `descriptor` to be readable, too; errors of it always wake.
    pub fn add(&mut self, descriptor: BorrowedFd<'_>) {
        self.push(descriptor, libc::POLLIN);
    }

    /// Wait until `descriptor` takes bytes, too.
    pub fn add_writable(&mut self, descriptor: BorrowedFd<'_>) {
        self.push(descriptor, libc::POLLOUT);
    }

    fn push(&mut self, descriptor: BorrowedFd<'_>, events: libc::c_short) {
        self.entries.push(libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events,
            revents: 0,
        });
    }

    /// Descriptors waited for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if only time is waited for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sleep until something happens or `timeout` has passed.
    ///
    /// # Errors
    /// As `ppoll(2)`; a signal is not an error.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        let nanos = timeout.nanos();
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(nanos / 1_000_000_000).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        // SAFETY: the entries are alive and as many as stated; no signal mask is given.
        let result = unsafe {
            libc::ppoll(
                self.entries.as_mut_ptr(),
                libc::nfds_t::try_from(self.entries.len()).unwrap_or(0),
                &raw const timeout,
                std::ptr::null(),
            )
        };
        match checked(result) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns true if something happened at the descriptor added as number `index`.
    #[must_use]
    pub fn happened(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|e| e.revents != 0)
    }

    /// Returns true if the descriptor added as number `index` is in error.
    #[must_use]
    pub fn failed(&self, index: usize) -> bool {
        let errors = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        self.entries
            .get(index)
            .is_some_and(|e| e.revents & errors != 0)
    }
}

impl Default for PollSet {
    fn default() -> Self {
        Self::new()
    }
}

/// Wakes a thread that sleeps in [`PollSet::wait`].
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// One that has not been used.
    ///
    /// # Errors
    /// Where the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let descriptor =
            checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: just opened, and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Wake the thread that waits, or that waits next.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes that are alive. Where the counter is full somebody is woken anyway.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Reset after waking, so that the next wait sleeps again.
    pub fn reset(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight bytes that are alive. Where nobody woke it, there is nothing to read.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    /// Returns the descriptor to wait for.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }
}
