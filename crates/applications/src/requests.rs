//! Requests at a constant rate over connections that stay open, as wrk2 sends them.
//!
//! Request number n is due n / rate after the start, on connection n mod connections: each connection has a constant
//! rate of its own, as in wrk2. A connection carries one request at a time. Where the response to one is late, those
//! due meanwhile are sent as soon as the connection is free, each after the response to the one before it. Latency
//! counts from when a request was due, so time that requests waited for a free connection is in it, and nothing
//! needs to be corrected afterwards ("coordinated omission": G. Tene, wrk2).

use crate::agenda::Agenda;
use crate::back_off::BackOff;
use crate::responses::{Awaited, Sizes};
use crate::schedule::Schedule;
use crate::{Action, Client, Figures, Start, samples};
use slicewise_stats::application::RequestFigures;
use slicewise_traffic::Random;
use slicewise_traffic::application::RequestsParams;
use slicewise_units::{Duration, Instant};
use std::ops::Range;

#[derive(Debug)]
pub struct Requests {
    schedule: Schedule,
    stop: Instant,
    request_bytes: u64,
    sizes: Sizes,
    connections: Vec<Connection>,
    agenda: Agenda,
    /// By number of the request.
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Connection {
    state: State,
    /// Number of the next request.
    next: u64,
    back_off: BackOff,
    random: Random,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Not open; not to be opened before that time.
    Down(Instant),
    Opening,
    Idle,
    /// A request was sent at that time.
    Busy(Instant, Awaited),
    /// Closing, at the end.
    Over,
}

/// Times of a request.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// From due to answered, ns.
    latency: u64,
    /// From sent to answered, ns.
    response_time: u64,
}

impl Sample {
    /// No response yet.
    const NONE: Self = Self {
        latency: u64::MAX,
        response_time: u64::MAX,
    };

    const fn is_answered(self) -> bool {
        self.latency != u64::MAX
    }
}

impl Requests {
    pub fn new(params: &RequestsParams, start: Start, stop: Instant, seed: u64) -> Self {
        // The schedule of all connections moves.
        let schedule = Schedule::new(start.of(0, seed), params.per_kilosecond);
        let mut agenda = Agenda::default();
        let connections = (0..params.connections).map(|number| {
            let first = schedule.due(number.into());
            agenda.add(first, number);
            agenda.add(stop, number);
            Connection {
                // As in wrk2, it is opened when its first request is due.
                state: State::Down(first),
                next: number.into(),
                back_off: BackOff::default(),
                random: Random::stream(seed, number.into()),
            }
        });
        Self {
            schedule,
            stop,
            request_bytes: u64::from(params.request_bytes).max(1),
            sizes: Sizes::new(&params.response),
            connections: connections.collect(),
            agenda,
            samples: Vec::new(),
        }
    }

    fn on_answered(&mut self, number: u32, sent: Instant, now: Instant) {
        let step = self.connections.len() as u64;
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return;
        };
        connection.state = State::Idle;
        connection.back_off.on_success();
        let request = connection.next.saturating_sub(step);
        let Ok(place) = usize::try_from(request) else {
            return;
        };
        if self.samples.len() <= place {
            self.samples.resize(place + 1, Sample::NONE);
        }
        self.samples[place] = Sample {
            latency: now.saturating_since(self.schedule.due(request)).nanos(),
            response_time: now.saturating_since(sent).nanos(),
        };
        self.agenda.add(now, number);
    }

    /// Requests due in [`from`, `to`), by number, and what became of them as far as samples reach.
    fn due_within(&self, from: Instant, to: Instant) -> (Range<u64>, &[Sample]) {
        let first = self.schedule.before(from.min(self.stop));
        let end = self.schedule.before(to.min(self.stop)).max(first);
        let place =
            |n| usize::try_from(n).map_or(self.samples.len(), |n| n.min(self.samples.len()));
        (first..end, &self.samples[place(first)..place(end)])
    }
}

impl Client for Requests {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn agenda_mut(&mut self) -> &mut Agenda {
        &mut self.agenda
    }

    fn look(&mut self, number: u32, now: Instant) -> Option<Action> {
        let step = self.connections.len() as u64;
        let connection = self.connections.get_mut(number as usize)?;
        match connection.state {
            State::Down(until) if until <= now && now < self.stop => {
                connection.state = State::Opening;
                Some(Action::Open { connection: number })
            }
            State::Idle if now >= self.stop => {
                connection.state = State::Over;
                Some(Action::Close { connection: number })
            }
            State::Idle => {
                let due = self.schedule.due(connection.next);
                if due > now {
                    self.agenda.add(due, number);
                    return None;
                }
                let response = self.sizes.draw(&mut connection.random);
                connection.state = State::Busy(now, Awaited::new(response));
                connection.next = connection.next.saturating_add(step);
                Some(Action::Request {
                    connection: number,
                    bytes: self.request_bytes,
                    response,
                })
            }
            _ => None,
        }
    }

    fn on_connected(&mut self, number: u32, now: Instant) {
        if let Some(connection) = self.connections.get_mut(number as usize)
            && let State::Opening = connection.state
        {
            connection.state = State::Idle;
            self.agenda.add(now, number);
        }
    }

    fn on_received(&mut self, number: u32, bytes: u64, now: Instant) {
        let connection = self.connections.get_mut(number as usize);
        if let Some(State::Busy(sent, awaited)) = connection.map(|c| &mut c.state)
            && awaited.on_received(bytes)
        {
            let sent = *sent;
            self.on_answered(number, sent, now);
        }
    }

    fn on_ended(&mut self, number: u32, now: Instant) {
        // A server that closes is treated as a failure: it may do so again at once.
        if let Some(connection) = self.connections.get_mut(number as usize)
            && !matches!(connection.state, State::Over)
        {
            let until = now + connection.back_off.on_failure();
            connection.state = State::Down(until);
            self.agenda.add(until, number);
        }
    }

    fn figures(&self, from: Instant, to: Instant) -> Figures {
        let (due, samples) = self.due_within(from, to);
        let answered = || samples.iter().filter(|sample| sample.is_answered());
        let latency: Vec<u64> = answered().map(|sample| sample.latency).collect();
        let times = samples::cdf(&latency);
        let response_time =
            samples::figures(answered().map(|sample| sample.response_time).collect());
        let samples = samples
            .iter()
            .copied()
            .chain(std::iter::repeat(Sample::NONE));
        let waiting = due.clone().zip(samples);
        let waiting: Vec<u64> = waiting
            .filter(|(_, sample)| !sample.is_answered())
            .map(|(n, _)| to.saturating_since(self.schedule.due(n)).nanos())
            .collect();
        let unfinished_times = samples::cdf(&waiting);
        let latency_of_due = samples::figures([latency.as_slice(), &waiting].concat());
        let latency = samples::figures(latency);
        let due = due.end - due.start;
        let achieved = self.samples.iter().zip(0..).filter(|(sample, n)| {
            let span = Duration::from_nanos(sample.latency);
            sample.is_answered() && (from..to).contains(&(self.schedule.due(*n) + span))
        });
        let per_second = 1.0 / to.saturating_since(from).as_secs_f64().max(1e-9);
        Figures {
            requests: Some(RequestFigures {
                offered_per_second: due as f64 * per_second,
                achieved_per_second: achieved.count() as f64 * per_second,
                unanswered: due - latency.samples,
                latency,
                response_time,
                latency_of_due,
            }),
            times,
            unfinished_times,
            ..Figures::default()
        }
    }
}
