//! Clients of adaptive video (DASH) after dash.js: each asks for segment after segment on a connection that stays open,
//! one at a time, while there is room for it; and plays them.

mod adaptation;
mod bola;
mod figures;
mod ladder;
mod player;
mod throughput;

use crate::agenda::Agenda;
use crate::back_off::BackOff;
use crate::responses::Awaited;
use crate::{Action, Client, Figures, Start, happened};
use adaptation::{Adaptation, Terms};
use ladder::Ladder;
use player::Player;
use slicewise_stats::application::Transaction;
use slicewise_traffic::application::VideoParams;
use slicewise_units::{Duration, Instant};

/// Bytes of a request: a GET of a browser with its usual header fields.
const REQUEST_BYTES: u64 = 400;

#[derive(Debug)]
pub struct Video {
    stop: Instant,
    terms: Terms,
    /// The most to play at the top quality (`bufferTimeAtTopQuality`), and below it (`bufferTimeDefault`).
    buffer: Duration,
    stable_buffer: Duration,
    clients: Vec<VideoClient>,
    agenda: Agenda,
}

#[derive(Debug)]
struct VideoClient {
    state: State,
    back_off: BackOff,
    adaptation: Adaptation,
    player: Player,
    /// When it asked for its first segment.
    first_asked: Option<Instant>,
    /// Segments that arrived, in order of time.
    segments: Vec<Segment>,
    /// Segments that failed connections took with them.
    lost: Vec<Segment>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Not open; not to be opened before that time.
    Down(Instant),
    Opening,
    /// Nothing is asked for before that time.
    Idle(Instant),
    Asked(Download),
    /// Closing, at the end.
    Over,
}

/// A segment on its way.
#[derive(Debug, Clone, Copy)]
struct Download {
    asked: Instant,
    /// When its first bytes arrived.
    first: Option<Instant>,
    bytes: u64,
    awaited: Awaited,
}

/// A segment that was asked for.
#[derive(Debug, Clone, Copy)]
struct Segment {
    asked: Instant,
    /// [`Instant::MAX`] if it has not.
    arrived: Instant,
    quality: usize,
}

impl Video {
    pub fn new(params: &VideoParams, start: Start, stop: Instant, seed: u64) -> Self {
        // The relation of dash.js's defaults, 18 s and 30 s.
        let stable_buffer = Duration::from_nanos(params.buffer.nanos() / 5 * 3);
        let ladder = Ladder::new(&params.ladder, params.segment);
        let terms = Terms::new(ladder, params.rule, stable_buffer);
        let mut agenda = Agenda::default();
        let clients = (0..params.clients).map(|number| {
            let begin = start.of(number, seed) + params.stagger * number.into();
            agenda.add(begin, number);
            VideoClient {
                state: State::Down(begin),
                back_off: BackOff::default(),
                adaptation: Adaptation::new(&terms),
                player: Player::default(),
                first_asked: None,
                segments: Vec::new(),
                lost: Vec::new(),
            }
        });
        Self {
            stop,
            clients: clients.collect(),
            terms,
            buffer: params.buffer,
            stable_buffer,
            agenda,
        }
    }

    /// Ask for the next segment, or find out when.
    fn ask(&mut self, number: u32, now: Instant) -> Option<Action> {
        let room_from = self.room_from(number)?;
        let client = self.clients.get_mut(number as usize)?;
        let level = client.player.level(now).as_secs_f64();
        let mut until = room_from;
        if room_from <= now {
            let choice = client.adaptation.choose(&self.terms, level, now);
            until = now + choice.wait;
        }
        if until > now {
            client.state = State::Idle(until);
            self.agenda.add(until.min(self.stop), number);
            return None;
        }
        let bytes = self.terms.ladder.segment_bytes(client.adaptation.quality);
        client.first_asked.get_or_insert(now);
        client.state = State::Asked(Download {
            asked: now,
            first: None,
            bytes,
            awaited: Awaited::new(bytes),
        });
        Some(Action::Request {
            connection: number,
            bytes: REQUEST_BYTES,
            response: bytes,
        })
    }

    /// When there is room for a segment (`ScheduleController.js`).
    fn room_from(&self, number: u32) -> Option<Instant> {
        let client = self.clients.get(number as usize)?;
        let most = if client.adaptation.quality < self.terms.ladder.top() {
            self.stable_buffer
        } else {
            self.buffer
        };
        // A buffer that is too short for a segment takes one whenever less than that is left.
        let segment = self.terms.ladder.segment;
        let level = if most <= segment {
            most
        } else {
            most - segment
        };
        Some(client.player.down_to(level))
    }
}

impl VideoClient {
    /// The segment that it waits for.
    fn on_its_way(&self) -> Option<Segment> {
        let State::Asked(download) = self.state else {
            return None;
        };
        Some(Segment {
            asked: download.asked,
            arrived: Instant::MAX,
            quality: self.adaptation.quality,
        })
    }
}

impl Client for Video {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn agenda_mut(&mut self) -> &mut Agenda {
        &mut self.agenda
    }

    fn look(&mut self, number: u32, now: Instant) -> Option<Action> {
        let client = self.clients.get_mut(number as usize)?;
        match client.state {
            State::Down(until) if until <= now && now < self.stop => {
                client.state = State::Opening;
                Some(Action::Open { connection: number })
            }
            State::Idle(_) if now >= self.stop => {
                client.state = State::Over;
                Some(Action::Close { connection: number })
            }
            State::Idle(until) if until <= now => self.ask(number, now),
            _ => None,
        }
    }

    fn on_connected(&mut self, number: u32, now: Instant) {
        if let Some(client) = self.clients.get_mut(number as usize)
            && let State::Opening = client.state
        {
            client.state = State::Idle(now);
            self.agenda.add(now, number);
        }
    }

    fn on_received(&mut self, number: u32, bytes: u64, now: Instant) {
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let State::Asked(download) = &mut client.state else {
            return;
        };
        let first = *download.first.get_or_insert(now);
        if !download.awaited.on_received(bytes) {
            return;
        }
        let download = *download;
        client.adaptation.on_segment(
            &self.terms,
            download.bytes,
            client.player.level(now).as_secs_f64(),
            now.saturating_since(download.asked),
            now.saturating_since(first),
            now,
        );
        client.player.on_segment(self.terms.ladder.segment, now);
        client.segments.push(Segment {
            asked: download.asked,
            arrived: now,
            quality: client.adaptation.quality,
        });
        client.back_off.on_success();
        client.state = State::Idle(now);
        self.agenda.add(now, number);
    }

    fn on_ended(&mut self, number: u32, now: Instant) {
        // A server that closes is treated as a failure: it may do so again at once.
        if let Some(client) = self.clients.get_mut(number as usize)
            && !matches!(client.state, State::Over)
        {
            client.lost.extend(client.on_its_way());
            let until = now + client.back_off.on_failure();
            client.state = State::Down(until);
            self.agenda.add(until, number);
        }
    }

    fn figures(&self, from: Instant, to: Instant) -> Figures {
        Figures {
            video: Some(self.video_figures(from, to)),
            ..Figures::default()
        }
    }

    fn transactions(&self) -> Vec<Transaction> {
        let clients = (0..).zip(&self.clients);
        let segments = clients.flat_map(|(number, client)| {
            let segments = client.segments.iter().chain(&client.lost).copied();
            let segments = segments.chain(client.on_its_way());
            segments.map(move |segment| (number, segment))
        });
        let segments = segments.map(|(connection, segment)| Transaction {
            kind: "segment",
            connection,
            number: 0,
            begins_ns: segment.asked.nanos(),
            sent_ns: Some(segment.asked.nanos()),
            ends_ns: happened(segment.arrived),
            bytes: Some(self.terms.ladder.segment_bytes(segment.quality)),
            quality: Some(segment.quality as u64),
        });
        segments.collect()
    }
}

#[cfg(test)]
mod tests;
