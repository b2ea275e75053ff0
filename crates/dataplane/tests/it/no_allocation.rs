//! The packet path allocates nothing, whatever the policy and however full the queues.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use crate::elephants;
use crate::hqos::rig;
use crate::single_slices::flows;
use crate::support::{self, frame, headers, policy, rate, vlan_class};
use slicewise_dataplane::{
    DropReason, Frame, FrameOwner, Pipeline, SliceChange, SliceFlows, Verdict,
};
use slicewise_model::hqos::HqosRedCurve;
use slicewise_model::{
    Action, CoDelSpec, Detector, Discipline, ElephantsSpec, FlowQueueSpec, ManagerSpec,
    MaximumSpec, NamedQueueSpec, PolicerSpec, PolicySpec, PrioritySpec, QueueLimitSpec, QueueSpec,
    RateSpec, WredSpec,
};
use slicewise_units::{Accounting, BitRate, Duration, Instant};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_packet_path_allocates_nothing() {
    let mut priority = vlan_class(1);
    priority.priority = Some(PrioritySpec {
        level: 1,
        rate: Some(RateSpec::Absolute(rate("100 Mbit/s"))),
        burst: None,
        accounting: Accounting::L2,
    });
    let mut shaped = vlan_class(2);
    shaped.shape = Some(RateSpec::Absolute(rate("50 Mbit/s")).into());
    let mut red = vlan_class(3);
    red.minimum = Some(RateSpec::Absolute(rate("50 Mbit/s")));
    red.queue.manager = ManagerSpec::Red(WredSpec {
        exponential_weight: Some(4),
        ecn: true,
        ..support::red(5, 30, 10)
    });
    assert_allocates_nothing(&policy(vec![priority, shaped, red]));
}

#[test]
fn slices_with_a_delay_bound_allocate_nothing() {
    let mut guaranteed = vlan_class(1);
    guaranteed.guarantee = Some(RateSpec::Absolute(rate("100 Mbit/s")).into());
    let mut limited = vlan_class(2);
    limited.maximum = Some(MaximumSpec {
        rate: RateSpec::Absolute(rate("50 Mbit/s")),
        burst: None,
    });
    let mut spec = policy(vec![guaranteed, limited, vlan_class(3)]);
    spec.discipline = Discipline::Guaranteed;
    for class in &mut spec.classes {
        class.queue.limit = Some(QueueLimitSpec::Packets(40));
    }
    assert_allocates_nothing(&spec);
}

#[test]
fn flow_queues_allocate_nothing() {
    let mut of_slices = policy((1..4).map(vlan_class).collect());
    of_slices.discipline = Discipline::Guaranteed;
    of_slices.classes[0].guarantee = Some(RateSpec::Absolute(rate("100 Mbit/s")).into());
    let of_classes = policy((1..4).map(vlan_class).collect());
    for mut spec in [of_slices, of_classes] {
        for class in &mut spec.classes {
            class.queue.limit = Some(QueueLimitSpec::Packets(40));
            class.queue = QueueSpec {
                limit: class.queue.limit,
                ..FlowQueueSpec {
                    codel: CoDelSpec {
                        target: Some(Duration::from_micros(50)),
                        interval: Some(Duration::from_micros(500)),
                        ..CoDelSpec::default()
                    },
                    ..FlowQueueSpec::default()
                }
                .into()
            };
        }
        assert_allocates_nothing(&spec);
    }
}

#[test]
fn elephants_allocate_nothing() {
    for detector in [Detector::HeavyHitters, Detector::Counters] {
        let interval = Duration::from_micros(300);
        let of_elephants = ElephantsSpec {
            detector,
            flows: Some(100),
            times: Some(1),
            ..elephants::of("200 Mbit/s", interval)
        };
        let spec = elephants::two_queues(of_elephants, 40);
        assert_allocates_nothing(&spec);
    }
}

#[test]
fn counting_the_flows_of_a_slice_allocates_nothing() {
    let mut spec = policy(vec![vlan_class(1), vlan_class(2)]);
    spec.discipline = Discipline::Guaranteed;
    for class in &mut spec.classes {
        class.queue.limit = Some(QueueLimitSpec::Packets(40));
    }
    let mut pipeline = support::Port::new(&spec, Some(BitRate::new(1_000_000_000))).pipeline;
    let flows = SliceFlows {
        weigh: true,
        queue: Some(flows::PATIENT),
        elephants: Some(flows::elephants(10_000, 1)),
    };
    let change = SliceChange::Flows {
        name: "vlan1".into(),
        flows: Box::new(flows),
    };
    pipeline.change_slice(change, Instant::ZERO).unwrap();
    assert_pipeline_allocates_nothing(&mut pipeline);
}

#[test]
fn queues_chosen_by_colour_and_weighed_by_active_flows_allocate_nothing() {
    let counted = |name: &str| NamedQueueSpec {
        per_flow: true,
        queue: QueueLimitSpec::Packets(40).into(),
        ..NamedQueueSpec::new(name)
    };
    let mut metered = vlan_class(1);
    metered.named_queue = Some("a".into());
    metered.police = Some(PolicerSpec {
        exceed: Some(Action::Queue("b".into())),
        refill_interval: Some(Duration::from_millis(1)),
        ..PolicerSpec::new(RateSpec::Absolute(rate("100 Mbit/s")))
    });
    let mut spec = policy(vec![metered, vlan_class(2)]);
    spec.discipline = Discipline::DeficitRoundRobin;
    spec.queues = vec![counted("a"), counted("b")];
    spec.classes[1].queue.limit = Some(QueueLimitSpec::Packets(40));
    assert_allocates_nothing(&spec);
}

#[test]
fn a_hierarchy_allocates_nothing() {
    let mut hqos = rig::of_pipes(&[125_000_000; 4], BitRate::new(1_000_000_000));
    let curve = HqosRedCurve {
        min_packets: 5,
        max_packets: 30,
        inverse_probability: 10,
        weight: 4,
    };
    hqos.red = Some(Box::new([[Some(curve); 3]; 13]));
    assert_allocates_nothing(&rig::policy(&hqos));
}

struct Dropped(u32);

impl FrameOwner for Dropped {
    fn on_dropped(&mut self, _: &Frame, _: DropReason) {
        self.0 += 1;
    }
}

fn assert_allocates_nothing(spec: &PolicySpec) {
    let mut pipeline = support::Port::new(spec, Some(BitRate::new(1_000_000_000))).pipeline;
    assert_pipeline_allocates_nothing(&mut pipeline);
}

fn assert_pipeline_allocates_nothing(pipeline: &mut Pipeline) {
    let before = ALLOCATIONS.with(Cell::get);
    let (mut sent, mut dropped) = (0u32, 0u32);
    for sequence in 0..200_000u64 {
        let now = Instant::from_nanos(sequence * 5_000);
        // Many flows, each with headers of its own.
        let mut fields = headers((sequence % 5) as u16);
        fields.source_port = (sequence % 3_001) as u16;
        let verdict = pipeline.on_frame(frame(sequence, 0, 1494), &fields, now);
        dropped += u32::from(matches!(verdict, Verdict::Dropped(_)));
        if sequence % 2 == 0 {
            sent += u32::from(pipeline.poll_egress(now).is_some());
        }
        while pipeline.poll_dropped().is_some() {
            dropped += 1;
        }
        if sequence % 64 == 0 {
            let mut owner = Dropped(0);
            pipeline.enqueue_burst(
                &[frame(sequence, 0, 1494); 40],
                &[fields; 40],
                now,
                &mut owner,
            );
            let mut room = 20;
            let _ = pipeline.dequeue_burst(now, |_| {
                (sent, room) = (sent + 1, room - 1);
                if room > 0 {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            dropped += owner.0;
        }
    }
    let allocations = ALLOCATIONS.with(Cell::get) - before;
    assert!(
        sent > 10_000 && dropped > 10_000,
        "sent {sent}, dropped {dropped}"
    );
    assert_eq!(allocations, 0);
}
