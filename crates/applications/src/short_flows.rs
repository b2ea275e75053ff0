//! Requests one after the other, each on a connection of its own.

use crate::agenda::Agenda;
use crate::back_off::BackOff;
use crate::flows::{Flow, Flows};
use crate::responses::{Awaited, Sizes};
use crate::{Action, Client, Figures, Start};
use slicewise_stats::application::Transaction;
use slicewise_traffic::Random;
use slicewise_traffic::application::ShortFlowsParams;
use slicewise_units::{Duration, Instant};

/// Clients; each uses the connection of its number again and again.
#[derive(Debug)]
pub struct ShortFlows {
    stop: Instant,
    request_bytes: u64,
    sizes: Sizes,
    pause: Duration,
    clients: Vec<FlowClient>,
    agenda: Agenda,
    flows: Flows,
}

#[derive(Debug)]
struct FlowClient {
    state: State,
    /// The last that it began.
    flow: Flow,
    back_off: BackOff,
    random: Random,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The next flow begins at that time.
    Pausing(Instant),
    Opening,
    /// The connection is open and the request not sent.
    Open,
    /// The request was sent.
    Asked(Awaited),
    /// The response is complete, and the connection not closed. The next flow begins at that time.
    Answered(Instant),
    /// Both ends are about to close. The next flow begins at that time.
    Closing(Instant),
}

impl ShortFlows {
    pub fn new(params: &ShortFlowsParams, start: Start, stop: Instant, seed: u64) -> Self {
        let mut agenda = Agenda::default();
        let clients = (0..params.clients).map(|number| {
            let began = start.of(number, seed);
            agenda.add(began, number);
            FlowClient {
                state: State::Pausing(began),
                flow: Flow::at(number, began),
                back_off: BackOff::default(),
                random: Random::stream(seed, number.into()),
            }
        });
        Self {
            stop,
            request_bytes: u64::from(params.request_bytes).max(1),
            sizes: Sizes::new(&params.response),
            pause: params.pause,
            clients: clients.collect(),
            agenda,
            flows: Flows::default(),
        }
    }

    /// Flows that have begun and not ended.
    fn open(&self) -> impl Iterator<Item = Flow> {
        let is_open = |client: &&FlowClient| {
            matches!(client.state, State::Opening | State::Open | State::Asked(_))
        };
        self.clients
            .iter()
            .filter(is_open)
            .map(|client| client.flow)
    }
}

impl Client for ShortFlows {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn agenda_mut(&mut self) -> &mut Agenda {
        &mut self.agenda
    }

    fn look(&mut self, number: u32, now: Instant) -> Option<Action> {
        let client = self.clients.get_mut(number as usize)?;
        match client.state {
            State::Pausing(until) if until <= now && now < self.stop => {
                client.state = State::Opening;
                client.flow = Flow::at(number, now);
                Some(Action::Open { connection: number })
            }
            State::Open => {
                let response = self.sizes.draw(&mut client.random);
                client.state = State::Asked(Awaited::new(response));
                (client.flow.sent, client.flow.bytes) = (now, response);
                Some(Action::Request {
                    connection: number,
                    bytes: self.request_bytes,
                    response,
                })
            }
            State::Answered(next) => {
                client.state = State::Closing(next);
                Some(Action::Close { connection: number })
            }
            _ => None,
        }
    }

    fn on_connected(&mut self, number: u32, now: Instant) {
        if let Some(client) = self.clients.get_mut(number as usize)
            && let State::Opening = client.state
        {
            client.state = State::Open;
            self.agenda.add(now, number);
        }
    }

    fn on_received(&mut self, number: u32, bytes: u64, now: Instant) {
        if let Some(client) = self.clients.get_mut(number as usize)
            && let State::Asked(awaited) = &mut client.state
            && awaited.on_received(bytes)
        {
            self.flows.on_completed(client.flow, now);
            client.state = State::Answered(now + self.pause);
            client.back_off.on_success();
            self.agenda.add(now, number);
        }
    }

    fn on_ended(&mut self, number: u32, now: Instant) {
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let next = match client.state {
            State::Pausing(_) => return,
            State::Answered(next) | State::Closing(next) => next.max(now),
            State::Opening | State::Open | State::Asked(_) => {
                self.flows.on_failed(client.flow, now);
                now + client.back_off.on_failure()
            }
        };
        client.state = State::Pausing(next);
        self.agenda.add(next, number);
    }

    fn figures(&self, from: Instant, to: Instant) -> Figures {
        self.flows.figures(self.open(), (from, to))
    }

    fn transactions(&self) -> Vec<Transaction> {
        self.flows.transactions(self.open())
    }
}
