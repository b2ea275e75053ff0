use super::support::{class, policy};
use insta::assert_snapshot;
use slicewise_model::hqos::{
    BEST_EFFORT, HqosPipeProfile, HqosPipeRange, HqosRates, HqosRedCurve, HqosSubport,
    TRAFFIC_CLASSES,
};
use slicewise_model::{
    ClassSpec, Discipline, HqosError, HqosParams, HqosSpec, PolicySpec, PrioritySpec,
    QueueLimitSpec,
};
use slicewise_units::BitRate;

const PORT: BitRate = BitRate::new(10_000_000_000);

/// The configuration of the sample application: 4,096 pipes with a 4,096th of 10 Gbit/s each.
fn sample() -> HqosSpec {
    let rates = |rate, tc_period| HqosRates {
        tb_rate: rate,
        tb_size: 1_000_000,
        tc_rates: [rate; TRAFFIC_CLASSES],
        tc_period,
    };
    HqosSpec {
        subports: vec![HqosSubport {
            profile: 0,
            pipes: 4096,
            queue_sizes: [64; TRAFFIC_CLASSES],
            assigned: vec![HqosPipeRange {
                first: 0,
                last: 4095,
                profile: 0,
            }],
        }],
        subport_profiles: vec![rates(1_250_000_000, 10)],
        pipe_profiles: vec![HqosPipeProfile {
            rates: rates(305_175, 40),
            oversubscription_weight: 1,
            wrr_weights: [1, 2, 4, 8],
        }],
        ..HqosSpec::default()
    }
}

fn changed(change: impl FnOnce(&mut HqosSpec)) -> Result<HqosParams, HqosError> {
    let mut spec = sample();
    change(&mut spec);
    spec.resolve(PORT)
}

fn refusal(change: impl FnOnce(&mut HqosSpec)) -> HqosError {
    changed(change).unwrap_err()
}

#[test]
fn rates_become_bytes_of_the_ports_time() {
    let params = sample().resolve(PORT).unwrap();
    assert_eq!((params.rate, params.mtu), (1_250_000_000, 1546));
    let subport = params.subports[0].credits;
    assert_eq!((subport.tb_credits_per_period, subport.tb_period), (1, 1));
    assert_eq!(subport.tc_period, 12_500_000);
    let pipe = params.pipe_profiles[0].credits;
    assert_eq!((pipe.tb_credits_per_period, pipe.tb_period), (1, 4096));
    assert_eq!(pipe.tc_period, 50_000_000);
    assert_eq!(pipe.tc_credits_per_period, [12_207; TRAFFIC_CLASSES]);
    assert_eq!(params.pipe_profiles[0].wrr_costs, [8, 4, 2, 1]);
}

#[test]
fn what_the_library_refuses_is_refused_by_section_and_key() {
    assert_snapshot!(refusal(|spec| spec.subports.clear()), @"[port]: `number of subports per port`: is 0: must be a power of two, at most 8");
    assert_snapshot!(refusal(|spec| spec.mtu = 0), @"[port]: `mtu`: is 0 B: must be 1 to 65535");
    assert_snapshot!(refusal(|spec| spec.frame_overhead = 70_000), @"[port]: `frame overhead`: is 70000 B: at most 65535");
    assert_snapshot!(refusal(|spec| spec.pipe_profiles.clear()), @"[port]: `pipe profile`: there are 0 of them: 1 to 256 are possible");
    assert_snapshot!(refusal(|spec| spec.subports[0].pipes = 1000), @"[subport 0]: `number of pipes per subport`: is 1000: must be a power of two, at most 4096");
    assert_snapshot!(refusal(|spec| spec.subports[0].profile = 1), @"[subport 0]: `subport`: profile 1 is not defined");
    assert_snapshot!(refusal(|spec| spec.subports[0].queue_sizes[3] = 48), @"[subport 0]: `queue sizes`: has 48 packets for traffic class 3: must be a power of two, or 0");
    assert_snapshot!(refusal(|spec| spec.subports[0].queue_sizes[BEST_EFFORT] = 0), @"[subport 0]: `queue sizes`: has no packets for traffic class 12: best effort needs queues");
    assert_snapshot!(refusal(|spec| spec.subports[0].queue_sizes[3] = 0), @"[pipe profile 0]: `tc 3 rate`: is 305175, but subport 0 has no queue of the class");
    assert_snapshot!(refusal(|spec| spec.pipe_profiles[0].rates.tc_rates[3] = 0), @"[pipe profile 0]: `tc 3 rate`: is 0, but subport 0 has a queue of the class: set its queue size to 0, too");
    assert_snapshot!(refusal(|spec| spec.subport_profiles[0].tb_rate += 1), @"[subport profile 0]: `tb rate`: is 1250000001 byte/s: must be 1 to 1250000000, the rate of the port (10 Gbit/s, which the link or its device has, and not the profile)");
    assert_snapshot!(refusal(|spec| spec.subport_profiles[0].tb_size = 0), @"[subport profile 0]: `tb size`: is 0 B: must be 1 to 1099511627776");
    assert_snapshot!(refusal(|spec| spec.subport_profiles[0].tc_rates[12] = 0), @"[subport profile 0]: `tc 12 rate`: is 0: every traffic class of a subport needs a rate");
    assert_snapshot!(refusal(|spec| spec.subport_profiles[0].tc_period = 0), @"[subport profile 0]: `tc period`: is 0 ms: must be 1 to 60000");
    assert_snapshot!(refusal(|spec| spec.pipe_profiles[0].rates.tc_rates[0] += 1), @"[pipe profile 0]: `tc 0 rate`: is 305176 byte/s, more than the token bucket's 305175");
    assert_snapshot!(refusal(|spec| spec.pipe_profiles[0].oversubscription_weight = 0), @"[pipe profile 0]: `tc 12 oversubscription weight`: is 0: must be 1 to 255");
    assert_snapshot!(refusal(|spec| spec.pipe_profiles[0].wrr_weights[2] = 0), @"[pipe profile 0]: `tc 12 wrr weights`: have a 0: each weight must be 1 to 255");
}

#[test]
fn a_rate_that_the_library_cannot_represent_is_refused() {
    assert_snapshot!(refusal(|spec| {
        let rates = &mut spec.pipe_profiles[0].rates;
        (rates.tb_rate, rates.tc_rates) = (100, [100; TRAFFIC_CLASSES]);
    }), @"[pipe profile 0]: `tb rate`: is 100 byte/s: the library cannot tell it from zero at the rate of the port");
    assert_snapshot!(refusal(|spec| {
        let rates = &mut spec.subport_profiles[0];
        (rates.tb_rate, rates.tc_rates) = (1_249_999_999, [1_249_999_999; TRAFFIC_CLASSES]);
    }), @"[subport profile 0]: `tb rate`: is 1249999999 byte/s: the library cannot tell it from the rate of the port, which is not the same");
}

#[test]
fn a_class_with_queues_that_gets_no_byte_in_a_period_is_refused() {
    let pipe = |rate, period| {
        changed(move |spec| {
            spec.pipe_profiles[0].rates.tc_rates[7] = rate;
            spec.pipe_profiles[0].rates.tc_period = period;
        })
    };
    assert_snapshot!(pipe(99, 10).unwrap_err(), @"[pipe profile 0]: `tc 7 rate`: is 99 byte/s, less than 1 byte in the `tc period` of 10 ms: no frame of the class would ever leave");
    assert!(pipe(100, 10).is_ok());
    assert_snapshot!(refusal(|spec| spec.subport_profiles[0].tc_rates[3] = 99), @"[subport profile 0]: `tc 3 rate`: is 99 byte/s, less than 1 byte in the `tc period` of 10 ms: no frame of the class would ever leave");
    // Nothing of a class without queues waits for its credits.
    let without_queue = changed(|spec| {
        spec.subport_profiles[0].tc_rates[3] = 99;
        spec.subports[0].queue_sizes[3] = 0;
        spec.pipe_profiles[0].rates.tc_rates[3] = 0;
    });
    assert!(without_queue.is_ok());
}

#[test]
fn a_pipe_has_one_profile_that_exists() {
    let range = |first, last, profile| HqosPipeRange {
        first,
        last,
        profile,
    };
    let assigned = |range| refusal(|spec| spec.subports[0].assigned.push(range));
    assert_snapshot!(assigned(range(9, 9, 0)), @"[subport 0]: `pipe 9`: overlaps `pipe 0-4095`: a pipe has one profile");
    assert_snapshot!(assigned(range(5, 4, 0)), @"[subport 0]: `pipe 5-4`: must be a range of pipes from 0 to 4095");
    assert_snapshot!(assigned(range(0, 4096, 0)), @"[subport 0]: `pipe 0-4096`: must be a range of pipes from 0 to 4095");
    assert_snapshot!(assigned(range(0, 1, 1)), @"[subport 0]: `pipe 0-1`: profile 1 is not defined");
}

#[test]
fn curves_of_early_detection_have_the_ranges_of_the_library() {
    let curve = HqosRedCurve {
        min_packets: 32,
        max_packets: 64,
        inverse_probability: 10,
        weight: 9,
    };
    let with = |curve| {
        changed(|spec| {
            let mut red = Box::new([[None; 3]; TRAFFIC_CLASSES]);
            red[2][1] = Some(curve);
            spec.red = Some(red);
        })
    };
    assert!(with(curve).is_ok());
    assert_snapshot!(with(HqosRedCurve { max_packets: 32, ..curve }).unwrap_err(), @"[red]: `tc 2 red max`: is 32: must be more than `tc 2 red min`, which is 32, and at most 1023");
    assert_snapshot!(with(HqosRedCurve { max_packets: 1024, ..curve }).unwrap_err(), @"[red]: `tc 2 red max`: is 1024: must be more than `tc 2 red min`, which is 32, and at most 1023");
    assert_snapshot!(with(HqosRedCurve { inverse_probability: 0, ..curve }).unwrap_err(), @"[red]: `tc 2 red inv prob`: is 0: must be 1 to 255");
    assert_snapshot!(with(HqosRedCurve { weight: 13, ..curve }).unwrap_err(), @"[red]: `tc 2 red weight`: is 13: must be 1 to 12");
}

#[test]
fn a_class_with_a_hierarchy_has_no_other_queue() {
    let hqos = || Some(Box::new(sample()));
    let resolve = |class: ClassSpec| policy(vec![class]).resolve(PORT);
    let params = resolve(ClassSpec {
        hqos: hqos(),
        ..class("a")
    })
    .unwrap();
    assert_eq!(
        params.classes[0].hqos.as_deref(),
        Some(&sample().resolve(PORT).unwrap())
    );
    assert_eq!(params.classes[0].queue.limit.packets, 4096 * 16 * 64);
    let limited = ClassSpec {
        queue: QueueLimitSpec::Packets(64).into(),
        hqos: hqos(),
        ..class("a")
    };
    assert_snapshot!(resolve(limited).unwrap_err(), @"policy `p`, class `a`: queue_limit: cannot be set on a class with a hierarchical scheduler, which has queues of its own");
    let priority = PrioritySpec {
        level: 1,
        rate: None,
        burst: None,
        accounting: slicewise_units::Accounting::L2,
    };
    let first = ClassSpec {
        priority: Some(priority),
        hqos: hqos(),
        ..class("a")
    };
    assert_snapshot!(resolve(first).unwrap_err(), @"policy `p`, class `a`: priority: cannot be set on a class with a hierarchical scheduler, which has queues of its own");
    let fifo = PolicySpec {
        discipline: Discipline::Fifo,
        ..policy(vec![ClassSpec {
            hqos: hqos(),
            ..ClassSpec::class_default()
        }])
    };
    assert_snapshot!(fifo.resolve(PORT).unwrap_err(), @"policy `p`, class `class-default`: hqos: is for the disciplines `minimum_share` and `deficit_round_robin`");
}
