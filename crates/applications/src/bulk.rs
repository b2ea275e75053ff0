//! Bulk transfers, as iperf3 makes them.

use crate::agenda::Agenda;
use crate::flows::Flows;
use crate::responses::Awaited;
use crate::{Action, Client, Figures};
use slicewise_traffic::application::BulkParams;
use slicewise_units::Instant;

/// Flows of one direction. One that fails is not begun again, as iperf3 ends then.
#[derive(Debug)]
pub struct Bulk {
    stop: Instant,
    bytes: Option<u64>,
    transfers: Vec<Transfer>,
    agenda: Agenda,
    flows: Flows,
}

#[derive(Debug)]
struct Transfer {
    state: State,
    /// When its connection was opened.
    began: Instant,
    /// What the receiver lacks, where there is a size.
    awaited: Option<Awaited>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Opening,
    /// The connection is open, and nothing was sent.
    Open,
    Sending,
    /// Nothing more to send.
    Over,
}

impl Bulk {
    pub fn new(params: BulkParams, start: Instant, stop: Instant) -> Self {
        let mut agenda = Agenda::default();
        let transfers = (0..params.flows).map(|number| {
            let began = start + params.stagger * number.into();
            agenda.add(began, number);
            Transfer {
                state: State::Waiting,
                began,
                awaited: params.bytes.map(|bytes| Awaited::new(bytes.max(1))),
            }
        });
        Self {
            stop,
            bytes: params.bytes.map(|bytes| bytes.max(1)),
            transfers: transfers.collect(),
            agenda,
            flows: Flows::default(),
        }
    }
}

impl Client for Bulk {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn agenda_mut(&mut self) -> &mut Agenda {
        &mut self.agenda
    }

    fn look(&mut self, number: u32, now: Instant) -> Option<Action> {
        let transfer = self.transfers.get_mut(number as usize)?;
        match transfer.state {
            State::Waiting if transfer.began <= now && now < self.stop => {
                transfer.state = State::Opening;
                transfer.began = now;
                Some(Action::Open { connection: number })
            }
            State::Open => {
                transfer.state = State::Sending;
                // With a size, nothing more follows; else once it has to stop.
                let end = self.bytes.map_or(self.stop, |_| now);
                self.agenda.add(end.max(now), number);
                Some(Action::Send {
                    connection: number,
                    bytes: self.bytes.unwrap_or(u64::MAX),
                })
            }
            State::Sending if self.bytes.is_some() || now >= self.stop => {
                transfer.state = State::Over;
                Some(Action::Close { connection: number })
            }
            _ => None,
        }
    }

    fn on_connected(&mut self, number: u32, now: Instant) {
        if let Some(transfer) = self.transfers.get_mut(number as usize)
            && transfer.state == State::Opening
        {
            transfer.state = State::Open;
            self.agenda.add(now, number);
        }
    }

    fn on_received(&mut self, number: u32, bytes: u64, now: Instant) {
        if let Some(transfer) = self.transfers.get_mut(number as usize)
            && let (Some(size), Some(awaited)) = (self.bytes, &mut transfer.awaited)
            && awaited.on_received(bytes)
        {
            transfer.awaited = None;
            self.flows.on_completed(transfer.began, size, now);
        }
    }

    fn on_ended(&mut self, number: u32, _now: Instant) {
        if let Some(transfer) = self.transfers.get_mut(number as usize) {
            transfer.state = State::Over;
        }
    }

    fn figures(&self, from: Instant, to: Instant) -> Figures {
        Figures {
            flows: self.bytes.map(|_| self.flows.figures(from, to)),
            ..Figures::default()
        }
    }
}
