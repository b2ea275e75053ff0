//! How the kernel schedules the thread that forwards.

use super::checked;
use std::io;

/// Among the other real-time threads of a system, in the middle.
const PRIORITY: i32 = 50;

/// Run this thread before every ordinary one (`SCHED_FIFO`). Such a thread must sleep now and then.
///
/// # Errors
/// Without `CAP_SYS_NICE`.
pub fn become_real_time() -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: PRIORITY,
    };
    // SAFETY: the structure is alive, and the kernel only reads it.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    checked(result).map(|_| ())
}

/// Have timers of this thread go off when they are due, not up to 50 us later to save wake-ups.
pub fn without_timer_slack() {
    // SAFETY: takes no pointers. 1 ns is the least (0 means the default). It cannot fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}
