//! One end of a connection, with a test as the other end: what it sends, and when, is a line each.

use slicewise_transport::{Behaviour, Connection, Flags, SackBlocks, Segment, stamp};
use slicewise_units::{Duration, Instant};
use std::fmt::Write;

pub const MSS: u64 = 1_000;

/// A host without offloads whose segments hold 1000 bytes.
pub fn plain() -> Behaviour {
    use slicewise_traffic::transport::{TcpProfile, TransportParams};
    let params = TransportParams {
        mtu_bytes: 1_052,
        ..TransportParams::of(TcpProfile::Rfc)
    };
    Behaviour::new(&params, 20)
}

pub struct Script {
    pub end: Connection,
    pub behaviour: Behaviour,
    now: Instant,
    log: String,
    /// The test's end: the next position it sends.
    pub next: u64,
    window: u32,
    /// The segment that the end sent last.
    pub last: Segment,
    /// What the end sends stays in its adapter.
    pub is_adapter_busy: bool,
}

impl Script {
    fn new(behaviour: Behaviour, end: Connection) -> Self {
        let mut script = Self {
            end,
            behaviour,
            now: Instant::ZERO,
            log: String::new(),
            next: 0,
            window: 1 << 20,
            last: Segment::default(),
            is_adapter_busy: false,
        };
        script.drain();
        script
    }

    /// The end opens the connection.
    pub fn opening(behaviour: Behaviour) -> Self {
        let end = Connection::open(&behaviour);
        Self::new(behaviour, end)
    }

    /// The end was opened by the test 10 ms ago, and its answer acknowledged.
    pub fn listening(behaviour: Behaviour, flags: Flags) -> Self {
        let end = Connection::listen(&behaviour);
        let mut script = Self::new(behaviour, end);
        script.gets(Segment {
            flags: Flags::SYN.with(flags),
            ..script.segment()
        });
        script.next = 1;
        script.at(10);
        script.acks(1);
        script
    }

    /// The end opened the connection at 0 and was answered at 10 ms.
    pub fn opened(behaviour: Behaviour, flags: Flags) -> Self {
        let mut script = Self::opening(behaviour);
        script.at(10);
        script.gets(Segment {
            acknowledgement: 1,
            flags: Flags::SYN.with(Flags::ACK).with(flags),
            ..script.segment()
        });
        script.next = 1;
        script.log.clear();
        script
    }

    pub fn segment(&self) -> Segment {
        Segment {
            sequence: self.next,
            acknowledgement: self.end.acknowledged_bytes() + 1,
            window_bytes: self.window,
            stamp: stamp(self.now),
            flags: Flags::ACK,
            ..Segment::default()
        }
    }

    /// Let time pass until `millis`, timers included.
    pub fn at(&mut self, millis: u64) {
        let until = Instant::ZERO + Duration::from_millis(millis);
        while let Some(at) = self.end.poll_at().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.end.on_timer(&self.behaviour, self.now);
            self.drain();
        }
        self.now = until;
    }

    pub fn gets(&mut self, segment: Segment) {
        self.gets_marked(segment, false);
    }

    pub fn gets_marked(&mut self, segment: Segment, is_marked: bool) {
        self.end
            .on_segment(&segment, is_marked, &self.behaviour, self.now);
        self.drain();
    }

    /// The test acknowledges everything below `position`.
    pub fn acks(&mut self, position: u64) {
        self.sacks(position, &[]);
    }

    /// The same with blocks.
    pub fn sacks(&mut self, position: u64, blocks: &[(u64, u64)]) {
        let mut segment = self.segment();
        segment.acknowledgement = position;
        for (start, end) in blocks {
            segment.sack.push(*start, *end);
        }
        self.gets(segment);
    }

    /// The test's window is from now on so large.
    pub fn offers(&mut self, bytes: u32) {
        self.window = bytes;
    }

    /// The test sends `bytes` from `position`, and has more.
    pub fn sends(&mut self, position: u64, bytes: u32) {
        let mut segment = self.segment();
        (segment.sequence, segment.bytes) = (position, bytes);
        self.gets(segment);
    }

    /// The test sends `bytes` from `position`, the last of what its application has written.
    pub fn sends_last(&mut self, position: u64, bytes: u32) {
        let mut segment = self.segment();
        (segment.sequence, segment.bytes) = (position, bytes);
        segment.flags = segment.flags.with(Flags::PSH);
        self.gets(segment);
    }

    pub fn write(&mut self, bytes: u64) {
        self.end.write(bytes);
        self.drain();
    }

    /// The adapter sends `bytes` of what it has.
    pub fn leaves(&mut self, bytes: u64) {
        self.end.on_left(bytes, &self.behaviour);
        self.drain();
    }

    pub fn close(&mut self) {
        self.end.close(&self.behaviour);
        self.drain();
    }

    /// What was sent since the last call.
    pub fn log(&mut self) -> String {
        std::mem::take(&mut self.log)
    }

    fn drain(&mut self) {
        while let Some(segment) = self.end.poll_transmit(&self.behaviour, self.now) {
            if !self.is_adapter_busy {
                self.end.on_left(segment.bytes.into(), &self.behaviour);
            }
            self.write_line(&segment);
            self.last = segment;
        }
    }

    fn write_line(&mut self, segment: &Segment) {
        let millis = self.now.nanos() / 1_000_000;
        let flags = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::ACK, '.'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::ECT, 't'),
        ];
        let flags: String = flags
            .iter()
            .filter(|(flag, _)| segment.flags.has(*flag))
            .map(|(_, letter)| *letter)
            .collect();
        write!(
            self.log,
            "{millis:>6} ms {flags:<3} {}:{}",
            segment.sequence,
            segment.sequence + u64::from(segment.bytes)
        )
        .unwrap();
        if segment.flags.has(Flags::ACK) {
            write!(self.log, " ack {}", segment.acknowledgement).unwrap();
        }
        if segment.sack != SackBlocks::default() {
            let blocks = segment.sack.iter(segment.acknowledgement);
            let blocks: Vec<String> = blocks
                .map(|(start, end)| format!("{start}-{end}"))
                .collect();
            write!(self.log, " sack {}", blocks.join(" ")).unwrap();
        }
        self.log.push('\n');
    }
}
