//! How the kernel schedules this thread.

use super::checked;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Among the other real-time threads of a system, in the middle.
const PRIORITY: i32 = 50;
/// Below it.
const PROMPT_PRIORITY: i32 = 10;

/// Run this thread before every ordinary one (`SCHED_FIFO`). Such a thread must sleep now and then.
///
/// # Errors
/// Without `CAP_SYS_NICE`.
pub fn become_real_time() -> io::Result<()> {
    set_policy(libc::SCHED_FIFO, PRIORITY)
}

/// If this thread is real-time, which it may have inherited, return it to ordinary scheduling.
///
/// # Errors
/// As `sched_setscheduler(2)`.
pub fn become_ordinary() -> io::Result<()> {
    // SAFETY: takes no pointers.
    let policy = checked(unsafe { libc::sched_getscheduler(0) })? & !libc::SCHED_RESET_ON_FORK;
    if policy == libc::SCHED_FIFO || policy == libc::SCHED_RR {
        set_policy(libc::SCHED_OTHER, 0)?;
    }
    Ok(())
}

fn set_policy(policy: libc::c_int, sched_priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the structure is alive, and the kernel only reads it.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    checked(result).map(|_| ())
}

/// Have a command run before every ordinary process, round robin with others like it (`SCHED_RR`), but after
/// threads that [`become_real_time`]. Where that is not allowed, it runs as any other. It must sleep now and
/// then.
pub fn be_prompt_before_exec(command: &mut Command) {
    let prepare = || {
        let _ = set_policy(libc::SCHED_RR, PROMPT_PRIORITY);
        Ok(())
    };
    // SAFETY: between fork and exec, `prepare` makes one system call that is safe there.
    unsafe { command.pre_exec(prepare) };
}

/// Have timers of this thread go off when they are due, not up to 50 us later to save wake-ups.
pub fn without_timer_slack() {
    // SAFETY: takes no pointers. 1 ns is the least (0 means the default). It cannot fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}

/// The processors that this thread may run on, by number.
///
/// # Errors
/// Where there are more than 1,024.
pub fn allowed_processors() -> io::Result<Vec<usize>> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the kernel writes at most the size of the set, of which any bits are valid.
    let (result, set) = unsafe {
        let result = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr());
        (result, set.assume_init())
    };
    checked(result)?;
    let numbers = 0..8 * size_of::<libc::cpu_set_t>();
    // SAFETY: the numbers are of bits that the set has.
    Ok(numbers
        .filter(|&number| unsafe { libc::CPU_ISSET(number, &set) })
        .collect())
}

/// Keep this thread on one of [`allowed_processors`].
///
/// # Errors
/// Where it is none of them.
pub fn stay_on(processor: usize) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    if processor >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a set of zeros is an empty one; the number is of a bit that it has.
    let result = unsafe {
        libc::CPU_SET(processor, set.assume_init_mut());
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set.as_ptr())
    };
    checked(result).map(|_| ())
}

/// Let every other thread go before this one, at once (`SCHED_IDLE`); its time is counted as that of niced threads.
///
/// # Errors
/// Where the system forbids it.
pub fn give_way() -> io::Result<()> {
    set_policy(libc::SCHED_IDLE, 0)?;
    // SAFETY: takes no pointers.
    checked(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) }).map(|_| ())
}

/// The nicest that a thread can be.
const NICEST: i32 = 19;

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_thread_stays_where_it_may_run_and_nowhere_else() {
        let allowed = allowed_processors().unwrap();
        let last = *allowed.last().unwrap();
        let stays = thread::spawn(move || {
            stay_on(last).unwrap();
            give_way().unwrap();
            allowed_processors().unwrap()
        });
        assert_eq!(stays.join().unwrap(), [last]);
        assert_eq!(allowed_processors().unwrap(), allowed);
        assert!(stay_on(usize::MAX).is_err());
    }
}
