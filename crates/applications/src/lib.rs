//! Applications over TCP, at both ends, without a clock or I/O: what they ask of their connections, and what they got.
//!
//! An [`Application`] is the end that opens connections and asks; a [`Server`] is the end that answers. Both get
//! the time and what happened, and return what to do next. So the simulator and a client on real sockets run the same
//! code. Bytes are counted, not carried.
//!
//! The caller asks [`Application::poll_action`] until it has nothing more, at [`Application::poll_at`] and after each
//! event. To poll early is harmless; to poll late makes requests late, and their latency counts from when they were due.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agenda;
mod back_off;
mod bulk;
mod flows;
mod requests;
mod responses;
mod samples;
mod schedule;
mod server;
mod short_flows;
mod start;
mod video;

pub use server::Server;
pub use start::Start;

use agenda::Agenda;
use slicewise_stats::application::{FlowFigures, RequestFigures, Transaction, VideoFigures};
use slicewise_stats::record::CdfPoint;
use slicewise_traffic::application::ApplicationParams;
use slicewise_units::Instant;
use std::collections::HashMap;
use std::fmt::Debug;

/// Action that an application asks of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Open this connection, from the end that [`ApplicationParams::sender_opens`] says.
    Open {
        /// Its number.
        connection: u32,
    },
    /// The end that opened sends so many bytes that ask for no answer; `u64::MAX`: without end.
    Send {
        /// The connection.
        connection: u32,
        /// Bytes.
        bytes: u64,
    },
    /// The end that opened sends a request; the other end answers it.
    Request {
        /// The connection.
        connection: u32,
        /// Bytes of the request, at least 1.
        bytes: u64,
        /// Bytes of the answer, at least 1.
        response: u64,
    },
    /// The end that opened has nothing more to send, also where it sent without end: half-close. The connection closes
    /// when both ends have closed.
    Close {
        /// The connection.
        connection: u32,
    },
}

impl Action {
    /// The connection that it is about.
    #[must_use]
    pub const fn connection(&self) -> u32 {
        match self {
            Self::Open { connection }
            | Self::Send { connection, .. }
            | Self::Request { connection, .. }
            | Self::Close { connection } => *connection,
        }
    }
}

/// Results of an application over a span. Those that do not apply to its kind are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Of requests at a constant rate.
    pub requests: Option<RequestFigures>,
    /// Of short flows, and of bulk transfers of a given size.
    pub flows: Option<FlowFigures>,
    /// Of video.
    pub video: Option<VideoFigures>,
    /// Distribution function of the latency of requests, or of the completion time of flows.
    pub times: Vec<CdfPoint>,
    /// The same of the time until the end of the span, of what had begun and not ended.
    pub unfinished_times: Vec<CdfPoint>,
}

/// The end of an application that opens its connections; they are numbered from 0 to
/// [`ApplicationParams::connections`] − 1. For bulk transfers it also counts what the other end received.
#[derive(Debug)]
pub struct Application(Box<dyn Client>);

/// Interface that each kind of application implements; methods without a comment are as in [`Application`].
trait Client: Debug + Send + Sync {
    /// When to look at which connection.
    fn agenda(&self) -> &Agenda;
    fn agenda_mut(&mut self) -> &mut Agenda;
    /// Returns the next action on this connection, if any.
    fn look(&mut self, connection: u32, now: Instant) -> Option<Action>;

    fn poll_at(&self) -> Option<Instant> {
        self.agenda().next_at()
    }

    fn poll_action(&mut self, now: Instant) -> Option<Action> {
        while let Some(connection) = self.agenda_mut().due(now) {
            let action = self.look(connection, now);
            if action.is_some() {
                return action;
            }
        }
        None
    }

    fn on_connected(&mut self, connection: u32, now: Instant);
    fn on_received(&mut self, connection: u32, bytes: u64, now: Instant);
    /// Both ends closed, or the transport gave up. The state tells whether that was meant to happen.
    fn on_ended(&mut self, connection: u32, now: Instant);
    /// The transport gave up.
    fn on_failed(&mut self, connection: u32, now: Instant) {
        self.on_ended(connection, now);
    }
    fn figures(&self, from: Instant, to: Instant) -> Figures;
    /// In any order, and not numbered.
    fn transactions(&self) -> Vec<Transaction>;
}

/// Nanoseconds of a time that is [`Instant::MAX`] if it has not come.
fn happened(at: Instant) -> Option<u64> {
    (at < Instant::MAX).then_some(at.nanos())
}

impl Application {
    /// Begins at `start`, and begins nothing new from `stop` on. `seed` decides when connections begin, and sizes of responses: the
    /// same of each request, whatever happened to those before it.
    #[must_use]
    pub fn new(
        params: &ApplicationParams,
        start: impl Into<Start>,
        stop: Instant,
        seed: u64,
    ) -> Self {
        let start = start.into();
        Self(match params {
            ApplicationParams::Bulk(params) => Box::new(bulk::Bulk::new(params, start, stop, seed)),
            ApplicationParams::Requests(params) => {
                Box::new(requests::Requests::new(params, start, stop, seed))
            }
            ApplicationParams::ShortFlows(params) => {
                Box::new(short_flows::ShortFlows::new(params, start, stop, seed))
            }
            ApplicationParams::Video(params) => {
                Box::new(video::Video::new(params, start, stop, seed))
            }
        })
    }

    /// When to poll next; `None` while there is nothing to wait for but events.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.0.poll_at()
    }

    /// Returns the next action; call again until there is none.
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        self.0.poll_action(now)
    }

    /// A connection that was opened is established.
    pub fn on_connected(&mut self, connection: u32, now: Instant) {
        self.0.on_connected(connection, now);
    }

    /// `bytes` more arrived in order at the end that receives data: the one that asked, for bulk transfers the one
    /// that was sent to.
    pub fn on_received(&mut self, connection: u32, bytes: u64, now: Instant) {
        self.0.on_received(connection, bytes, now);
    }

    /// Both ends closed; the number of the connection may be opened again.
    pub fn on_closed(&mut self, connection: u32, now: Instant) {
        self.0.on_ended(connection, now);
    }

    /// The transport gave up, also while opening. What was asked on the connection is lost; the application may open it
    /// again later.
    pub fn on_failed(&mut self, connection: u32, now: Instant) {
        self.0.on_failed(connection, now);
    }

    /// Figures of the span [`from`, `to`), from samples kept one by one: percentiles are exact.
    #[must_use]
    pub fn figures(&self, from: Instant, to: Instant) -> Figures {
        self.0.figures(from, to)
    }

    /// Requests that were due, flows that have begun or segments that were asked for, each: by begin, then by connection.
    /// Empty for bulk transfers without a size.
    #[must_use]
    pub fn transactions(&self) -> Vec<Transaction> {
        let mut all = self.0.transactions();
        all.sort_by_key(|one| (one.begins_ns, one.connection));
        let mut numbers: HashMap<u32, u64> = HashMap::new();
        for one in &mut all {
            let next = numbers.entry(one.connection).or_default();
            one.number = *next;
            *next += 1;
        }
        all
    }
}
