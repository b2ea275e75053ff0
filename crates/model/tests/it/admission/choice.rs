//! The delay that a guarantee gets where it states none.

use super::support::*;
use insta::assert_snapshot;
use slicewise_model::{
    Admission, AdmissionParams, DelayReason, GuaranteeRequest, Rate, Reservations, SetMember,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// The delay given, and why.
fn given(admission: &mut Admission, request: &GuaranteeRequest) -> (Duration, DelayReason) {
    let delays = admission.params().delays;
    let delay = admission.try_admit(request).unwrap().params().delay;
    (delay, request.delay_reason(delay, delays))
}

#[test]
fn an_empty_link_grants_what_it_can_carry_whatever_the_default() {
    let asked = without_objective("90 Mbit/s", "3044 B");
    let (delay, reason) = given(&mut link("100 Mbit/s"), &asked);
    assert_snapshot!(delay, @"364.544 µs");
    assert_snapshot!(reason, @"none is stated: the smallest that fits, instead of the default of 269.1 µs");
    // Stated, it is refused as ever.
    let stated = GuaranteeRequest {
        delay: Some(asked.default_delay(params("1 bit/s").delays)),
        ..asked
    };
    let refusal = link("100 Mbit/s").try_admit(&stated).unwrap_err();
    assert_snapshot!(refusal, @"up to 4.544 kB may be due within 269.1 µs, in which the link sends only 3.35 kB; 100 Mbit/s (L2) of the link is free: write a burst of at most 1.85 kB, or a delay of at least 364.6 µs");
    // As published for P4-TINS: a bucket that takes the link longer than its longest delay.
    let published = without_objective("7 Gbit/s", "125 MB");
    let (delay, reason) = given(&mut link("10 Gbit/s"), &published);
    assert_snapshot!(delay, @"100002.224 µs");
    assert!(matches!(reason, DelayReason::Chosen { .. }));
    let (_, reason) = given(
        &mut link("1 Gbit/s"),
        &without_objective("10 Mbit/s", "3 kB"),
    );
    assert_eq!(reason, DelayReason::Default);
}

#[test]
fn a_burst_beyond_the_latest_deadline_is_refused_for_the_burst() {
    let mut link = link("100 Mbit/s");
    let refusal = link.try_admit(&without_objective("10 Mbit/s", "20 MB"));
    assert_snapshot!(refusal.unwrap_err(), @"guarantees a burst of 20 MB, but until the latest deadline of the link, 134.3 ms, it can send only 1.676 MB of it; 100 Mbit/s (L2) of the link is free: write a burst of at most 1.676 MB, or a longer `longest` among the `delays` of the link");
    link.try_admit(&without_objective("10 Mbit/s", "1670 kB"))
        .unwrap();
    let refusal = link.try_admit(&without_objective("10 Mbit/s", "900 kB"));
    assert_snapshot!(refusal.unwrap_err(), @"guarantees a burst of 900 kB, but until the latest deadline of the link, 134.3 ms, it can send only 5.587 kB of it; 90 Mbit/s (L2) of the link is free: write a burst of at most 5.587 kB, or a longer `longest` among the `delays` of the link");
}

/// 10 Mbit/s and 3 kB want 2.153 ms, for which the buffer is too small.
#[test]
fn where_the_buffer_is_too_small_for_the_default_a_shorter_delay_is_given() {
    let mut link = Admission::new(AdmissionParams {
        buffer: Some(ByteCount::new(4_000)),
        ..params("100 Mbit/s")
    });
    let (delay, _) = given(&mut link, &without_objective("10 Mbit/s", "3 kB"));
    assert_snapshot!(delay, @"361.024 µs");
}

#[test]
fn several_links_give_one_delay_that_fits_on_all() {
    let asked = without_objective("40 Mbit/s", "9 kB");
    let alone = |rate: &str| link(rate).try_admit(&asked).unwrap().params().delay;
    let mut both = Reservations::new(&[params("1 Gbit/s"), params("50 Mbit/s")]);
    let given = both.try_admit(&asked).unwrap().unwrap();
    assert_eq!(given.delay, alone("1 Gbit/s").max(alone("50 Mbit/s")));
    assert!(alone("1 Gbit/s") < alone("50 Mbit/s"));
}

/// The first alone would get its default, and leave no room for the second at any delay.
#[test]
fn a_set_is_admitted_where_one_by_one_would_not_be() {
    let first = without_objective("90 Mbit/s", "600 kB");
    let second = without_objective("10 Mbit/s", "840 kB");
    let mut one_by_one = link("100 Mbit/s");
    one_by_one.try_admit(&first).unwrap();
    one_by_one.try_admit(&second).unwrap_err();
    let given = |set: [GuaranteeRequest; 2]| {
        let answers = link("100 Mbit/s").try_admit_set(&set.map(SetMember::from));
        let [first, second] = answers.try_into().unwrap();
        [first.unwrap(), second.unwrap()]
    };
    let [a, b] = given([first, second]);
    let [c, d] = given([second, first]);
    assert_eq!([a, b], [d, c]);
}

/// More delays than are told apart: the smallest is rounded up to one in use, or a step.
#[test]
fn a_chosen_delay_is_rounded_up_where_there_are_too_many() {
    let mut link = link("1 Gbit/s");
    for index in 0..128 {
        let stated = GuaranteeRequest {
            delay: Some(Duration::from_micros(10_000 + 7 * index)),
            ..without_objective("1 Mbit/s", "1500 B")
        };
        link.try_admit(&stated).unwrap();
    }
    let classes = link.classes_in_use().count();
    let (delay, reason) = given(&mut link, &without_objective("860 Mbit/s", "100 kB"));
    assert!(matches!(reason, DelayReason::Chosen { .. }));
    assert!(params("1 bit/s").delays.steps().any(|step| step == delay));
    assert_eq!(link.classes_in_use().count(), classes + 1);
}

#[test]
fn a_changed_slice_keeps_its_delay_and_gets_another_if_it_must() {
    let mut link = link("100 Mbit/s");
    let had = link
        .try_admit(&without_objective("20 Mbit/s", "30 kB"))
        .unwrap();
    let delay = had.params().delay;
    link.release(had);
    let less = without_objective("10 Mbit/s", "3 kB");
    let kept = link.try_admit_again(&less, Some(delay)).unwrap();
    assert_eq!(kept.params().delay, delay);
    link.release(kept);
    let more = without_objective("90 Mbit/s", "900 kB");
    let other = link.try_admit_again(&more, Some(delay)).unwrap();
    assert!(other.params().delay > delay);
}

#[test]
fn layers_are_named() {
    let mut l1 = Admission::new(AdmissionParams {
        link: Rate {
            rate: BitRate::new(100_000_000),
            accounting: Accounting::L1,
        },
        ..params("1 bit/s")
    });
    l1.try_admit(&without_objective("50 Mbit/s", "3 kB"))
        .unwrap();
    let refusal = l1.try_admit(&without_objective("50 Mbit/s", "3 kB"));
    assert_snapshot!(refusal.unwrap_err(), @"guarantees 50 Mbit/s (L2), in small frames 70 Mbit/s (L1), but only 30 Mbit/s (L1) of the link is free: write a rate of at most 21.42 Mbit/s (L2), or `counts: L1` for all guarantees of the link");
}
