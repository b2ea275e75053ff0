use super::*;
use proptest::prelude::*;
use slicewise_traffic::RateStep;
use slicewise_units::BitRate;

const FRAME: ByteCount = ByteCount::new(1_500);

fn clock(series: RateSeries) -> VaryingClock {
    VaryingClock::new(Arc::new(series))
}

fn steps(steps: &[(u64, u64)]) -> RateSeries {
    let steps = steps.iter().map(|&(nanos, rate)| RateStep {
        at: Duration::from_nanos(nanos),
        rate: BitRate::new(rate),
    });
    RateSeries::of_steps(steps.collect()).unwrap()
}

#[test]
fn a_frame_under_way_goes_on_at_the_new_rate() {
    // 12,000 bits: 6,000 at 12 Mbit/s until 500 us, and the rest at 3 Mbit/s.
    let mut link = clock(steps(&[(0, 12_000_000), (500_000, 3_000_000)]));
    assert_eq!(link.send(FRAME, Instant::ZERO).nanos(), 2_500_000);
    assert_eq!(link.send(FRAME, link.free_at()).nanos(), 6_500_000);
}

#[test]
fn an_outage_holds_a_frame_until_it_ends() {
    let mut link = clock(steps(&[
        (0, 12_000_000),
        (250_000, 0),
        (9_000_000, 12_000_000),
    ]));
    assert_eq!(link.send(FRAME, Instant::ZERO).nanos(), 9_750_000);
}

#[test]
fn a_packet_of_a_trace_leaves_at_each_opportunity_of_every_repetition() {
    let mut link = clock(RateSeries::of_mahimahi("2\n2\n5\n").unwrap());
    let left = |link: &mut VaryingClock| link.send(FRAME, link.free_at()).nanos();
    let times: Vec<u64> = (0..6).map(|_| left(&mut link)).collect();
    let millis = 1_000_000;
    assert_eq!(times[1..3], [2 * millis, 5 * millis]);
    assert_eq!(times[4..6], [7 * millis, 10 * millis]);
    // After a silence of many repetitions, in the middle of one.
    let late = Instant::from_nanos(1_000_003 * millis);
    assert_eq!(link.send(FRAME, late).nanos(), 1_000_005 * millis);
}

fn any_series() -> impl Strategy<Value = RateSeries> {
    let step = (1u64..3_000_000, prop_oneof![Just(0), 1u64..200_000_000]);
    let of_steps =
        (prop::collection::vec(step, 1..8), 1u64..50_000_000).prop_map(|(gaps, last)| {
            let mut at = 0;
            let mut all: Vec<(u64, u64)> = Vec::new();
            for (gap, rate) in gaps {
                all.push((at, rate));
                at += gap;
            }
            all.push((at, last));
            steps(&all)
        });
    let trace = prop::collection::vec(0u64..9, 1..20).prop_map(|mut times| {
        times.push(9);
        times.sort_unstable();
        let lines: Vec<String> = times.iter().map(u64::to_string).collect();
        RateSeries::of_mahimahi(&lines.join("\n")).unwrap()
    });
    prop_oneof![of_steps, trace]
}

/// The integral of the rate up to `nanos`, step by step.
fn integral(series: &RateSeries, nanos: u64) -> u128 {
    let (mut at, mut sum) = (0, 0);
    let mut began = 0;
    while at < nanos {
        for (index, step) in series.steps().iter().enumerate() {
            let end = series.ends_at(index, Instant::from_nanos(began));
            let end = end.map_or(nanos, Instant::nanos).min(nanos);
            sum += u128::from(step.rate.bits_per_second()) * u128::from(end.saturating_sub(at));
            at = at.max(end);
        }
        began = at;
    }
    sum
}

proptest! {
    /// In any interval no more leaves than the integral of the rate and a frame, and while frames wait no less: the time of each
    /// departure is the first nanosecond at which the integral has reached what has been sent.
    #[test]
    fn what_leaves_is_the_integral_of_the_rate(
        series in any_series(),
        sizes in prop::collection::vec(1u64..3_000, 1..40),
        begins in 0u64..20_000_000,
    ) {
        let mut link = clock(series.clone());
        let begins = Instant::from_nanos(begins);
        let from = integral(&series, begins.nanos());
        let mut sent = 0u128;
        for size in sizes {
            let at = link.send(ByteCount::new(size), begins.max(link.free_at()));
            sent += u128::from(size) * 8 * u128::from(NANOS_PER_SECOND);
            prop_assert!(sent <= integral(&series, at.nanos()) - from);
            prop_assert!(sent > integral(&series, at.nanos() - 1) - from);
        }
    }

    /// Whatever the gaps between frames, any interval carries at most the integral and one frame.
    #[test]
    fn no_interval_carries_more_than_the_integral_and_a_frame(
        series in any_series(),
        frames in prop::collection::vec((1u64..3_000, 0u64..2_000_000), 2..40),
    ) {
        let mut link = clock(series.clone());
        let mut now = Instant::ZERO;
        let mut left = Vec::new();
        for (size, gap) in frames {
            now = now.max(link.free_at()).saturating_add(Duration::from_nanos(gap));
            left.push((link.send(ByteCount::new(size), now), size));
        }
        for (first, (from, _)) in left.iter().enumerate() {
            let mut bits = 0u128;
            for (to, size) in &left[first..] {
                bits += u128::from(*size) * 8 * u128::from(NANOS_PER_SECOND);
                let largest = 3_000 * 8 * u128::from(NANOS_PER_SECOND);
                let may = integral(&series, to.nanos()) - integral(&series, from.nanos()) + largest;
                prop_assert!(bits <= may);
            }
        }
    }
}
