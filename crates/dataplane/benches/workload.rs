//! The pipelines to benchmark, one per mechanism.

use slicewise_dataplane::{Frame, Pipeline, PipelineParams, Verdict};
use slicewise_model::{
    ClassMap, ClassSpec, Colour, Condition, Discipline, FlowQueueSpec, MatchMode, PolicerSpec,
    PolicySpec, PrioritySpec, RateSpec, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate, FrameLengths, Instant};
use slicewise_wire::{Headers, IpVersion};

/// The mechanisms, by the names of their pages under `docs/mechanisms`.
pub const MECHANISMS: [&str; 9] = [
    "fifo",
    "policer",
    "trtcm",
    "red",
    "fq-codel",
    "shaper",
    "strict-priority",
    "deficit-round-robin",
    "minimum-share",
];

const LINK: BitRate = BitRate::new(10_000_000_000);
const FLOWS: u16 = 4;

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
            class.wred = Some(WredSpec {
                key: WredKey::Dscp,
                curves: Vec::new(),
                exponential_weight: None,
            });
        }
        "fq-codel" => class.flow_queue = Some(FlowQueueSpec::default()),
        "shaper" => {
            class.shape = Some(ShaperSpec {
                rate: rate(9_000_000_000),
                committed_burst_bits: None,
                excess_burst_bits: None,
                peak: false,
                accounting: Accounting::L2,
            });
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
        "minimum-share" => class.minimum = Some(rate(2_000_000_000)),
        _ => {}
    }
}

/// A pipeline of four classes under one mechanism, fed by four flows in turn.
pub struct Workload {
    pipeline: Pipeline,
    now: u64,
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
            "deficit-round-robin" => (classes, Discipline::DeficitRoundRobin),
            _ => (classes, Discipline::MinimumShare),
        };
        let policy = PolicySpec {
            name: mechanism.into(),
            classes,
            discipline,
            guaranteed: None,
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
        Self {
            pipeline,
            now: 0,
            offered: 0,
        }
    }

    /// Offer and send `packets` frames of 1494 B at 8 Gbit/s, in bursts of four, one per flow.
    /// Returns how many were sent.
    pub fn run(&mut self, packets: u64) -> u64 {
        let mut sent = 0;
        for _ in 0..packets / u64::from(FLOWS) {
            self.now += 1494 * u64::from(FLOWS);
            let now = Instant::from_nanos(self.now);
            for vlan in 0..FLOWS {
                let frame = Frame {
                    handle: self.offered,
                    lengths: FrameLengths {
                        l2_bytes: 1494,
                        l3_offset: 18,
                    },
                    dscp: 0,
                    ecn: slicewise_wire::Ecn::NotEct,
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
                self.offered += 1;
                let verdict = self.pipeline.on_frame(frame, &headers, now);
                debug_assert!(matches!(verdict, Verdict::Queued | Verdict::Dropped(_)));
            }
            while let Some(frame) = self.pipeline.poll_egress(now) {
                std::hint::black_box(frame);
                sent += 1;
            }
        }
        sent
    }
}
