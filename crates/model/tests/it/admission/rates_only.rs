//! Links that promise rates and no delay.

use super::support::{params, request, without_objective};
use slicewise_model::{Admission, AdmissionParams, DelayRange, Problem};
use slicewise_units::{BitRate, ByteCount, Duration};

fn rates_only() -> Admission {
    Admission::new(AdmissionParams {
        delays: DelayRange::NONE,
        ..params("100 Mbit/s")
    })
}

#[test]
fn rates_are_admitted_up_to_that_of_the_link_whatever_their_bursts() {
    let mut link = rates_only();
    for (rate, burst) in [("70 Mbit/s", "125 MB"), ("20 Mbit/s", "1.25 MB")] {
        let admitted = link.try_admit(&without_objective(rate, burst)).unwrap();
        assert_eq!(admitted.params().delay, Duration::ZERO);
    }
    let third = without_objective("20 Mbit/s", "1.25 MB");
    let refusal = link.try_admit(&third).unwrap_err();
    insta::assert_snapshot!(refusal, @"guarantees 20 Mbit/s (L2), but only 10 Mbit/s (L2) of the link is free: write a rate of at most 10 Mbit/s");
    assert_eq!(link.largest_rate(&third), Some(BitRate::new(10_000_000)));
    assert_eq!(link.smallest_delay(&third), None);
    let small = without_objective("10 Mbit/s", "2 kB");
    assert_eq!(link.largest_rate(&small), Some(BitRate::new(10_000_000)));
    let burst = link.largest_burst(&small).unwrap();
    assert!(burst > ByteCount::new(1_000_000_000), "{burst}");
    let admitted = link.try_admit(&small).unwrap();
    assert_eq!(link.rate_left(), BitRate::ZERO);
    link.test_all().unwrap();
    link.release(admitted);
    assert_eq!(link.rate_left(), BitRate::new(10_000_000));
}

#[test]
fn a_delay_is_refused_with_what_to_do() {
    let mut link = rates_only();
    let refusal = link
        .try_admit(&request("10 Mbit/s", "3 kB", "5 ms"))
        .unwrap_err();
    insta::assert_snapshot!(refusal, @"a delay of 5 ms is asked for, but the link promises rates only, because its gateway meters slices (P4-TINS): leave the delay out, or use a link whose gateway has `discipline: guaranteed`");
    let offer = refusal.offer;
    assert_eq!((offer.rate, offer.burst, offer.delay), (None, None, None));
    // A delay that was promised is not given up silently.
    let promised = request("10 Mbit/s", "3 kB", "5 ms").with_delay(Duration::from_millis(5));
    let refusal = link.try_restore(&promised).unwrap_err();
    assert!(matches!(refusal.problem, Problem::NoDelays { .. }));
    assert_eq!(link.rate_left(), BitRate::new(100_000_000));
}
