//! Keeps processors from halting while packets must not be late.
//!
//! A processor that has nothing to do halts, and that of a virtual machine is then given to others: waking it
//! takes up to a tenth of a millisecond, and more where the host is busy, on top of every timer and of every
//! packet. So one thread per processor spins, with lower priority than everything else. On physical machines the
//! same is achieved by `idle=poll` or `/dev/cpu_dma_latency`, which virtual machines without a driver for idle
//! states
//! ignore.

use crate::sys::scheduling;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Processors kept awake; dropped, they may sleep again.
#[derive(Debug)]
pub struct Awake {
    is_over: Arc<AtomicBool>,
}

impl Awake {
    /// Keep awake each processor that this process may use; as many as the system allows.
    #[must_use]
    pub fn keep() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = scheduling::allowed_processors().unwrap_or_default();
        for processor in processors {
            let is_over = Arc::clone(&is_over);
            let thread = thread::Builder::new().name(format!("awake-{processor}"));
            // One that cannot be started is done without.
            let _ = thread.spawn(move || stay_awake(processor, &is_over));
        }
        Self { is_over }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        // Nobody waits for threads that everything goes before: they see this when they next run.
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Does nothing if the thread could not be given lower priority than everything else.
fn stay_awake(processor: usize, is_over: &AtomicBool) {
    let goes_last = || -> io::Result<()> {
        scheduling::stay_on(processor)?;
        scheduling::give_way()
    };
    if goes_last().is_err() {
        return;
    }
    // No `spin_loop`: hypervisors take a processor away that only pauses.
    while !is_over.load(Ordering::Relaxed) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    /// Returns nice value and policy of this process's threads that keep processors awake, as the kernel reports them.
    fn threads() -> Vec<[String; 2]> {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let stats =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
        let seen = stats.filter_map(|stat| {
            let (name, rest) = stat.split_once(") ")?;
            // From the third field on, see proc_pid_stat(5).
            let fields: Vec<&str> = rest.split(' ').collect();
            let field = |number: usize| fields.get(number - 3).map(|text| (*text).to_owned());
            name.contains("(awake-").then_some([field(19)?, field(41)?])
        });
        seen.collect()
    }

    /// A thread is reported until the kernel has cleared it up.
    fn wait_for(expected: &[[String; 2]]) {
        let began = Instant::now();
        while threads() != expected {
            assert!(began.elapsed().as_secs() < 60, "{:?}", threads());
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_thread_a_processor_gives_way_to_everything_and_ends_when_it_is_over() {
        let awake = Awake::keep();
        let processors = scheduling::allowed_processors().unwrap().len();
        let going_last = vec![["19".to_owned(), "5".to_owned()]; processors];
        wait_for(&going_last);
        drop(awake);
        wait_for(&[]);
    }
}
