//! Invariants of every set of guarantees.

use super::support::params;
use proptest::prelude::*;
use slicewise_model::{
    Admission, AdmissionParams, DelayRange, GuaranteeParams, GuaranteeRequest, Problem, Rate,
    SetMember,
};
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
fn overloads(admission: &Admission, slices: &[GuaranteeParams], grid: u64) -> bool {
    let range = admission.params().delays;
    let to_deadline = |slice: &GuaranteeParams| range.to_deadline(slice.delay).nanos();
    let delays: Vec<u64> = slices.iter().map(to_deadline).collect();
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

fn rates(slices: &[GuaranteeParams]) -> u64 {
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
        let mut slices: Vec<GuaranteeParams> = Vec::new();
        for request in asked {
            let range = admission.params().delays;
            let fits = |delay| {
                let all = [slices.as_slice(), &[request.with_delay(delay)]].concat();
                rates(&all) <= LINK && !overloads(&admission, &all, 500)
            };
            let wanted = admission.delay_of(&request).unwrap();
            let expected = match (request.delay, fits(wanted)) {
                (Some(_), fits) => fits,
                (None, true) => true,
                (None, false) => fits(range.latest()),
            };
            let mut after = admission.clone();
            match after.try_admit(&request) {
                Ok(admitted) => {
                    let given = admitted.params().delay;
                    prop_assert!(expected && fits(given));
                    prop_assert!(given == wanted || request.delay.is_none() && !fits(wanted));
                    let shorter = Duration::from_nanos(given.nanos() - 1);
                    prop_assert!(given == wanted || !fits(shorter), "the smallest");
                    slices.push(admitted.params());
                    admission = after;
                }
                Err(refusal) => {
                    prop_assert!(!expected);
                    prop_assert_eq!(&after, &admission);
                    let is_of_delay = matches!(refusal.problem, Problem::Delay { .. });
                    prop_assert!(request.delay.is_some() || !is_of_delay, "{}", refusal);
                }
            }
        }
    }

    /// Stated delays, and unstated ones that a set is asked for, in whatever order.
    #[test]
    fn a_set_that_fits_is_admitted_in_any_order_with_the_same_delays(
        asked in prop::collection::vec(requests(), 1..12),
        seed in any::<u64>(),
    ) {
        let mut one_by_one = small(LINK, None);
        let mut set: Vec<GuaranteeRequest> = asked
            .into_iter()
            .filter(|request| one_by_one.try_admit(request).is_ok())
            .collect();
        let delays = |set: &[GuaranteeRequest]| {
            let mut admission = small(LINK, None);
            let members: Vec<SetMember> = set.iter().copied().map(SetMember::from).collect();
            let answers = admission.try_admit_set(&members);
            let mut given: Vec<GuaranteeParams> = answers.into_iter().map(Result::unwrap).collect();
            given.sort_unstable_by_key(|given| (given.rate, given.burst, given.delay));
            (admission, given)
        };
        let first = delays(&set);
        prop_assert!(!overloads(&first.0, &first.1, 500));
        let turn = usize::try_from(seed % (set.len() as u64 + 1)).unwrap();
        set.rotate_left(turn);
        set.reverse();
        prop_assert_eq!(&delays(&set), &first);
        // With their defaults, if all of these fit together.
        let by_default: Vec<GuaranteeParams> = set
            .iter()
            .map(|request| request.with_delay(first.0.delay_of(request).unwrap()))
            .collect();
        if !overloads(&first.0, &by_default, 500) {
            let is_as_wanted = |given| by_default.contains(given);
            prop_assert!(first.1.iter().all(is_as_wanted));
        }
    }

    /// With a limited buffer, what is admitted fits both, and what one by one fits is admitted as a set.
    #[test]
    fn a_set_never_exceeds_the_buffer(
        asked in prop::collection::vec(requests(), 1..12),
        buffer in 10_000..400_000u64,
    ) {
        let mut admission = small(LINK, Some(buffer));
        let members: Vec<SetMember> = asked.iter().copied().map(SetMember::from).collect();
        let answers = admission.try_admit_set(&members);
        let given: Vec<GuaranteeParams> = answers.into_iter().flatten().collect();
        prop_assert!(given.is_empty() || !overloads(&admission, &given, 500));
        let waiting = |given: &GuaranteeParams| {
            u128::from(given.burst.bytes()) * 8_000_000_000
                + u128::from(given.rate.bits_per_second()) * u128::from(given.delay.nanos())
        };
        let waiting = given.iter().map(waiting).sum::<u128>();
        prop_assert!(waiting <= u128::from(buffer) * 8_000_000_000);
        let mut one_by_one = small(LINK, Some(buffer));
        if asked.iter().all(|request| one_by_one.try_admit(request).is_ok()) {
            prop_assert_eq!(given.len(), asked.len());
        }
    }

    #[test]
    fn a_changed_slice_keeps_its_delay_while_that_fits(
        before in prop::collection::vec(requests(), 0..8),
        [asked, changed] in [requests(), requests()],
        buffer in prop::option::of(10_000..400_000u64),
    ) {
        let mut admission = small(LINK, buffer);
        for request in &before {
            let _ = admission.try_admit(request);
        }
        let without = admission.clone();
        let unstated = |request| GuaranteeRequest { delay: None, ..request };
        let (asked, changed) = (unstated(asked), unstated(changed));
        let Ok(admitted) = admission.try_admit(&asked) else { return Ok(()) };
        let had = admitted.params().delay;
        admission.release(admitted);
        let again = admission.try_admit_again(&changed, Some(had));
        let stated = GuaranteeRequest { delay: Some(had), ..changed };
        let fits = match had > without.params().delays.longest() {
            // No request can state that.
            true => again.as_ref().is_ok_and(|again| again.params().delay == had),
            false => without.clone().try_admit(&stated).is_ok(),
        };
        let kept = again.as_ref().is_ok_and(|again| again.params().delay == had);
        prop_assert_eq!(kept, fits);
        prop_assert_eq!(again.is_ok(), without.clone().try_admit(&changed).is_ok());
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
                    kept.push(admitted.params());
                }
                _ => kept.push(admitted.params()),
            }
        }
        let mut fresh = small(LINK, Some(300_000));
        kept.iter().for_each(|given| fresh.restore(given));
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
            // Where no delay is stated, a longer one may fit than can be stated.
            let longest = admission.params().delays.longest();
            prop_assert!(!accepts(with_delay(longest)));
            prop_assert!(request.delay.is_none() || !accepts(request));
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
        // They share one delay: the one that the link gives the first of them would not do for all.
        let request = GuaranteeRequest {
            delay: request.delay.or(Some(Duration::from_millis(20))),
            ..request
        };
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
