//! Passes snapshots from the forwarding thread to those that request them; the forwarding thread never waits.

use super::{ReallocationSnapshot, Snapshot};
use crate::sys::poll::Waker;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Between the thread that forwards and those that ask.
#[derive(Debug)]
pub struct Exchange {
    is_wanted: AtomicBool,
    waker: Waker,
    latest: Mutex<Latest>,
    is_there: Condvar,
    /// Written by the thread of the loops, so that the thread that forwards has nothing to do with it.
    reallocation: Mutex<Option<ReallocationSnapshot>>,
}

#[derive(Debug, Default)]
struct Latest {
    number: u64,
    snapshot: Option<Snapshot>,
}

impl Exchange {
    /// Nobody asks yet.
    ///
    /// # Errors
    /// Where the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            is_wanted: AtomicBool::new(false),
            waker: Waker::new()?,
            latest: Mutex::new(Latest::default()),
            is_there: Condvar::new(),
            reallocation: Mutex::default(),
        })
    }

    /// Wakes the thread that forwards when somebody asks.
    #[must_use]
    pub const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Returns true if somebody asks; called by the thread that forwards.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Answer. If a reader is just taking the previous answer, this one is dropped and the request is answered
    /// next time.
    pub fn publish(&self, snapshot: Snapshot) {
        if let Ok(mut latest) = self.latest.try_lock() {
            self.waker.reset();
            self.is_wanted.store(false, Ordering::Relaxed);
            latest.number += 1;
            latest.snapshot = Some(snapshot);
            self.is_there.notify_all();
        }
    }

    /// The state of the loops over rates from now on; `None` where there is none.
    pub fn set_reallocation(&self, state: Option<ReallocationSnapshot>) {
        let mut reallocation = self
            .reallocation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *reallocation = state;
    }

    /// Ask, and wait for the answer; `None` where the gateway does not answer in time.
    #[must_use]
    pub fn ask(&self, timeout: Duration) -> Option<Snapshot> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = latest.number;
        self.is_wanted.store(true, Ordering::Relaxed);
        self.waker.wake();
        let (latest, result) = self
            .is_there
            .wait_timeout_while(latest, timeout, |latest| latest.number == seen)
            .unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            return None;
        }
        let reallocation = self
            .reallocation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        latest.snapshot.clone().map(|snapshot| Snapshot {
            reallocation: reallocation.clone(),
            ..snapshot
        })
    }
}
