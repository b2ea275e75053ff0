//! Extreme values: nothing wraps, and nothing is admitted by overflow.

use super::support::*;
use slicewise_model::{Admission, AdmissionParams, DelayRange, GuaranteeRequest, Rate};
use slicewise_units::{BitRate, ByteCount, Duration};

#[test]
fn a_million_slices_fill_a_link_of_400_gbit_to_the_last_bit_per_second() {
    let mut link = link("400 Gbit/s");
    let asked = request("400 kbit/s", "1500 B", "80 ms");
    let all = link.try_admit_many(&asked, 1_000_000).unwrap();
    assert_eq!(link.rate_left(), BitRate::ZERO);
    assert!(
        link.try_admit(&request("1 bit/s", "1500 B", "80 ms"))
            .is_err()
    );
    assert!(link.try_admit_many(&asked, u64::MAX).is_err());
    link.release(all);
    for _ in 0..1_000_000 {
        link.try_admit(&asked).unwrap();
    }
    assert_eq!(link.rate_left(), BitRate::ZERO);
}

#[test]
fn the_fastest_link_can_be_fully_guaranteed_and_not_one_bit_more() {
    let mut link = link("100 Tbit/s");
    assert!(
        link.try_admit(&request("100 Tbit/s", "1500 B", "10 us"))
            .is_ok()
    );
    assert!(
        link.try_admit(&request("1 bit/s", "1500 B", "10 us"))
            .is_err()
    );
}

#[test]
fn the_slowest_link_keeps_bounds_of_hours() {
    let mut link = Admission::new(AdmissionParams {
        delays: DelayRange::new(Duration::from_secs(12_000), Duration::from_secs(100_000)),
        ..params("1 bit/s")
    });
    // A burst and a frame being transmitted, 24,000 s, and a bucket of 1.099511627776 s.
    assert!(
        link.try_admit(&request("1 bit/s", "1500 B", "24001 s"))
            .is_err()
    );
    assert!(
        link.try_admit(&request("1 bit/s", "1500 B", "24002 s"))
            .is_ok()
    );
    assert!(
        link.try_admit(&request("1 bit/s", "1500 B", "24002 s"))
            .is_err()
    );
}

#[test]
fn extreme_numbers_neither_wrap_nor_are_admitted() {
    let most = u64::MAX;
    for (rate, delay) in [
        (1, 1),
        (1, most),
        (most, 1),
        (most, most),
        (most, 1_000_000),
    ] {
        let mut link = Admission::new(AdmissionParams {
            link: Rate::l2(BitRate::new(rate)),
            delays: DelayRange::new(Duration::from_nanos(delay), Duration::from_nanos(most)),
            ..params("1 bit/s")
        });
        let asked = GuaranteeRequest {
            rate: BitRate::new(most),
            burst: ByteCount::new(most),
            delay: Some(Duration::from_nanos(most)),
            smallest_frame: ByteCount::ZERO,
        };
        for asked in [
            asked,
            GuaranteeRequest {
                delay: None,
                ..asked
            },
        ] {
            for count in [1, 2, most] {
                let fits = link.try_admit_many(&asked, count).is_ok();
                // 584 years at 18 Ebit/s are enough for that burst at that rate.
                assert!(
                    !fits || (rate == most && count == 1),
                    "{rate} {delay} {count}"
                );
            }
        }
    }
}
