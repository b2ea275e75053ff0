//! Invariants of every policy that resolves.

use super::support::*;
use proptest::prelude::*;
use slicewise_model::{
    BurstBits, ClassSpec, PolicerSpec, QueueLimitSpec, QueueSpec, RateSpec, RedCurve, ShaperSpec,
    WredKey, WredSpec,
};
use slicewise_units::{BitRate, ByteCount, Duration};

fn rate() -> impl Strategy<Value = RateSpec> {
    prop_oneof![
        (0..=120_000u32).prop_map(RateSpec::PercentMilli),
        (0..=200_000_000u64).prop_map(|bits| RateSpec::Absolute(BitRate::new(bits))),
        any::<u64>().prop_map(|bits| RateSpec::Absolute(BitRate::new(bits))),
    ]
}

fn shaper() -> impl Strategy<Value = ShaperSpec> {
    let burst = || prop::option::of(prop_oneof![0..1_000_000u64, any::<u64>()]);
    (rate(), burst(), burst(), any::<bool>()).prop_map(|(rate, bc, be, peak)| ShaperSpec {
        committed_burst_bits: bc.map(BurstBits::Bits),
        excess_burst_bits: be.map(BurstBits::Bits),
        peak,
        ..shape(rate)
    })
}

fn queue_limit() -> impl Strategy<Value = QueueLimitSpec> {
    prop_oneof![
        any::<u32>().prop_map(QueueLimitSpec::Packets),
        any::<u64>().prop_map(|bytes| QueueLimitSpec::Bytes(ByteCount::new(bytes))),
        any::<u64>().prop_map(|nanos| QueueLimitSpec::Time(Duration::from_nanos(nanos))),
    ]
}

fn wred_spec() -> impl Strategy<Value = WredSpec> {
    let curve = (0..70u8, any::<(u32, u32, u32)>()).prop_map(|(value, (min, max, denominator))| {
        let curve = RedCurve {
            min_packets: min,
            max_packets: max,
            mark_denominator: denominator,
        };
        (value, curve)
    });
    let key = prop_oneof![Just(WredKey::Dscp), Just(WredKey::Precedence)];
    (
        key,
        prop::collection::vec(curve, 0..3),
        prop::option::of(0..20u8),
    )
        .prop_map(|(key, curves, exponential_weight)| WredSpec {
            exponential_weight,
            ..wred(key, curves)
        })
}

fn class_spec() -> impl Strategy<Value = ClassSpec> {
    let limit = prop::option::of(queue_limit());
    let policer = (rate(), prop::option::of(rate()))
        .prop_map(|(cir, pir)| PolicerSpec { pir, ..police(cir) });
    (
        prop::option::of(rate()),
        prop::option::of(shaper()),
        limit,
        prop::option::of(wred_spec()),
        prop::option::of(policer),
        any::<bool>(),
    )
        .prop_map(
            |(minimum, shape, queue_limit, wred, police, is_priority)| ClassSpec {
                priority: is_priority.then(|| priority(minimum)),
                minimum: minimum.filter(|_| !is_priority),
                shape: shape.filter(|_| !is_priority),
                queue: wred
                    .filter(|_| !is_priority)
                    .map_or_else(QueueSpec::default, QueueSpec::from)
                    .with_limit(queue_limit),
                police,
                ..class("c")
            },
        )
}

proptest! {
    /// No input makes it panic, and accepted policies can run.
    #[test]
    fn resolved_policies_can_run(mut classes in prop::collection::vec(class_spec(), 0..4), link in 0..2_000_000_000u64) {
        for (index, class) in classes.iter_mut().enumerate() {
            class.name = format!("c{index}");
        }
        let Ok(params) = policy(classes).resolve(BitRate::new(link)) else { return Ok(()) };
        let mut guaranteed = 0;
        for class in &params.classes {
            if let Some((rate, burst)) = class.priority.and_then(|priority| priority.police) {
                guaranteed += rate.rate.bits_per_second();
                prop_assert!(burst >= ByteCount::new(1_522));
            }
            if let Some((rate, burst)) = class.minimum {
                guaranteed += rate.rate.bits_per_second();
                prop_assert!(rate.rate > BitRate::ZERO && burst > ByteCount::ZERO);
                let maximum = class.shape.map_or(rate.rate, |shape| shape.rate.rate);
                prop_assert!(rate.rate <= maximum);
            }
            if let Some(shape) = class.shape {
                prop_assert!(shape.rate.rate > BitRate::ZERO);
                prop_assert!(shape.burst >= ByteCount::new(1_522));
            }
            prop_assert!(class.queue.limit.packets > 0);
            prop_assert!(class.queue.limit.bytes >= ByteCount::new(1_522));
            if let Some(wred) = class.queue.wred() {
                prop_assert_eq!(wred.curves.len(), 64);
                prop_assert!((1..=16).contains(&wred.exponential_weight));
                prop_assert!(wred.typical_transmission > Duration::ZERO);
                for curve in &wred.curves {
                    prop_assert!(curve.min_packets <= curve.max_packets && curve.max_packets > 0);
                    prop_assert!(curve.mark_denominator > 0);
                }
            }
        }
        prop_assert!(guaranteed <= link);
    }
}
