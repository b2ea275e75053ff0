//! Messages to the controller: the newest acknowledgement and the newest counters, for the thread that sends them.

use slicewise_api::{Acknowledgement, CounterReport};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Events of a report: more are not taken by the controller.
const MOST_EVENTS: usize = 100;

/// Between the thread that decides and the one that tells.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    is_there: Condvar,
}

/// Messages that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    pub(crate) acknowledgement: Option<Acknowledgement>,
    pub(crate) counters: Option<CounterReport>,
}

impl Mailbox {
    /// Tell this, in place of what was not told yet.
    pub(crate) fn acknowledge(&self, acknowledgement: Acknowledgement) {
        self.change(|letters| letters.acknowledgement = Some(acknowledgement));
    }

    /// This could not be told: try again, unless there is something newer.
    pub(crate) fn put_back(&self, acknowledgement: Acknowledgement) {
        self.change(|letters| {
            letters.acknowledgement.get_or_insert(acknowledgement);
        });
    }

    /// Tell this, in place of what was not told yet; its events are told, too, as far as there is room.
    pub(crate) fn count(&self, mut counters: CounterReport) {
        self.change(|letters| {
            let untold = letters.counters.take().into_iter();
            let mut events: Vec<_> = untold.flat_map(|report| report.events).collect();
            events.append(&mut counters.events);
            events.truncate(MOST_EVENTS);
            letters.counters = Some(CounterReport { events, ..counters });
        });
    }

    fn change(&self, change: impl FnOnce(&mut Letters)) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut letters);
        self.is_there.notify_all();
    }

    /// Wait for something to tell, for at most `timeout`.
    pub(crate) fn take(&self, timeout: Duration) -> Letters {
        let letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty =
            |letters: &mut Letters| letters.acknowledgement.is_none() && letters.counters.is_none();
        let waited = self.is_there.wait_timeout_while(letters, timeout, is_empty);
        let (mut letters, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut letters)
    }
}
