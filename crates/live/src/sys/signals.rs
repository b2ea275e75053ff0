//! Signals, read like messages.

use super::checked;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A signal that the gateway acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT or SIGTERM.
    Stop,
    /// SIGHUP.
    Reload,
}

/// Ask a process to end (SIGINT).
///
/// # Errors
/// If there is no process with this number, or it belongs to another user.
pub fn interrupt(pid: u32) -> io::Result<()> {
    send(pid, libc::SIGINT)
}

/// Ask a process to read its configuration again (SIGHUP).
///
/// # Errors
/// As [`interrupt`].
pub fn reload(pid: u32) -> io::Result<()> {
    send(pid, libc::SIGHUP)
}

/// End a process at once (SIGKILL).
///
/// # Errors
/// As [`interrupt`].
pub fn kill(pid: u32) -> io::Result<()> {
    send(pid, libc::SIGKILL)
}

fn send(pid: u32, signal: libc::c_int) -> io::Result<()> {
    // 0 and negative numbers mean groups of processes.
    let pid = libc::pid_t::try_from(pid).ok().filter(|&pid| pid > 0);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: takes no pointers.
    checked(unsafe { libc::kill(pid, signal) }).map(|_| ())
}

/// Writing to a pipe or a connection that nobody reads returns an error and does not end the process.
pub fn ignore_broken_pipes() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// SIGINT, SIGTERM and SIGHUP, as messages instead of interruptions.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// From here on the three signals interrupt neither this thread nor those it starts.
    ///
    /// # Errors
    /// Where the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `sigemptyset` makes the set valid before anything else uses it; the pointers
        // are to live memory of the right type.
        let descriptor = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        // SAFETY: just opened, and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(checked(descriptor)?) }))
    }

    /// The next signal that has come, if any.
    #[must_use]
    pub fn next(&self) -> Option<Signal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let length = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `length` bytes, which `info` has; any bits are valid.
        let (read, info) = unsafe {
            let read = libc::read(self.0.as_raw_fd(), info.as_mut_ptr().cast(), length);
            (read, info.assume_init())
        };
        if usize::try_from(read).ok()? != length {
            return None;
        }
        match i32::try_from(info.ssi_signo).ok()? {
            libc::SIGHUP => Some(Signal::Reload),
            _ => Some(Signal::Stop),
        }
    }

    /// Returns the descriptor to wait for.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
