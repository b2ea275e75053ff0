//! Waiting for thousands of descriptors, to the nanosecond (`epoll(7)`).

use super::checked;
use super::poll::PollSet;
use slicewise_units::Duration;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Events taken at a time.
const EVENTS: usize = 256;

/// Events to be reported of a descriptor; errors and the end of the other side's data always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// That there is something to read.
    Read,
    /// That, or that it takes bytes.
    ReadWrite,
}

impl Interest {
    const fn bits(self) -> u32 {
        (match self {
            Self::Read => libc::EPOLLIN,
            Self::ReadWrite => libc::EPOLLIN | libc::EPOLLOUT,
        }) as u32
    }
}

/// A set of descriptors, each with a number of the caller's. A descriptor that is closed leaves it.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// Where the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let descriptor = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: just opened, and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Hear of this descriptor, under this number.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn add(
        &self,
        descriptor: BorrowedFd<'_>,
        number: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, number, interest)
    }

    /// Hear of something else of a descriptor that is in the set.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn change(
        &self,
        descriptor: BorrowedFd<'_>,
        number: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, number, interest)
    }

    fn control(
        &self,
        what: i32,
        descriptor: BorrowedFd<'_>,
        number: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits(),
            u64: number,
        };
        // SAFETY: both descriptors are open; the event is alive, and the kernel only reads it.
        let result = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                what,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        };
        checked(result).map(|_| ())
    }

    /// Wait until something happens or `timeout` has passed; the numbers of the descriptors at which something did. Of
    /// very many, some are returned by the next call.
    ///
    /// # Errors
    /// As `ppoll(2)` and `epoll_wait(2)`; a signal is not an error.
    pub fn wait(&self, timeout: Duration) -> io::Result<Vec<u64>> {
        if timeout > Duration::ZERO {
            // `epoll_wait` takes milliseconds.
            let mut poll = PollSet::new();
            poll.add(self.0.as_fd());
            poll.wait(timeout)?;
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: the events are alive, and as many as stated.
        let result = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                i32::try_from(EVENTS).unwrap_or(1),
                0,
            )
        };
        match checked(result) {
            Ok(count) => {
                let count = usize::try_from(count).unwrap_or(0);
                let happened = events.iter().take(count);
                Ok(happened.map(|event| event.u64).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_what_happened_and_was_asked_for_is_told() {
        let epoll = Epoll::new().unwrap();
        let (mut a, b) = UnixStream::pair().unwrap();
        let (_other, quiet) = UnixStream::pair().unwrap();
        epoll.add(b.as_fd(), 7, Interest::Read).unwrap();
        epoll.add(quiet.as_fd(), 8, Interest::Read).unwrap();
        assert_eq!(epoll.wait(Duration::from_micros(50)).unwrap(), []);
        a.write_all(&[1]).unwrap();
        assert_eq!(epoll.wait(Duration::from_secs(5)).unwrap(), [7]);
        epoll.change(quiet.as_fd(), 9, Interest::ReadWrite).unwrap();
        let mut both = epoll.wait(Duration::ZERO).unwrap();
        both.sort_unstable();
        assert_eq!(both, [7, 9]);
        drop(b);
        assert_eq!(epoll.wait(Duration::ZERO).unwrap(), [9]);
    }
}
