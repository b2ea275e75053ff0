//! The scenario `shaped` by the machine's clock, at the rates of the peer: the library reads that clock, and how many pipes
//! it visits in vain depends on when it is called.

use crate::contender::Contender;
use crate::workload::{BURST, Measurement, PACKET_BYTES, Scenario, depth};
use crate::{PIPES, Pipes, Port, SHAPED_PART, params};
use slicewise_dataplane::hqos::Hqos;
use slicewise_units::Instant as Moment;
use std::time::Instant;

/// `RTE_SCHED_FRAME_OVERHEAD_DEFAULT`, and the rate of the peer's port with 4,096 pipes.
const PORT: Port = Port {
    bits_per_second: 20_000_000_000,
    overhead_bytes: 24,
};
const ROUND_PACKETS: u64 = 2_000;

struct Run<const CLASS: usize> {
    pipes: Pipes<CLASS, false>,
    epoch: Instant,
    /// When the next call is due.
    next_ns: f64,
    /// Time in which all pipes together get the credit of one packet.
    packet_ns: f64,
    left: Vec<(u32, u64)>,
    arriving: Vec<(u32, u32, u64)>,
    busy_ns: u64,
    longest_ns: u64,
    sent: u64,
    calls: u64,
}

/// What `run_shaped` and `measure` of the peer do.
pub fn measured<const CLASS: usize>(packets: u64) -> Measurement {
    let mut run = Run::<CLASS>::new();
    run.begin();
    run.send(u64::from(PIPES));
    run.calls = 0;
    let first = run.sent;
    let (mut cost, mut longest) = (Vec::new(), Vec::new());
    for _ in 0..packets / ROUND_PACKETS {
        let before = run.sent;
        (run.busy_ns, run.longest_ns) = (0, 0);
        run.send(ROUND_PACKETS);
        cost.push(run.busy_ns as f64 / (run.sent - before) as f64);
        longest.push(run.longest_ns as f64 / 1e3);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Measurement {
        ns_per_packet: median(cost),
        longest_call_us: median(longest),
        packets_per_call: (run.sent - first) as f64 / run.calls as f64,
        drop_ratio: 0.0,
        bytes_per_slice: run.pipes.state_bytes() as f64 / f64::from(PIPES),
    }
}

impl<const CLASS: usize> Run<CLASS> {
    fn new() -> Self {
        let params = params::<CLASS>(PIPES, Scenario::Shaped, PORT);
        let credits = &params.pipe_profiles[0].credits;
        let wire_bytes = f64::from(PACKET_BYTES + PORT.overhead_bytes);
        let pipe_bytes =
            params.rate as f64 * credits.tb_credits_per_period as f64 / credits.tb_period as f64;
        let mut pipes = Pipes::<CLASS, false>::new(PIPES, Scenario::Shaped);
        pipes.scheduler = Hqos::new(&params, 1, Moment::ZERO);
        Self {
            pipes,
            epoch: Instant::now(),
            next_ns: 0.0,
            packet_ns: wire_bytes * 1e9 / pipe_bytes / f64::from(PIPES),
            left: Vec::with_capacity(BURST),
            arriving: Vec::with_capacity(BURST),
            busy_ns: 0,
            longest_ns: 0,
            sent: 0,
            calls: 0,
        }
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Pipes begin one after the other, in random order, over the time in which a pipe's rate is worth one packet.
    fn begin(&mut self) {
        let mut order: Vec<u32> = (0..PIPES).collect();
        let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
        for i in (1..order.len()).rev() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            order.swap(i, (((state >> 32) * (i as u64 + 1)) >> 32) as usize);
        }
        let start = self.now_ns() as f64 + 2.0 * self.packet_ns * f64::from(PIPES);
        for (i, &pipe) in order.iter().enumerate() {
            while (self.now_ns() as f64) < start + i as f64 * self.packet_ns {
                self.call();
            }
            self.arriving.clear();
            let packets = 0..u64::from(depth(Scenario::Shaped, PIPES));
            self.arriving
                .extend(packets.map(|handle| (pipe, PACKET_BYTES, handle)));
            self.enqueue();
        }
        self.next_ns = self.now_ns() as f64;
    }

    fn send(&mut self, packets: u64) {
        let until = self.sent + packets;
        while self.sent < until {
            while (self.now_ns() as f64) < self.next_ns {
                std::hint::spin_loop();
            }
            self.call();
            let interval = BURST as f64 * self.packet_ns;
            let is_short = self.left.len() < BURST;
            self.next_ns += if is_short { 2.0 * interval } else { interval };
        }
    }

    /// A call to dequeue; what leaves a pipe comes back to it.
    fn call(&mut self) {
        self.left.clear();
        let start = Instant::now();
        let now = Moment::from_nanos((start - self.epoch).as_nanos() as u64);
        self.pipes.scheduler.begin(now);
        while self.left.len() < BURST {
            let Some(queued) = self.pipes.scheduler.next(&mut self.pipes.pool) else {
                break;
            };
            self.left.push((queued.class(), queued.handle()));
        }
        let took = start.elapsed().as_nanos() as u64;
        self.busy_ns += took;
        self.longest_ns = self.longest_ns.max(took);
        self.sent += self.left.len() as u64;
        self.calls += 1;
        self.arriving.clear();
        let back = self.left.iter();
        self.arriving
            .extend(back.map(|&(pipe, handle)| (pipe, PACKET_BYTES, handle)));
        self.enqueue();
    }

    fn enqueue(&mut self) {
        let now_ns = self.now_ns();
        let start = Instant::now();
        let queued = self.pipes.enqueue(&self.arriving, now_ns);
        self.busy_ns += start.elapsed().as_nanos() as u64;
        assert_eq!(queued, self.arriving.len(), "no queue is full");
    }
}
