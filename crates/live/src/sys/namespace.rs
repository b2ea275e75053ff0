//! Network namespaces.

use super::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// Do something in a network namespace made by `ip netns add`, and come back. Sockets opened there stay
/// there.
///
/// # Errors
/// Where there is no such namespace, or without `CAP_SYS_ADMIN`.
pub fn within<T>(name: &str, work: impl FnOnce() -> T) -> io::Result<T> {
    let here = File::open("/proc/thread-self/ns/net")?;
    let there = open(name)?;
    enter(&there)?;
    let result = work();
    enter(&here)?;
    Ok(result)
}

/// Open sockets in a network namespace made by `ip netns add`, or, without a name, here.
///
/// On a thread of its own: if returning failed, no other work would remain in the wrong namespace.
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

/// Have a command run in a network namespace made by `ip netns add`, or, without a name, here, and end with its starter: it is killed when
/// the thread that starts it ends, for any reason. It has its own process group, so that Ctrl-C in the terminal
/// reaches the process that started it, and not the command.
///
/// # Errors
/// Where there is no such namespace. Without `CAP_SYS_ADMIN` it is starting the command that fails.
pub fn enter_before_exec(command: &mut Command, namespace: Option<&str>) -> io::Result<()> {
    let there = namespace.map(open).transpose()?;
    let parent = std::process::id();
    let prepare = move || {
        there.as_ref().map_or(Ok(()), enter)?;
        // SAFETY: takes no pointers.
        checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // SAFETY: takes nothing and cannot fail.
        let parent_now = unsafe { libc::getppid() };
        if u32::try_from(parent_now) == Ok(parent) {
            Ok(())
        } else {
            // It died before the kernel was asked to signal that.
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: between fork and exec, `prepare` makes three system calls that are safe there, and
    // neither allocates nor locks: errors are plain numbers, and the descriptor is open already.
    unsafe { command.pre_exec(prepare) };
    command.process_group(0);
    Ok(())
}

/// As every file of std, closed on exec.
fn open(name: &str) -> io::Result<File> {
    File::open(format!("/run/netns/{name}"))
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: takes no pointers; only this thread moves.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}
