//! Network namespaces.

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;

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

/// Open sockets in a network namespace made by `ip netns add`, or, without a name, here.
///
/// On a thread of its own: if the way back were barred, no other work would be left in the wrong
/// namespace.
///
/// # Errors
/// Where there is no such namespace, without `CAP_SYS_ADMIN`, and those of `open`.
pub fn open_in<T: Send>(
    name: Option<&str>,
    open: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(name) = name else {
        return open();
    };
    let opened = thread::scope(|scope| scope.spawn(|| within(name, open)).join());
    match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => Err(io::Error::new(
            error.kind(),
            format!("network namespace `{name}`: {error}"),
        )),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: takes no pointers; only this thread moves.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}
