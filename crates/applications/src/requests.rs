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
use crate::{Action, Client, Figures, Start, happened, samples};
use slicewise_stats::application::{RequestFigures, Transaction};
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
    seed: u64,
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
    /// A request was sent.
    Busy(Awaited),
    /// Closing, at the end.
    Over,
}

/// Times of a request; [`Instant::MAX`] if it has not happened.
#[derive(Debug, Clone, Copy)]
struct Sample {
    sent: Instant,
    answered: Instant,
}

impl Sample {
    /// Not sent yet.
    const NONE: Self = Self {
        sent: Instant::MAX,
        answered: Instant::MAX,
    };

    fn is_answered(self) -> bool {
        self.answered < Instant::MAX
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
            seed,
            samples: Vec::new(),
        }
    }

    /// The times of a request; `None` where there is no memory for so many.
    fn sample(&mut self, request: u64) -> Option<&mut Sample> {
        let place = usize::try_from(request).ok()?;
        if self.samples.len() <= place {
            self.samples.resize(place + 1, Sample::NONE);
        }
        self.samples.get_mut(place)
    }

    fn on_answered(&mut self, number: u32, now: Instant) {
        let step = self.connections.len() as u64;
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return;
        };
        connection.state = State::Idle;
        connection.back_off.on_success();
        let request = connection.next.saturating_sub(step);
        if let Some(sample) = self.sample(request) {
            sample.answered = now;
        }
        self.agenda.add(now, number);
    }

    /// From when a request was due to its answer.
    fn latency(&self, request: u64, sample: Sample) -> Duration {
        sample.answered.saturating_since(self.schedule.due(request))
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
                connection.state = State::Busy(Awaited::new(response));
                let request = connection.next;
                connection.next = request.saturating_add(step);
                if let Some(sample) = self.sample(request) {
                    sample.sent = now;
                }
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
        if let Some(State::Busy(awaited)) = connection.map(|c| &mut c.state)
            && awaited.on_received(bytes)
        {
            self.on_answered(number, now);
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
        let numbered = due.clone().zip(samples.iter().copied());
        let answered = numbered.filter(|(_, sample)| sample.is_answered());
        let latency = answered.clone().map(|(n, sample)| self.latency(n, sample));
        let latency: Vec<u64> = latency.map(Duration::nanos).collect();
        let times = samples::cdf(&latency);
        let response_time = answered.map(|(_, one)| one.answered.saturating_since(one.sent));
        let response_time = samples::figures(response_time.map(Duration::nanos).collect());
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
        let is_within = |sample: &&Sample| (from..to).contains(&sample.answered);
        let achieved = self.samples.iter().filter(is_within);
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

    fn transactions(&self) -> Vec<Transaction> {
        // Sizes are drawn again, which takes no memory while the run goes on.
        let connections = 0..self.connections.len() as u64;
        let streams = connections.map(|connection| Random::stream(self.seed, connection));
        let mut streams: Vec<Random> = streams.collect();
        let samples = self.samples.iter().copied();
        let samples = samples.chain(std::iter::repeat(Sample::NONE));
        let due = 0..self.schedule.before(self.stop);
        let connection_of = (0..self.connections.len()).cycle();
        let requests = due.zip(connection_of).zip(samples);
        let requests = requests.map(|((request, connection), sample)| Transaction {
            kind: "request",
            connection: u32::try_from(connection).unwrap_or(u32::MAX),
            number: 0,
            begins_ns: self.schedule.due(request).nanos(),
            sent_ns: happened(sample.sent),
            ends_ns: happened(sample.answered),
            bytes: Some(self.sizes.draw(&mut streams[connection])),
            quality: None,
        });
        requests.collect()
    }
}
