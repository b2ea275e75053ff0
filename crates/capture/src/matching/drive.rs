//! Feeds a matcher from two sources in time order.

use super::matcher::{MatchParams, Matcher, align_sent};
use super::observer::MatchObserver;
use crate::Sighting;

/// Match everything two sources yield, to the end of both.
///
/// A source appends sightings to the given batch, nearly in time order, and returns `false` when there
/// are no more; it may block, and should not return `true` without a sighting. The sending point is fed
/// a fiftieth of the time-out ahead of the receiving point, so that clocks that disagree by less do not
/// change the order of arrival. Batch sizes do not affect the result.
pub fn drive<O: MatchObserver>(
    matcher: &mut Matcher,
    sent: impl FnMut(&mut Vec<Sighting>) -> bool,
    received: impl FnMut(&mut Vec<Sighting>) -> bool,
    observer: &mut O,
) {
    let params = *matcher.params();
    let steps = Steps::new(&params);
    let mut sent = Feed::new(sent);
    let mut received = Feed::new(received);
    let mut advanced = None;
    loop {
        sent.fill();
        received.fill();
        let sent_ns = sent.head_ns(&params, align_sent_time);
        let received_ns = received.head_ns(&params, align_received_time);
        let (horizon_ns, end_ns) = match (sent_ns, received_ns) {
            (None, None) => break,
            (Some(sent_ns), None) => (sent_ns, i64::MAX),
            (None, Some(received_ns)) => (received_ns, steps.end_of(received_ns)),
            (Some(sent_ns), Some(received_ns)) => {
                (sent_ns.min(received_ns), steps.end_of(received_ns))
            }
        };
        let step = steps.end_of(horizon_ns);
        if advanced != Some(step) {
            matcher.advance(horizon_ns, observer);
            advanced = Some(step);
        }
        let sent_until = end_ns.saturating_add(steps.lead_ns);
        match sent_ns {
            // When the other side is exhausted, whatever the time.
            Some(sent_ns) if received_ns.is_none() || sent_ns < sent_until => {
                let until = sent_until.min(steps.end_of(sent_ns));
                let run = sent.run(|sighting| align_sent(sighting.time_ns) < until);
                matcher.on_sent_batch(run, observer);
            }
            _ => {
                let run = received.run(|one| params.align_received(one.time_ns) < end_ns);
                matcher.on_received_batch(run, observer);
            }
        }
    }
    matcher.finish(observer);
}

/// Time grid on which the sides take turns: long enough for runs of packets, short compared with the
/// time-out.
#[derive(Debug, Clone, Copy)]
struct Steps {
    step_ns: i64,
    lead_ns: i64,
}

impl Steps {
    fn new(params: &MatchParams) -> Self {
        let lead_ns = i64::try_from(params.slack_ns()).unwrap_or(i64::MAX);
        Self {
            step_ns: (lead_ns / STEPS_OF_LEAD).max(1),
            lead_ns,
        }
    }

    /// End of the step that holds `time_ns`.
    fn end_of(&self, time_ns: i64) -> i64 {
        let step = time_ns.div_euclid(self.step_ns).saturating_add(1);
        step.saturating_mul(self.step_ns)
    }
}

/// One source and the sightings pulled from it but not yet fed.
struct Feed<F> {
    pull: F,
    batch: Vec<Sighting>,
    at: usize,
    is_open: bool,
}

impl<F: FnMut(&mut Vec<Sighting>) -> bool> Feed<F> {
    const fn new(pull: F) -> Self {
        Self {
            pull,
            batch: Vec::new(),
            at: 0,
            is_open: true,
        }
    }

    /// Looks two ahead where there are two.
    fn fill(&mut self) {
        while self.is_open && self.batch.len() - self.at < 2 {
            self.batch.drain(..self.at);
            self.at = 0;
            self.is_open = (self.pull)(&mut self.batch);
        }
    }

    /// Time of the next sighting: the earlier of two, so that one wrong timestamp far ahead does not
    /// make this side wait for all of the other.
    fn head_ns(&self, params: &MatchParams, align: fn(&MatchParams, u64) -> i64) -> Option<i64> {
        let ahead = self.batch.get(self.at..)?;
        let times = ahead.iter().take(2).map(|one| align(params, one.time_ns));
        times.min()
    }

    /// The next sightings for which `belongs` is true; at least one.
    fn run(&mut self, belongs: impl FnMut(&Sighting) -> bool) -> &[Sighting] {
        let ahead = self.batch.get(self.at..).unwrap_or_default();
        let length = ahead.iter().take_while({
            let mut belongs = belongs;
            move |one| belongs(one)
        });
        let length = length.count().clamp(1.min(ahead.len()), ahead.len());
        self.at += length;
        &ahead[..length]
    }
}

fn align_sent_time(_: &MatchParams, time_ns: u64) -> i64 {
    align_sent(time_ns)
}

fn align_received_time(params: &MatchParams, time_ns: u64) -> i64 {
    params.align_received(time_ns)
}

/// Steps of 1 ms with the lead of 100 ms of a 5 s time-out.
const STEPS_OF_LEAD: i64 = 100;
