//! Invariants of every set of guarantees.

use super::support::params;
use proptest::prelude::*;
use slicewise_model::{Admission, AdmissionParams, DelayRange, GuaranteeRequest, Rate};
use slicewise_units::{BitRate, ByteCount, Duration};

const LARGEST_FRAME: u64 = 1_500;

fn small(link: u64, buffer: Option<u64>) -> Admission {
    Admission::new(AdmissionParams {
        link: Rate::l2(BitRate::new(link)),
        largest_frame: ByteCount::new(LARGEST_FRAME),
        buffer: buffer.map(ByteCount::new),
        delays: DelayRange::new(Duration::from_micros(100), Duration::from_millis(30)),
        ..params("1 bit/s")
    })
}

fn requests() -> impl Strategy<Value = GuaranteeRequest> {
    let rate = prop_oneof![
        1..40_000_000u64,
        1..2_000_000u64,
        90_000_000..100_000_000u64
    ];
    let burst = prop_oneof![1_500..6_000u64, 1_500..100_000u64];
    let delay = prop::option::of(100_000..40_000_000u64);
    (rate, burst, delay).prop_map(|(rate, burst, delay)| GuaranteeRequest {
        rate: BitRate::new(rate),
        burst: ByteCount::new(burst),
        delay: delay.map(Duration::from_nanos),
        smallest_frame: ByteCount::ZERO,
    })
}

const LINK: u64 = 100_000_000;

/// Brute force: whether the demand within any interval of a grid, or within the delay of any slice,
/// exceeds what the link sends.
fn overloads(admission: &Admission, slices: &[GuaranteeRequest], grid: u64) -> bool {
    let delays: Vec<u64> = slices
        .iter()
        .map(|slice| {
            let delay = admission.delay_of(slice).unwrap();
            admission.params().delays.to_deadline(delay).nanos()
        })
        .collect();
    let longest = delays.iter().copied().max().unwrap_or(0);
    let intervals = (1..=grid).map(|step| 2 * longest / grid * step);
    intervals.chain(delays.iter().copied()).any(|interval| {
        let due: Vec<u128> = slices
            .iter()
            .zip(&delays)
            .filter(|&(_, &delay)| delay <= interval)
            .map(|(slice, delay)| {
                u128::from(slice.burst.bytes()) * 8_000_000_000
                    + u128::from(slice.rate.bits_per_second()) * u128::from(interval - delay)
            })
            .collect();
        let under_way = u128::from(LARGEST_FRAME) * 8_000_000_000;
        let sent = u128::from(LINK) * u128::from(interval);
        !due.is_empty() && due.iter().sum::<u128>() + under_way > sent
    })
}

fn rates(slices: &[GuaranteeRequest]) -> u64 {
    slices
        .iter()
        .map(|slice| slice.rate.bits_per_second())
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn admits_what_brute_force_admits_and_nothing_else(
        asked in prop::collection::vec(requests(), 1..12),
    ) {
        let mut admission = small(LINK, None);
        let mut slices = Vec::new();
        for request in asked {
            let admitted = admission.try_admit(&request).is_ok();
            slices.push(request);
            let fits = rates(&slices) <= LINK && !overloads(&admission, &slices, 500);
            prop_assert_eq!(admitted, fits);
            if !admitted {
                slices.pop();
            }
        }
    }

    #[test]
    fn the_order_of_admission_does_not_matter(
        asked in prop::collection::vec(requests(), 1..12),
        buffer in prop::option::of(10_000..400_000u64),
        seed in any::<u64>(),
    ) {
        let mut admission = small(LINK, buffer);
        let mut admitted: Vec<GuaranteeRequest> = asked
            .into_iter()
            .filter(|request| admission.try_admit(request).is_ok())
            .collect();
        let turn = usize::try_from(seed % (admitted.len() as u64 + 1)).unwrap();
        admitted.rotate_left(turn);
        admitted.reverse();
        let mut again = small(LINK, buffer);
        for request in &admitted {
            prop_assert!(again.try_admit(request).is_ok());
        }
        prop_assert_eq!(again, admission);
    }

    #[test]
    fn releasing_and_changing_give_the_same_state_as_starting_afresh(
        asked in prop::collection::vec((requests(), requests(), 0..3u8), 1..12),
        probe in requests(),
    ) {
        let mut admission = small(LINK, Some(300_000));
        let mut kept = Vec::new();
        for (request, other, fate) in asked {
            let before = admission.clone();
            let Ok(mut admitted) = admission.try_admit(&request) else { continue };
            match fate {
                0 => {
                    admission.release(admitted);
                    prop_assert_eq!(&admission, &before);
                }
                1 => {
                    let changed = admission.try_change(&mut admitted, &other).is_ok();
                    prop_assert_eq!(changed, before.clone().try_admit(&other).is_ok());
                    kept.push(if changed { other } else { request });
                }
                _ => kept.push(request),
            }
        }
        let mut fresh = small(LINK, Some(300_000));
        for request in &kept {
            prop_assert!(fresh.try_admit(request).is_ok());
        }
        prop_assert_eq!(&fresh, &admission);
        prop_assert_eq!(fresh.try_admit(&probe), admission.try_admit(&probe));
    }

    #[test]
    fn offered_values_are_accepted_and_one_more_is_not(
        before in prop::collection::vec(requests(), 0..8),
        request in requests(),
        buffer in prop::option::of(10_000..400_000u64),
    ) {
        let mut admission = small(LINK, buffer);
        for request in &before {
            let _ = admission.try_admit(request);
        }
        let accepts = |request| admission.clone().try_admit(&request).is_ok();
        let with_rate = |rate| GuaranteeRequest { rate, ..request };
        let with_burst = |burst| GuaranteeRequest { burst, ..request };
        let with_delay = |delay| GuaranteeRequest { delay: Some(delay), ..request };
        if let Some(rate) = admission.largest_rate(&request) {
            prop_assert!(accepts(with_rate(rate)));
            for more in [1, 2, 100, 100_000, 50_000_000] {
                let rate = BitRate::new(rate.bits_per_second() + more);
                prop_assert!(!accepts(with_rate(rate)));
            }
        } else {
            prop_assert!(!accepts(request));
            prop_assert!(!accepts(with_rate(BitRate::new(1))));
        }
        if let Some(burst) = admission.largest_burst(&request) {
            prop_assert!(accepts(with_burst(burst)));
            for more in [1, 2, 100, 10_000] {
                let burst = ByteCount::new(burst.bytes() + more);
                prop_assert!(!accepts(with_burst(burst)));
            }
        } else {
            prop_assert!(!accepts(request));
        }
        if let Some(delay) = admission.smallest_delay(&request) {
            prop_assert!(accepts(with_delay(delay)));
            let shorter = Duration::from_nanos(delay.nanos() - 1);
            prop_assert!(!accepts(with_delay(shorter)));
        } else {
            prop_assert!(!accepts(request));
        }
        if let Err(refusal) = admission.clone().try_admit(&request) {
            prop_assert!(refusal.offer.rate.is_none_or(|rate| rate < request.rate));
            prop_assert!(refusal.offer.burst.is_none_or(|burst| burst < request.burst));
            if let Some(rate) = refusal.offer.rate {
                prop_assert!(accepts(with_rate(rate)));
            }
            if let Some(burst) = refusal.offer.burst {
                prop_assert!(accepts(with_burst(burst)));
            }
        }
    }

    #[test]
    fn many_equal_slices_are_admitted_as_if_one_by_one(
        before in prop::collection::vec(requests(), 0..4),
        request in requests(),
        count in 1..20u64,
    ) {
        let mut admission = small(LINK, Some(400_000));
        for request in &before {
            let _ = admission.try_admit(request);
        }
        let mut one_by_one = admission.clone();
        let fitting = (0..count).take_while(|_| one_by_one.try_admit(&request).is_ok()).count();
        match admission.try_admit_many(&request, count) {
            Ok(_) => prop_assert_eq!(admission, one_by_one),
            Err(refusal) if count > 1 => {
                prop_assert_eq!(refusal.offer.count.unwrap_or(0), fitting as u64);
            }
            Err(_) => prop_assert_eq!(fitting, 0),
        }
    }
}
