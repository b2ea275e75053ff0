//! Bulk transfers, as iperf3 makes them.

use crate::agenda::Agenda;
use crate::flows::{Flow, Flows};
use crate::responses::{Awaited, Sizes};
use crate::{Action, Client, Figures, Start};
use slicewise_stats::application::Transaction;
use slicewise_traffic::Random;
use slicewise_traffic::application::{BULK_BLOCK_BYTES, BulkParams, FlowArrivals, KILOSECOND_NS};
use slicewise_units::{BitRate, ByteCount, Credit, Duration, Instant};

/// How often iperf3 looks whether a block is due.
const PACING_TIMER: Duration = Duration::from_millis(1);
/// Stream of random numbers of arrivals: above those of connections and of their starts.
const ARRIVALS: u64 = 1 << 33;

/// Flows of one direction. One that fails is not begun again, as iperf3 ends then.
#[derive(Debug)]
pub struct Bulk {
    stop: Instant,
    bitrate: Option<BitRate>,
    transfers: Vec<Transfer>,
    agenda: Agenda,
    flows: Flows,
}

#[derive(Debug)]
struct Transfer {
    state: State,
    flow: Flow,
    /// Bytes that the receiver lacks, where there is a size.
    awaited: Option<Awaited>,
    /// Blocks handed to the transport, where the rate is limited.
    blocks: u64,
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
    pub fn new(params: &BulkParams, start: Start, stop: Instant, seed: u64) -> Self {
        let mut agenda = Agenda::default();
        let sizes = params.bytes.as_ref().map(Sizes::new);
        let arrivals = after_start(params.arrivals, seed);
        let transfers = (0..params.flows).zip(arrivals).map(|(number, after)| {
            let began = start.of(number, seed) + after;
            agenda.add(began, number);
            let mut random = Random::stream(seed, number.into());
            let bytes = sizes.as_ref().map(|sizes| sizes.draw(&mut random));
            Transfer {
                state: State::Waiting,
                flow: Flow {
                    bytes: bytes.unwrap_or_default(),
                    ..Flow::at(number, began)
                },
                awaited: bytes.map(Awaited::new),
                blocks: 0,
            }
        });
        Self {
            stop,
            bitrate: params.bitrate,
            transfers: transfers.collect(),
            agenda,
            flows: Flows::default(),
        }
    }

    /// Transfers of a given size that have begun and not ended.
    fn open(&self) -> impl Iterator<Item = Flow> {
        let is_open = |t: &&Transfer| t.state != State::Waiting && t.awaited.is_some();
        self.transfers.iter().filter(is_open).map(|t| t.flow)
    }
}

/// How long after the start flows begin, one after the other.
fn after_start(arrivals: FlowArrivals, seed: u64) -> impl Iterator<Item = Duration> {
    let mut random = Random::stream(seed, ARRIVALS);
    let mut gap = move || match arrivals {
        FlowArrivals::Staggered(gap) => gap.nanos(),
        FlowArrivals::Poisson(per_kilosecond) => {
            random.exponential(KILOSECOND_NS as f64 / per_kilosecond.max(1) as f64)
        }
    };
    // Of flows that begin at random, the first is no exception.
    let first = match arrivals {
        FlowArrivals::Staggered(_) => 0,
        FlowArrivals::Poisson(_) => gap(),
    };
    let after = std::iter::successors(Some(first), move |after| Some(after.saturating_add(gap())));
    after.map(Duration::from_nanos)
}

impl Transfer {
    /// Bytes to transfer; `None`: without end.
    fn bytes(&self) -> Option<u64> {
        (self.flow.bytes > 0).then_some(self.flow.bytes)
    }

    /// Blocks that are due by now and were not sent, and when the next one is: a block may be sent while fewer bits were
    /// sent than the rate allows, as iperf3 decides at each tick of its pacing timer.
    fn blocks_due(&mut self, rate: BitRate, now: Instant) -> (u64, Instant) {
        let tick = PACING_TIMER.nanos();
        let allowed = rate.bytes_in(now - self.flow.began).bytes();
        let due = allowed / BULK_BLOCK_BYTES + 1;
        let blocks = due.saturating_sub(self.blocks);
        self.blocks = self.blocks.max(due);
        let sent = Credit::for_bytes(ByteCount::new(self.blocks.saturating_mul(BULK_BLOCK_BYTES)));
        // At a rate of zero no further block is ever due.
        let until = sent.time_to_earn(rate).map_or(u64::MAX, Duration::nanos);
        let ticks = until.div_ceil(tick);
        let next = self.flow.began + Duration::from_nanos(ticks.saturating_mul(tick));
        (blocks, next.max(now + PACING_TIMER))
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
            State::Waiting if transfer.flow.began <= now && now < self.stop => {
                transfer.state = State::Opening;
                transfer.flow.began = now;
                Some(Action::Open { connection: number })
            }
            State::Sending | State::Open if now < self.stop && self.bitrate.is_some() => {
                if transfer.state == State::Open {
                    transfer.state = State::Sending;
                    transfer.flow.began = now;
                }
                let (blocks, next) = transfer.blocks_due(self.bitrate?, now);
                self.agenda.add(next.min(self.stop), number);
                (blocks > 0).then_some(Action::Send {
                    connection: number,
                    bytes: blocks.saturating_mul(BULK_BLOCK_BYTES),
                })
            }
            State::Open => {
                transfer.state = State::Sending;
                transfer.flow.sent = now;
                // With a size, nothing more follows; else once it has to stop.
                let end = transfer.bytes().map_or(self.stop, |_| now);
                self.agenda.add(end.max(now), number);
                Some(Action::Send {
                    connection: number,
                    bytes: transfer.bytes().unwrap_or(u64::MAX),
                })
            }
            State::Sending if transfer.bytes().is_some() || now >= self.stop => {
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
            && let Some(awaited) = &mut transfer.awaited
            && awaited.on_received(bytes)
        {
            transfer.awaited = None;
            self.flows.on_completed(transfer.flow, now);
        }
    }

    fn on_ended(&mut self, number: u32, _now: Instant) {
        if let Some(transfer) = self.transfers.get_mut(number as usize) {
            transfer.state = State::Over;
        }
    }

    fn on_failed(&mut self, number: u32, now: Instant) {
        if let Some(transfer) = self.transfers.get_mut(number as usize)
            && transfer.awaited.take().is_some()
        {
            self.flows.on_failed(transfer.flow, now);
        }
        self.on_ended(number, now);
    }

    fn figures(&self, from: Instant, to: Instant) -> Figures {
        if self.transfers.iter().all(|it| it.bytes().is_none()) {
            return Figures::default();
        }
        self.flows.figures(self.open(), (from, to))
    }

    fn transactions(&self) -> Vec<Transaction> {
        self.flows.transactions(self.open())
    }
}
