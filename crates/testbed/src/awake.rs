//! Keeps the processors from sleeping while a run is measured.
//!
//! A processor that has nothing to do halts, and that of a virtual machine is then given to others: waking it
//! takes up to a tenth of a millisecond, and more where the host is busy, on top of every timer and of every
//! packet. So a thread a processor spins, before which everything else goes. The same is done to physical
//! machines by `idle=poll` or `/dev/cpu_dma_latency`, which virtual machines without a driver for idle states
//! do not heed.

use slicewise_live::sys::scheduling;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Processors kept awake; dropped, they may sleep again.
pub(crate) struct Awake {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Keep awake each processor that this process may use; as many as the system allows.
    pub(crate) fn keep() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = scheduling::allowed_processors().unwrap_or_default();
        let threads = processors.into_iter().filter_map(|processor| {
            let is_over = Arc::clone(&is_over);
            let thread = thread::Builder::new().name(format!("awake-{processor}"));
            thread.spawn(move || stay_awake(processor, &is_over)).ok()
        });
        Self {
            threads: threads.collect(),
            is_over,
        }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

/// Does nothing where everything else could not go before it.
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

    /// What the kernel tells of this process's threads that keep processors awake: nice value, policy.
    fn threads() -> Vec<[String; 2]> {
        let tasks = fs::read_dir("/proc/self/task").unwrap();
        let stats =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
        let told = stats.filter_map(|stat| {
            let (name, rest) = stat.split_once(") ")?;
            // From the third field on, see proc_pid_stat(5).
            let fields: Vec<&str> = rest.split(' ').collect();
            let field = |number: usize| fields.get(number - 3).map(|text| (*text).to_owned());
            name.contains("(awake-").then_some([field(19)?, field(41)?])
        });
        told.collect()
    }

    /// A thread is told of as long as the kernel clears it up.
    fn wait_for(expected: &[[String; 2]]) {
        let began = Instant::now();
        while threads() != expected {
            assert!(began.elapsed().as_secs() < 20, "{:?}", threads());
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_thread_a_processor_gives_way_to_everything_and_ends_with_the_run() {
        let awake = Awake::keep();
        let processors = scheduling::allowed_processors().unwrap().len();
        let going_last = vec![["19".to_owned(), "5".to_owned()]; processors];
        wait_for(&going_last);
        drop(awake);
        wait_for(&[]);
    }
}
