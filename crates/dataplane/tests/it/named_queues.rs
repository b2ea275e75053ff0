//! Named queues, meters whose colour chooses one, and changes of both while frames wait.

use crate::support::*;
use proptest::prelude::*;
use slicewise_dataplane::{DropReason, Verdict};
use slicewise_model::{
    Action, BurstSpec, ClassMap, ClassSpec, Colour, Condition, Discipline, FlowQueueSpec,
    MatchMode, NamedQueueSpec, PolicerSpec, PolicySpec, QueueLimitSpec, QueueSpec, RateSpec,
};
use slicewise_units::ByteCount;

/// A queue of up to 5,000 packets.
fn queue(name: &str) -> NamedQueueSpec {
    NamedQueueSpec {
        queue: QueueLimitSpec::Packets(5_000).into(),
        ..NamedQueueSpec::new(name)
    }
}

fn high() -> NamedQueueSpec {
    NamedQueueSpec {
        priority: Some(1),
        ..queue("high")
    }
}

fn class_in(vlan: u16, queue: &str) -> ClassSpec {
    ClassSpec {
        named_queue: Some(queue.to_owned()),
        ..vlan_class(vlan)
    }
}

/// RFC 2698 with a peak burst of twice the committed one.
fn meter(cir: &str, pir: &str, burst: u64) -> PolicerSpec {
    let size = |bytes| Some(BurstSpec::Size(ByteCount::new(bytes)));
    PolicerSpec {
        cbs: size(burst),
        pir: Some(RateSpec::Absolute(rate(pir))),
        pbs: size(2 * burst),
        conform: Some(Action::Transmit),
        violate: Some(Action::Drop),
        ..PolicerSpec::new(RateSpec::Absolute(rate(cir)))
    }
}

/// A class that waits in `green` within its rate, and in `yellow` beyond.
fn metered(vlan: u16, green: &str, yellow: &str, meter: PolicerSpec) -> ClassSpec {
    ClassSpec {
        police: Some(PolicerSpec {
            exceed: Some(Action::Queue(yellow.to_owned())),
            ..meter
        }),
        ..class_in(vlan, green)
    }
}

fn with_queues(queues: Vec<NamedQueueSpec>, classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        discipline: Discipline::DeficitRoundRobin,
        queues,
        ..policy(classes)
    }
}

fn offer(port: &mut Port, vlan: u16, bytes: u32) -> Verdict {
    let at = port.now() + 1;
    port.offer(arrival(at, vlan, bytes))
}

fn order(port: &Port) -> Vec<(u16, u64)> {
    let departures = port.departures.iter();
    departures.map(|left| (left.vlan, left.sequence)).collect()
}

#[test]
fn the_colour_of_a_frame_chooses_its_queue() {
    let gold = metered(1, "high", "low", meter("1 kbit/s", "1 kbit/s", 2_500));
    let spec = with_queues(vec![high(), queue("low")], vec![gold, class_in(2, "low")]);
    let mut port = Port::new(&spec, Some(rate("1 Mbit/s")));
    for _ in 0..2 {
        let _ = offer(&mut port, 2, 1000);
    }
    let verdicts = [(); 6].map(|()| offer(&mut port, 1, 1000));
    // Two frames within CBS, three more within PBS.
    let dropped = Verdict::Dropped(DropReason::Policed);
    assert_eq!(verdicts[..5], [Verdict::Queued; 5]);
    assert_eq!(verdicts[5], dropped);
    port.run_until(u64::MAX / 2);
    // The first frame was on the wire; green overtakes the second, yellow waits behind it.
    let expected = [(2, 0), (1, 2), (1, 3), (2, 1), (1, 4), (1, 5), (1, 6)];
    assert_eq!(order(&port), expected);
    let colours: Vec<Colour> = port.departures.iter().map(|left| left.colour).collect();
    assert_eq!(colours[4..], [Colour::Yellow; 3]);
    assert_conserved(&port);
}

#[test]
fn every_queue_is_listed_once_with_the_frames_that_wait_in_it() {
    let classes = vec![
        class_in(1, "low"),
        vlan_class(2),
        class_in(3, "high"),
        vlan_class(4),
    ];
    let spec = with_queues(vec![queue("low"), queue("high")], classes);
    let mut port = Port::new(&spec, Some(rate("1 kbit/s")));
    // The first frame is on the wire; VLAN 5 is of class-default.
    for (vlan, frames) in [(1, 3), (2, 3), (3, 4), (4, 1), (5, 5)] {
        for _ in 0..frames {
            let _ = offer(&mut port, vlan, 1000);
        }
    }
    let mut lengths: Vec<_> = port.pipeline.queue_lengths().collect();
    lengths[..2].sort_unstable();
    let expected = [
        ("high", 4),
        ("low", 2),
        ("vlan2", 3),
        ("vlan4", 1),
        ("class-default", 5),
    ];
    assert_eq!(lengths, expected);
    let counters: Vec<_> = port.pipeline.counters().collect();
    for (class, &counters) in (0..).zip(&counters) {
        assert_eq!(port.pipeline.class_counters(class), Some(counters));
    }
    assert_eq!(port.pipeline.class_counters(5), None);
}

#[test]
fn classes_that_share_a_queue_share_its_limit_and_leave_in_order_of_arrival() {
    let low = NamedQueueSpec {
        queue: QueueLimitSpec::Packets(4).into(),
        ..queue("low")
    };
    let spec = with_queues(vec![low], vec![class_in(1, "low"), class_in(2, "low")]);
    let mut port = Port::new(&spec, Some(rate("1 Mbit/s")));
    let verdicts = [1, 2, 2, 1, 2, 1].map(|vlan| offer(&mut port, vlan, 1000));
    // One is on the wire.
    assert_eq!(verdicts[..5], [Verdict::Queued; 5]);
    assert_eq!(verdicts[5], Verdict::Dropped(DropReason::QueueFull));
    port.run_until(u64::MAX / 2);
    assert_eq!(order(&port), [(1, 0), (2, 1), (2, 2), (1, 3), (2, 4)]);
    let counted = |name: &str| {
        let class = port.pipeline.counters().find(|class| class.class == name);
        class.map(|class| (class.sent_frames, class.dropped_total()))
    };
    assert_eq!(
        (counted("vlan1"), counted("vlan2")),
        (Some((2, 1)), Some((3, 0)))
    );
}

#[test]
fn queues_share_by_weight_what_strict_priority_leaves() {
    let weighted = |name: &str, weight| NamedQueueSpec {
        weight: Some(weight),
        ..queue(name)
    };
    let queues = vec![high(), weighted("a", 1), weighted("b", 3)];
    // A class with a queue of its own takes part with its weight.
    let own = ClassSpec {
        weight: Some(2),
        queue: QueueLimitSpec::Packets(5_000).into(),
        ..vlan_class(4)
    };
    let classes = vec![class_in(1, "high"), class_in(2, "a"), class_in(3, "b"), own];
    let mut port = Port::new(&with_queues(queues, classes), Some(rate("100 Mbit/s")));
    for _ in 0..4_000 {
        for vlan in 2..=4 {
            let _ = port.offer(arrival(0, vlan, 1000));
        }
    }
    // 40 % of the link at strict priority.
    for n in 0..500 {
        let _ = port.offer(arrival(n * 200_000, 1, 1000));
    }
    port.run_until(100_000_000);
    let sent = [1, 2, 3, 4].map(|vlan| bytes_sent(&port.departures, vlan, 0, 100_000_000));
    assert_eq!(sent[0], 500_000);
    for (bytes, weight) in sent[1..].iter().zip([1, 3, 2]) {
        let share = 750_000 / 6 * weight;
        assert!(bytes.abs_diff(share) <= 3 * 1522 + 1000, "{sent:?}");
    }
}

#[test]
fn a_queue_has_the_minimum_and_the_shaper_of_a_class() {
    let minimum = NamedQueueSpec {
        minimum: Some(RateSpec::Absolute(rate("6 Mbit/s"))),
        ..queue("minimum")
    };
    let slow = NamedQueueSpec {
        shape: Some(RateSpec::Absolute(rate("1 Mbit/s")).into()),
        ..queue("slow")
    };
    let classes = vec![
        class_in(1, "minimum"),
        class_in(2, "slow"),
        class_in(3, "rest"),
    ];
    let spec = PolicySpec {
        discipline: Discipline::MinimumShare,
        ..with_queues(vec![minimum, slow, queue("rest")], classes)
    };
    let mut port = Port::new(&spec, Some(rate("10 Mbit/s")));
    for vlan in [1, 2, 3].repeat(2_000) {
        let _ = port.offer(arrival(0, vlan, 1000));
    }
    port.run_until(1_000_000_000);
    let [first, second, _] =
        [1, 2, 3].map(|vlan| bytes_sent(&port.departures, vlan, 0, 1_000_000_000));
    assert!(first >= 750_000 - 4_000, "{first}");
    assert!((121_000..=128_000).contains(&second), "{second}");
}

#[test]
fn all_classes_may_wait_in_queues_of_strict_priority() {
    let default = ClassSpec {
        named_queue: Some("second".into()),
        ..ClassSpec::class_default()
    };
    let second = NamedQueueSpec {
        priority: Some(2),
        ..queue("second")
    };
    let spec = with_queues(vec![second, high()], vec![class_in(1, "high"), default]);
    let mut port = Port::new(&spec, Some(rate("1 Mbit/s")));
    for vlan in [9, 9, 1] {
        let _ = offer(&mut port, vlan, 1000);
    }
    port.run_until(u64::MAX / 2);
    assert_eq!(order(&port), [(9, 0), (1, 2), (9, 1)]);
}

#[test]
fn a_child_policy_has_queues_of_its_own() {
    let child = with_queues(
        vec![high(), queue("low")],
        vec![class_in(1, "high"), class_in(2, "low")],
    );
    let outer = ClassSpec {
        child: Some(Box::new(child)),
        ..ClassSpec::class_default()
    };
    let spec = with_queues(vec![queue("low")], vec![class_in(3, "low"), outer]);
    let mut port = Port::new(&spec, Some(rate("1 Mbit/s")));
    for vlan in [2, 2, 1, 3] {
        let _ = offer(&mut port, vlan, 1000);
    }
    port.run_until(u64::MAX / 2);
    let order = order(&port);
    let position = |frame| order.iter().position(|&left| left == frame);
    assert!(position((1, 2)) < position((2, 1)), "{order:?}");
    assert_eq!(order.len(), 4);
}

#[test]
fn frames_of_a_flow_queue_are_kept_apart_by_flow_also_where_a_colour_chose_it() {
    let low = NamedQueueSpec {
        queue: FlowQueueSpec::default().into(),
        ..queue("low")
    };
    let drop_none = PolicerSpec {
        violate: Some(Action::Queue("low".into())),
        ..meter("8 bit/s", "8 bit/s", 1522)
    };
    // One class, whose flows have other addresses.
    let mut gold = metered(1, "high", "low", drop_none);
    gold.matches = ClassSpec::new(ClassMap {
        name: gold.name.clone(),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(1..=2)],
    })
    .matches;
    let mut port = Port::new(
        &with_queues(vec![high(), low], vec![gold]),
        Some(rate("1 Mbit/s")),
    );
    for vlan in [1, 1, 1, 1, 1, 2] {
        let _ = offer(&mut port, vlan, 1500);
    }
    port.run_until(u64::MAX / 2);
    let position = port.departures.iter().position(|left| left.vlan == 2);
    assert!(
        position < Some(4),
        "a new flow is served before the rest of an old one: {position:?}"
    );
}

fn two_queues(cir: &str) -> PolicySpec {
    let gold = metered(1, "high", "low", meter(cir, "1 Gbit/s", 1_600));
    with_queues(vec![high(), queue("low")], vec![gold, class_in(2, "low")])
}

#[test]
fn a_change_of_a_meters_rates_leaves_frames_where_they_wait() {
    let mut port = Port::new(&two_queues("8 bit/s"), Some(rate("1 Mbit/s")));
    for vlan in [2, 2, 1, 1, 2] {
        let _ = offer(&mut port, vlan, 1000);
    }
    port.apply(&two_queues("8 Mbit/s"));
    // Green again after 2 ms: in the queue that leaves first, before what has waited longer.
    port.run_until(2_000_000);
    let _ = offer(&mut port, 1, 1000);
    port.run_until(u64::MAX / 2);
    assert_eq!(
        order(&port),
        [(2, 0), (1, 2), (1, 5), (2, 1), (1, 3), (2, 4)]
    );
}

#[test]
fn what_waits_in_a_queue_that_its_class_leaves_goes_first() {
    let spec = |queue_of_first: &str| {
        let queues = vec![high(), queue("a"), queue("b")];
        with_queues(queues, vec![class_in(1, queue_of_first), class_in(2, "b")])
    };
    let mut port = Port::new(&spec("a"), Some(rate("1 Mbit/s")));
    for vlan in [2, 2, 1, 1] {
        let _ = offer(&mut port, vlan, 1000);
    }
    port.apply(&spec("high"));
    let _ = offer(&mut port, 1, 1000);
    port.run_until(u64::MAX / 2);
    // The other queue stays, and its frames wait for their turn.
    assert_eq!(order(&port), [(2, 0), (1, 2), (1, 3), (1, 4), (2, 1)]);
}

/// Two queues with the same weight, one for VLAN 1, one for VLANs 2 to 10, which are a flow each.
fn by_active_flows(limit: u32) -> PolicySpec {
    let counted = |name: &str| NamedQueueSpec {
        per_flow: true,
        queue: QueueLimitSpec::Packets(limit).into(),
        ..NamedQueueSpec::new(name)
    };
    let many = ClassSpec {
        matches: Some(ClassMap {
            name: "vlan2".into(),
            mode: MatchMode::Any,
            conditions: vec![Condition::OuterVlan(2..=10)],
        }),
        ..class_in(2, "many")
    };
    with_queues(
        vec![counted("one"), counted("many")],
        vec![class_in(1, "one"), many],
    )
}

/// Offers a frame of each of ten flows every millisecond, to a link of a fifth of that.
fn offer_ten_flows(port: &mut Port, millis: std::ops::Range<u64>) {
    for at in millis {
        for vlan in 1..=10 {
            // The flow that is alone in its queue sends as much as all others.
            for _ in 0..if vlan == 1 { 9 } else { 1 } {
                let _ = port.offer(arrival(at * 1_000_000, vlan, 1000));
            }
        }
    }
}

/// Bytes sent of one flow and of the nine others.
fn sent_of_both(port: &Port, from: u64, to: u64) -> (u64, u64) {
    let sent = |vlan| bytes_sent(&port.departures, vlan, from * 1_000_000, to * 1_000_000);
    (sent(1), (2..=10).map(sent).sum())
}

#[test]
fn queues_share_by_their_number_of_active_flows() {
    let mut port = Port::new(&by_active_flows(200), Some(rate("28800 kbit/s")));
    offer_ten_flows(&mut port, 0..1_000);
    // Nothing is known in the first interval.
    let (one, many) = sent_of_both(&port, 20, 100);
    assert!(one.abs_diff(many) <= 4_000, "{one} {many}");
    let (one, many) = sent_of_both(&port, 120, 1_000);
    assert!((9 * one).abs_diff(many) <= 9 * 20_000, "{one} {many}");
    assert_conserved(&port);
}

#[test]
fn a_change_keeps_the_count_of_active_flows() {
    let mut port = Port::new(&by_active_flows(200), Some(rate("28800 kbit/s")));
    offer_ten_flows(&mut port, 0..250);
    port.apply(&by_active_flows(201));
    offer_ten_flows(&mut port, 250..300);
    let (one, many) = sent_of_both(&port, 250, 300);
    assert!((9 * one).abs_diff(many) <= 9 * 6_000, "{one} {many}");
}

/// Where the frames of a class wait.
#[derive(Debug, Clone, Copy)]
enum Waits {
    Absent,
    Own,
    Named(usize),
    Metered {
        green: usize,
        yellow: usize,
        cir: u64,
        drops_red: bool,
    },
}

#[derive(Debug, Clone)]
enum Step {
    Offer { vlan: u16, bytes: u32, gap: u64 },
    Apply([Waits; 3], [bool; 4]),
}

const NAMES: [&str; 3] = ["high", "low", "rest"];

fn waits() -> impl Strategy<Value = Waits> {
    prop_oneof![
        1 => Just(Waits::Absent),
        1 => Just(Waits::Own),
        2 => (0..3usize).prop_map(Waits::Named),
        4 => (0..3usize, 0..3usize, 1..1_600_000u64, any::<bool>()).prop_map(
            |(green, yellow, cir, drops_red)| Waits::Metered { green, yellow, cir, drops_red }
        ),
    ]
}

fn random_policy(
    waits: [Waits; 3],
    [shaped, by_flow, reversed, per_flow]: [bool; 4],
) -> PolicySpec {
    let class = |(vlan, waits)| match waits {
        Waits::Absent => None,
        Waits::Own => Some(vlan_class(vlan)),
        Waits::Named(queue) => Some(class_in(vlan, NAMES[queue])),
        Waits::Metered {
            green,
            yellow,
            cir,
            drops_red,
        } => {
            let mut class = metered(
                vlan,
                NAMES[green],
                NAMES[yellow],
                meter("1 bit/s", "5 Mbit/s", 3_000),
            );
            let police = class.police.as_mut().unwrap();
            police.cir = RateSpec::Absolute(slicewise_units::BitRate::new(cir));
            if !drops_red {
                police.violate = Some(Action::Queue("rest".into()));
            }
            Some(class)
        }
    };
    let mut classes: Vec<ClassSpec> = (0u16..).zip(waits).filter_map(class).collect();
    if reversed {
        classes.reverse();
    }
    let low = NamedQueueSpec {
        per_flow,
        shape: shaped.then(|| RateSpec::Absolute(rate("3 Mbit/s")).into()),
        ..queue("low")
    };
    let rest = NamedQueueSpec {
        per_flow,
        ..queue("rest")
    };
    let rest = match by_flow {
        true => NamedQueueSpec {
            queue: QueueSpec::from(FlowQueueSpec::default()).with_limit(rest.queue.limit),
            ..rest
        },
        false => rest,
    };
    with_queues(vec![high(), low, rest], classes)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0u16..4, 60u32..1522, 0u64..800_000)
            .prop_map(|(vlan, bytes, gap)| Step::Offer { vlan, bytes, gap }),
        1 => ([waits(), waits(), waits()], any::<[bool; 4]>())
            .prop_map(|(waits, settings)| Step::Apply(waits, settings)),
    ]
}

proptest! {
    #[test]
    fn no_change_of_named_queues_loses_a_frame_or_reorders_a_colour_of_a_flow(
        first in [waits(), waits(), waits()],
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut port = Port::new(&random_policy(first, [false; 4]), Some(rate("5 Mbit/s")));
        let mut at = 0;
        for step in steps {
            match step {
                Step::Offer { vlan, bytes, gap } => {
                    at += gap;
                    let _ = port.offer(arrival(at, vlan, bytes));
                }
                Step::Apply(waits, settings) => {
                    let before = port.pipeline.backlog();
                    port.apply(&random_policy(waits, settings));
                    prop_assert_eq!(port.pipeline.backlog(), before, "a change loses nothing");
                }
            }
        }
        port.run_until(u64::MAX / 2);
        prop_assert_eq!(port.pipeline.backlog(), 0, "everything drains");
        prop_assert_eq!(port.offered(), port.departures.len() as u64 + port.dropped);
        assert_colours_in_order(&port.departures);
    }

    /// Rates alone: what waits leaves as if nothing had changed.
    #[test]
    fn a_change_of_rates_alone_changes_nothing_about_what_waits(
        waits in [waits(), waits(), waits()],
        settings in any::<[bool; 3]>(),
        arrivals in prop::collection::vec((0u16..4, 60u32..1522), 1..100),
    ) {
        let settings = [settings[0], false, settings[1], settings[2]];
        let other = waits.map(|waits| match waits {
            Waits::Metered { green, yellow, cir, drops_red } => {
                Waits::Metered { green, yellow, cir: cir / 2 + 1, drops_red }
            }
            other => other,
        });
        let [mut changed, mut unchanged] = [0, 1].map(|_| {
            Port::new(&random_policy(waits, settings), Some(rate("5 Mbit/s")))
        });
        for &(vlan, bytes) in &arrivals {
            let arrival = arrival(0, vlan, bytes);
            prop_assert_eq!(changed.offer(arrival), unchanged.offer(arrival));
        }
        changed.apply(&random_policy(other, settings));
        for port in [&mut changed, &mut unchanged] {
            port.run_until(u64::MAX / 2);
        }
        // Turns begin anew at a change, as those of classes do: within a queue nothing may differ.
        for (colour, vlan) in Colour::ALL.into_iter().flat_map(|colour| (0..4).map(move |vlan| (colour, vlan))) {
            let of = |port: &Port| -> Vec<u64> {
                let left = port.departures.iter();
                let left = left.filter(|left| (left.colour, left.vlan) == (colour, vlan));
                left.map(|left| left.sequence).collect()
            };
            prop_assert_eq!(of(&changed), of(&unchanged));
        }
        // What waits with priority still leaves before what does not.
        prop_assert_eq!(changed.departures.len(), unchanged.departures.len());
    }
}
