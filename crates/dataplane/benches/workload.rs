//! The pipelines to benchmark, one per mechanism.

use slicewise_dataplane::{DropReason, Frame, FrameOwner, Pipeline, PipelineParams};
use slicewise_model::{
    ClassMap, ClassSpec, Colour, Condition, Detector, Discipline, ElephantsSpec, FlowQueueSpec,
    ManagerSpec, MatchMode, NamedQueueSpec, PolicerSpec, PolicySpec, PrioritySpec, QueueSpec,
    RateSpec, WredSpec,
};
use slicewise_units::{Accounting, BitRate, FrameLengths, Instant};
use slicewise_wire::{Headers, IpVersion, TrafficClass};
use std::hint::black_box;
use std::ops::ControlFlow;

/// Mechanisms, each with a page or a section of one under `docs/mechanisms`.
pub const MECHANISMS: [&str; 10] = [
    "fifo",
    "policer",
    "trtcm",
    "red",
    "fq-codel",
    "shaper",
    "strict-priority",
    "deficit-round-robin",
    "minimum-share",
    "elephants",
];

const LINK: BitRate = BitRate::new(10_000_000_000);
const FLOWS: u16 = 4;
/// Most frames that arrive together: what drivers usually hand over.
pub const BURST_MAX: usize = 32;

fn class(vlan: u16) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: format!("vlan{vlan}"),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(vlan..=vlan)],
    })
}

fn rate(bits_per_second: u64) -> RateSpec {
    RateSpec::Absolute(BitRate::new(bits_per_second))
}

fn policer(pir: Option<RateSpec>) -> PolicerSpec {
    PolicerSpec {
        pir,
        exceed: Some(slicewise_model::Action::Transmit),
        ..PolicerSpec::new(rate(2_000_000_000))
    }
}

fn configure(mechanism: &str, class: &mut ClassSpec, level: u8) {
    match mechanism {
        "policer" => class.police = Some(policer(None)),
        "trtcm" => class.police = Some(policer(Some(rate(4_000_000_000)))),
        "red" => {
            class.queue.manager = ManagerSpec::Red(WredSpec::default());
        }
        "fq-codel" => {
            class.queue = QueueSpec {
                limit: class.queue.limit,
                ..FlowQueueSpec::default().into()
            }
        }
        "shaper" => {
            class.shape = Some(rate(9_000_000_000).into());
        }
        "strict-priority" => {
            class.priority = Some(PrioritySpec {
                level,
                rate: Some(rate(2_000_000_000)),
                burst: None,
                accounting: Accounting::L2,
            });
        }
        "deficit-round-robin" => class.weight = Some(u32::from(level)),
        "elephants" => {
            // Two flows are elephants, and two are not.
            let above = if level <= 2 {
                300_000_000
            } else {
                9_000_000_000
            };
            class.named_queue = Some("mice".into());
            class.elephants = Some(ElephantsSpec {
                queue: "elephants".into(),
                rate: rate(above),
                detector: Detector::HeavyHitters,
                interval: None,
                times: None,
                flows: None,
            });
        }
        "minimum-share" => class.minimum = Some(rate(2_000_000_000)),
        _ => {}
    }
}

/// A frame of one of the flows, and its headers.
fn offered(vlan: u16) -> (Frame, Headers) {
    let frame = Frame {
        handle: 0,
        lengths: FrameLengths {
            l2_bytes: 1494,
            l3_offset: 18,
        },
        traffic_class: TrafficClass::DEFAULT,
        colour: Colour::Green,
    };
    let headers = Headers {
        vlan_tags: 1,
        outer_vlan: vlan,
        ip_version: IpVersion::V4,
        protocol: 17,
        source: u128::from(0x0a00_0001 + u32::from(vlan)),
        destination: 0x0a00_0101,
        has_ports: true,
        source_port: 5201,
        destination_port: 5201,
        l3_offset: 18,
        ..Headers::default()
    };
    (frame, headers)
}

/// A pipeline of four classes under one mechanism, fed by four flows in turn.
pub struct Workload {
    pipeline: Pipeline,
    now: u64,
    frames: [Frame; BURST_MAX],
    headers: [Headers; BURST_MAX],
    offered: u64,
}

impl Workload {
    /// The workload of one of [`MECHANISMS`].
    pub fn new(mechanism: &str) -> Self {
        let classes = (0..FLOWS)
            .map(|vlan| {
                let mut class = class(vlan);
                configure(mechanism, &mut class, u8::try_from(vlan).unwrap_or(0) + 1);
                class
            })
            .collect();
        let (classes, discipline) = match mechanism {
            "fifo" => (Vec::new(), Discipline::MinimumShare),
            "deficit-round-robin" | "elephants" => (classes, Discipline::DeficitRoundRobin),
            _ => (classes, Discipline::MinimumShare),
        };
        let queues = match mechanism {
            "elephants" => ["mice", "elephants"].map(NamedQueueSpec::new).to_vec(),
            _ => Vec::new(),
        };
        let policy = PolicySpec {
            name: mechanism.into(),
            classes,
            discipline,
            guaranteed: None,
            queues,
        }
        .resolve(LINK)
        .expect("the workload's policies are valid");
        let params = PipelineParams {
            policy,
            port_shaper: None,
            seed: 1,
        };
        let pipeline =
            Pipeline::new(&params, Instant::ZERO).expect("the workload's policies can be built");
        let flows =
            std::array::from_fn(|position| offered(u16::try_from(position).unwrap_or(0) % FLOWS));
        Self {
            pipeline,
            now: 0,
            frames: flows.map(|(frame, _)| frame),
            headers: flows.map(|(_, headers)| headers),
            offered: 0,
        }
    }

    /// Offer and send `packets` frames of 1494 B at 8 Gbit/s, in bursts of `burst` that take from the
    /// flows in turn. Returns how many were sent. Frames and headers exist before; of them, only the
    /// handles change.
    pub fn run(&mut self, packets: u64, burst: usize) -> u64 {
        let mut sent = 0;
        let mut owner = Owner { dropped: 0 };
        let (frames, headers) = (&mut self.frames[..burst], &self.headers[..burst]);
        for _ in 0..packets / burst as u64 {
            self.now += 1494 * burst as u64;
            let now = Instant::from_nanos(self.now);
            for frame in &mut *frames {
                frame.handle = self.offered;
                self.offered += 1;
            }
            let (frames, headers) = black_box((&*frames, headers));
            self.pipeline
                .enqueue_burst(frames, headers, now, &mut owner);
            let _ = self.pipeline.dequeue_burst(now, |departure| {
                black_box(departure.frame);
                sent += 1;
                ControlFlow::Continue(())
            });
        }
        black_box(owner.dropped);
        sent
    }
}

/// Has memory for every frame.
struct Owner {
    dropped: u64,
}

impl FrameOwner for Owner {
    fn on_dropped(&mut self, _: &Frame, _: DropReason) {
        self.dropped += 1;
    }
}
