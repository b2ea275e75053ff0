//! The decision of a loop over the rates of classes: what each class gets of a link.

use proptest::collection::vec;
use proptest::prelude::*;
use slicewise_model::reallocation::allocate;
use slicewise_model::{
    PolicySpec, RateDemand, RateLimits, RateSpec, ReallocatedClass, ReallocatedClassSpec,
    ReallocationParams, ReallocationSpec,
};
use slicewise_units::{BitRate, Duration};

fn bits(bits_per_second: u64) -> BitRate {
    BitRate::new(bits_per_second)
}

fn demand(wanted: u64, [minimum, guarantee, maximum]: [u64; 3]) -> RateDemand {
    RateDemand {
        wanted: bits(wanted),
        limits: RateLimits {
            guarantee: bits(guarantee),
            minimum: bits(minimum),
            maximum: bits(maximum),
        },
    }
}

/// A rate, and demands of classes whose guarantees fit in it.
fn link() -> impl Strategy<Value = (u64, Vec<RateDemand>)> {
    let class = (0..2_000u64, vec(0..1_000u64, 3));
    (vec(class, 1..8), 0..2_000u64).prop_map(|(classes, spare)| {
        let demands = classes.into_iter().map(|(wanted, mut limits)| {
            limits.sort_unstable();
            demand(wanted, [limits[0], limits[1], limits[2]])
        });
        let demands: Vec<RateDemand> = demands.collect();
        let guaranteed = demands.iter().map(|it| it.limits.guarantee);
        let rate = spare + guaranteed.map(BitRate::bits_per_second).sum::<u64>();
        (rate, demands)
    })
}

fn allocated(rate: u64, demands: &[RateDemand]) -> Vec<u64> {
    let rates = allocate(bits(rate), demands);
    rates.into_iter().map(BitRate::bits_per_second).collect()
}

/// Wish of a class, within its limits.
fn wanted(of: &RateDemand) -> u64 {
    let wanted = of.wanted.max(of.limits.minimum).min(of.limits.maximum);
    wanted.bits_per_second()
}

proptest! {
    #[test]
    fn a_class_stays_within_its_limits_and_all_within_the_rate((rate, demands) in link()) {
        let rates = allocated(rate, &demands);
        prop_assert!(rates.iter().sum::<u64>() <= rate);
        for (own, of) in rates.iter().zip(&demands) {
            prop_assert!(of.limits.minimum.bits_per_second() <= *own);
            prop_assert!(*own <= of.limits.maximum.bits_per_second());
        }
    }

    #[test]
    fn a_guarantee_is_never_taken_from_a_class_that_wants_it((rate, demands) in link()) {
        for (own, of) in allocated(rate, &demands).iter().zip(&demands) {
            prop_assert!(*own >= wanted(of).min(of.limits.guarantee.bits_per_second()));
        }
    }

    #[test]
    fn what_is_unused_is_given_away((rate, demands) in link()) {
        let given: u64 = allocated(rate, &demands).iter().sum();
        let most = demands.iter().map(|of| of.limits.maximum.bits_per_second());
        let least = rate.min(most.sum());
        // Less than 1 bit/s of each class is left by rounding.
        prop_assert!(given + demands.len() as u64 > least, "{given} of {least}");
    }

    #[test]
    fn a_class_that_wants_more_has_no_less_than_any_beyond_its_guarantee((rate, demands) in link()) {
        let rates = allocated(rate, &demands);
        for (own, of) in rates.iter().zip(&demands).filter(|(own, of)| **own < wanted(of)) {
            for (other, of_other) in rates.iter().zip(&demands) {
                let guaranteed = wanted(of_other).min(of_other.limits.guarantee.bits_per_second());
                prop_assert!(*other <= guaranteed.max(own + 1), "{of:?} {own} < {other}");
            }
        }
    }

    #[test]
    fn a_class_that_wants_more_gets_no_less(
        (rate, demands) in link(),
        more in 0..1_000u64,
    ) {
        let mut wanting = demands.clone();
        wanting[0].wanted += bits(more);
        let (before, after) = (allocated(rate, &demands), allocated(rate, &wanting));
        prop_assert!(after[0] >= before[0], "{before:?} {after:?}");
    }

    #[test]
    fn an_estimate_rises_at_once_and_falls_the_slower_the_smaller_the_weight(
        before in 0..1_000_000u64,
        measured in 0..1_000_000u64,
        weights in (1..=100_000u32, 1..=100_000u32),
    ) {
        let estimate = |weight| {
            let estimate = damped(weight).estimate(bits(before), bits(measured));
            estimate.bits_per_second()
        };
        let (slow, fast) = (weights.0.min(weights.1), weights.0.max(weights.1));
        prop_assert!(estimate(slow) >= estimate(fast));
        prop_assert!((measured..=measured.max(before)).contains(&estimate(slow)));
        prop_assert_eq!(estimate(100_000), measured);
    }
}

fn damped(weight: u32) -> ReallocationParams {
    ReallocationParams {
        every: Duration::from_millis(100),
        delay: Duration::ZERO,
        rate: bits(100),
        headroom: 10_000,
        weight,
        classes: vec![ReallocatedClass {
            name: "class-default".to_owned(),
            limits: demand(0, [1, 50, 100]).limits,
        }],
    }
}

#[test]
fn a_damped_estimate_arrives_at_the_demand() {
    let estimate = (0..100).fold(bits(1_000), |it, _| damped(20_000).estimate(it, bits(10)));
    assert_eq!(estimate, bits(10));
}

#[test]
fn guarantees_come_first_then_demands_and_what_nobody_wants_goes_back() {
    let half = [1, 50, 100];
    // A class that wants little lends the rest.
    let rates = |one, other| allocated(100, &[demand(one, half), demand(other, half)]);
    assert_eq!(rates(20, 200), [20, 80]);
    // It gets its guarantee back when it wants it.
    assert_eq!(rates(50, 200), [50, 50]);
    // What neither wants goes back to the guarantees, then to all alike.
    assert_eq!(rates(10, 60), [40, 60]);
    assert_eq!(rates(0, 0), [50, 50]);
    let small = demand(0, [0, 10, 100]);
    assert_eq!(allocated(100, &[small, demand(0, half)]), [50, 50]);
    assert_eq!(allocated(70, &[small, demand(0, half)]), [20, 50]);
}

#[test]
fn headroom_is_added_to_what_was_measured() {
    assert_eq!(damped(100_000).decide(&[bits(60)]), [bits(100)]);
    let mut two = damped(100_000);
    two.classes.push(ReallocatedClass {
        name: "other".to_owned(),
        ..two.classes[0].clone()
    });
    assert_eq!(two.decide(&[bits(40), bits(90)]), [bits(44), bits(56)]);
}

#[test]
fn extreme_rates_are_divided_without_overflow() {
    let all = BitRate::MAX;
    let most = demand(u64::MAX, [0, all.bits_per_second(), u64::MAX]);
    let rates = allocate(all, &[most, demand(u64::MAX, [0, 0, u64::MAX])]);
    assert_eq!(rates, [all, bits(0)]);
    assert_eq!(allocate(bits(7), &[]), []);
}

#[test]
fn a_silent_class_keeps_a_frame_in_each_interval() {
    let class = ReallocatedClassSpec {
        name: "class-default".to_owned(),
        guarantee: RateSpec::PercentMilli(50_000),
        minimum: None,
        maximum: None,
    };
    let spec = ReallocationSpec {
        every: Duration::from_millis(100),
        delay: Duration::ZERO,
        rate: None,
        headroom: 0,
        weight: 100_000,
        classes: vec![class],
    };
    let policy = PolicySpec {
        classes: vec![slicewise_model::ClassSpec {
            shape: Some(RateSpec::PercentMilli(50_000).into()),
            ..slicewise_model::ClassSpec::class_default()
        }],
        ..empty()
    };
    let limits = spec.resolve(&policy, bits(10_000_000)).unwrap().classes[0].limits;
    assert_eq!(limits.minimum, bits(1_522 * 8 * 10));
    assert_eq!(limits.guarantee, bits(5_000_000));
    assert_eq!(limits.maximum, bits(10_000_000));
}

fn empty() -> PolicySpec {
    PolicySpec {
        name: "p".to_owned(),
        classes: Vec::new(),
        discipline: slicewise_model::Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    }
}
