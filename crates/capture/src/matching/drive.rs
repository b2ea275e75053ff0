//! Feeds a matcher from two sources in order of time.

use super::matcher::{MatchParams, Matcher, align_sent};
use super::observer::MatchObserver;
use crate::Sighting;

/// Match all that two sources yield, to the end of both.
///
/// A source appends sightings to the batch it is given, nearly in order of time, and returns `false`
/// when there are no more; it may block, and should not return `true` without a sighting. Sightings of
/// the sending point are fed a fiftieth of the time-out ahead of those of the receiving point, so that
/// clocks that disagree by less do not change the order of arrival. How the sources divide sightings
/// into batches changes nothing.
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
            // Where nothing is left of the other side, whatever the time says.
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

/// The grid of time on which sides take turns: long enough for runs of packets, short against the
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

/// One source and what was pulled from it but not yet fed.
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

    /// Two are looked at ahead wherever there are two.
    fn fill(&mut self) {
        while self.is_open && self.batch.len() - self.at < 2 {
            self.batch.drain(..self.at);
            self.at = 0;
            self.is_open = (self.pull)(&mut self.batch);
        }
    }

    /// The time of the next: the earlier of two, so that one wrong time far ahead does not make this
    /// side wait for all of the other.
    fn head_ns(&self, params: &MatchParams, align: fn(&MatchParams, u64) -> i64) -> Option<i64> {
        let ahead = self.batch.get(self.at..)?;
        let times = ahead.iter().take(2).map(|one| align(params, one.time_ns));
        times.min()
    }

    /// The next sightings of which `belongs` holds; one at least.
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

/// Steps of 1 ms with the lead of 100 ms that belongs to a time-out of 5 s.
const STEPS_OF_LEAD: i64 = 100;
