use super::support::*;
use insta::assert_snapshot;
use slicewise_model::{Admission, AdmissionParams, GuaranteeRequest, Rate};
use slicewise_units::{Accounting, BitRate, ByteCount};

fn refused(admission: &mut Admission, request: &GuaranteeRequest) -> String {
    let before = admission.clone();
    let refusal = admission.try_admit(request).unwrap_err();
    assert_eq!(*admission, before, "a refusal changes nothing");
    refusal.to_string()
}

#[test]
fn reports_numbers_that_guarantee_nothing() {
    let mut link = link("100 Mbit/s");
    assert_snapshot!(refused(&mut link, &request("0 bit/s", "3 kB", "5 ms")), @"a rate of zero guarantees nothing: at least 1 bit/s");
    assert_snapshot!(refused(&mut link, &request("1 Mbit/s", "1499 B", "5 ms")), @"a burst of 1.499 kB is smaller than the largest frame: at least 1.5 kB is needed");
    assert_snapshot!(refused(&mut link, &request("1 Mbit/s", "3 kB", "9999 ns")), @"a delay of 9.999 µs is shorter than 10 µs, the shortest of the link; 100 Mbit/s (L2) of the link is free: write a delay of at least 361.1 µs");
}

#[test]
fn reports_the_unreserved_rate() {
    let mut link = link("100 Mbit/s");
    link.try_admit(&request("90 Mbit/s", "3 kB", "50 ms"))
        .unwrap();
    assert_snapshot!(refused(&mut link, &request("20 Mbit/s", "3 kB", "5 ms")), @"guarantees 20 Mbit/s (L2), but only 10 Mbit/s (L2) of the link is free: write a rate of at most 10 Mbit/s");
    assert_eq!(link.rate_left(), "10 Mbit/s".parse().unwrap());
}

#[test]
fn reports_which_delay_is_infeasible_and_which_is_feasible() {
    let mut link = link("100 Mbit/s");
    assert_snapshot!(refused(&mut link, &request("10 Mbit/s", "20 kB", "1 ms")), @"up to 21.5 kB may be due within 1 ms, in which the link sends only 12.48 kB; 100 Mbit/s (L2) of the link is free: write a burst of at most 10.98 kB, or a delay of at least 1.722 ms");
    // A request that keeps its own delay but breaks the bound of a slice of a longer class.
    link.try_admit(&request("10 Mbit/s", "100 kB", "10 ms"))
        .unwrap();
    assert_snapshot!(refused(&mut link, &request("60 Mbit/s", "3 kB", "1 ms")), @"up to 172 kB may be due within 10 ms, in which the link sends only 124.9 kB; 90 Mbit/s (L2) of the link is free: write a rate of at most 18.21 Mbit/s, or a delay of at least 7.269 ms");
}

#[test]
fn reports_when_no_single_number_would_be_accepted() {
    let mut link = link("1 Mbit/s");
    assert_snapshot!(refused(&mut link, &request("2 Mbit/s", "20 kB", "1 ms")), @"guarantees 2 Mbit/s (L2), but only 1 Mbit/s (L2) of the link is free: no smaller rate, smaller burst or longer delay alone would be accepted");
}

#[test]
fn reports_the_unreserved_buffer() {
    let mut link = Admission::new(AdmissionParams {
        buffer: Some(ByteCount::new(10_000)),
        ..params("100 Mbit/s")
    });
    link.try_admit(&request("1 Mbit/s", "3 kB", "5 ms"))
        .unwrap();
    // 3,000 B, and 5 ms of 1 Mbit/s.
    assert_eq!(link.buffer_left(), Some(ByteCount::new(6_375)));
    assert_snapshot!(refused(&mut link, &request("1 Mbit/s", "6 kB", "5 ms")), @"up to 6.625 kB may queue, but only 6.375 kB of the buffer is free; 99 Mbit/s (L2) of the link is free: write a rate of at most 600 kbit/s, a burst of at most 5.75 kB, or a delay of 601.1 µs");
}

#[test]
fn reports_how_many_equal_slices_fit() {
    let mut link = link("100 Mbit/s");
    let refusal = link
        .try_admit_many(&request("1 Mbit/s", "3 kB", "5 ms"), 50)
        .unwrap_err();
    assert_snapshot!(refusal, @"up to 151.5 kB may be due within 5 ms, in which the link sends only 62.48 kB; 100 Mbit/s (L2) of the link is free: write a delay of at least 12.13 ms, or 20 such slices");
    assert!(
        link.try_admit_many(&request("1 Mbit/s", "3 kB", "5 ms"), 21)
            .is_err()
    );
    assert!(
        link.try_admit_many(&request("1 Mbit/s", "3 kB", "5 ms"), 20)
            .is_ok()
    );
}

#[test]
fn a_slice_without_objective_gets_the_time_its_rate_takes_for_its_burst() {
    let link = link("1 Gbit/s");
    let delay = |request| link.delay_of(&request).unwrap().to_string();
    // 2.4 ms, rounded down to a class.
    assert_eq!(delay(without_objective("10 Mbit/s", "3 kB")), "2152.704 µs");
    assert_eq!(
        delay(without_objective("10 kbit/s", "3 kB")),
        "97419.264 µs",
        "the longest at most"
    );
    assert_eq!(
        delay(without_objective("900 Mbit/s", "1500 B")),
        "11.892 µs"
    );
}

#[test]
fn a_link_that_counts_more_bytes_is_tested_for_the_smallest_frames() {
    let l1 = |accounting, largest_frame| {
        Admission::new(AdmissionParams {
            link: Rate {
                rate: BitRate::new(84_000_000),
                accounting: Accounting::L1,
            },
            accounting,
            largest_frame: ByteCount::new(largest_frame),
            ..params("1 bit/s")
        })
    };
    let largest = |link: Admission| {
        let rate = link.largest_rate(&request("1 bit/s", "1524 B", "100 ms"));
        rate.unwrap().bits_per_second()
    };
    // 60 bytes occupy the wire as 84 do.
    assert_eq!(largest(l1(Accounting::L2, 1_500)), 60_000_000);
    assert_eq!(largest(l1(Accounting::L1, 1_524)), 84_000_000);
    // After two tags the IP packet has 38 of them.
    assert_eq!(largest(l1(Accounting::L3, 1_478)), 38_000_000);
    let mut link = l1(Accounting::L2, 1_500);
    // 20 kB in frames of 60 B are 28 kB, behind one largest frame of 1,524 B.
    let refusal = link.try_admit(&request("1 Mbit/s", "20 kB", "1 ms"));
    assert!(
        refusal
            .unwrap_err()
            .to_string()
            .starts_with("up to 29.53 kB may be due"),
    );
    assert_snapshot!(refused(&mut link, &request("61 Mbit/s", "3 kB", "100 ms")), @"guarantees 61 Mbit/s (L2), in small frames 85.4 Mbit/s (L1), but only 84 Mbit/s (L1) of the link is free: write a rate of at most 60 Mbit/s (L2), a smallest frame of at least 64 B, or `counts: L1` for all guarantees of the link");
}

#[test]
fn a_link_that_counts_fewer_bytes_is_not_overcommitted() {
    let link = Admission::new(AdmissionParams {
        accounting: Accounting::L1,
        ..params("100 Mbit/s")
    });
    assert_eq!(link.rate_left(), "100 Mbit/s".parse().unwrap());
}

#[test]
fn a_change_that_does_not_fit_changes_nothing() {
    let mut link = link("100 Mbit/s");
    let mut admitted = link
        .try_admit(&request("10 Mbit/s", "3 kB", "5 ms"))
        .unwrap();
    let (before, given) = (link.clone(), admitted.params());
    assert!(
        link.try_change(&mut admitted, &request("101 Mbit/s", "3 kB", "5 ms"))
            .is_err()
    );
    assert_eq!((&link, admitted.params()), (&before, given));
    // Both at once would not fit.
    link.try_change(&mut admitted, &request("95 Mbit/s", "3 kB", "5 ms"))
        .unwrap();
    assert_eq!(link.rate_left(), "5 Mbit/s".parse().unwrap());
    link.release(admitted);
    assert_eq!(link, Admission::new(params("100 Mbit/s")));
}

#[test]
fn equal_slices_that_guarantee_nothing_are_offered_in_no_number() {
    let mut link = link("100 Mbit/s");
    for request in [
        request("0 bit/s", "3 kB", "5 ms"),
        request("1 Mbit/s", "1 kB", "5 ms"),
    ] {
        let refusal = link.try_admit_many(&request, 5).unwrap_err();
        assert_eq!(refusal.offer.count, None, "{refusal}");
    }
}

#[test]
fn a_full_link_offers_no_rate_and_a_rate_that_fills_it_a_burst() {
    let mut link = link("100 Mbit/s");
    let all = request("100 Mbit/s", "3 kB", "50 ms");
    assert!(link.largest_burst(&all).is_some());
    link.try_admit(&all).unwrap();
    assert_eq!(link.largest_rate(&all), None);
}

#[test]
fn a_stated_smallest_frame_frees_what_small_frames_would_take() {
    let l1 = || {
        Admission::new(AdmissionParams {
            link: Rate {
                rate: BitRate::new(100_000_000),
                accounting: Accounting::L1,
            },
            ..params("1 bit/s")
        })
    };
    let with = |bytes| GuaranteeRequest {
        smallest_frame: ByteCount::new(bytes),
        ..request("90 Mbit/s", "3 kB", "100 ms")
    };
    assert_snapshot!(refused(&mut l1(), &with(0)), @"guarantees 90 Mbit/s (L2), in small frames 126 Mbit/s (L1), but only 100 Mbit/s (L1) of the link is free: write a rate of at most 71.42 Mbit/s (L2), a smallest frame of at least 216 B, or `counts: L1` for all guarantees of the link");
    // 216 of 240 bytes on the wire.
    assert!(l1().try_admit(&with(215)).is_err());
    let mut link = l1();
    link.try_admit(&with(216)).unwrap();
    assert_eq!(link.rate_left(), BitRate::ZERO);
    assert!(link.held_for_small_frames() > BitRate::new(8_000_000));
    assert_snapshot!(refused(&mut l1(), &with(1_501)), @"a smallest frame of 1.501 kB is larger than the largest frame, of 1.5 kB");
}
