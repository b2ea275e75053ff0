//! Network namespaces.

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Do something in a network namespace made by `ip netns add`, and come back. Sockets opened there stay
/// there.
///
/// # Errors
/// Where there is no such namespace, or without `CAP_SYS_ADMIN`.
pub fn within<T>(name: &str, work: impl FnOnce() -> T) -> io::Result<T> {
    let here = File::open("/proc/thread-self/ns/net")?;
    let there = File::open(format!("/run/netns/{name}"))?;
    enter(&there)?;
    let result = work();
    enter(&here)?;
    Ok(result)
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: takes no pointers; only this thread moves.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}
