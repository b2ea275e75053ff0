use super::*;

const fn step(millis: u64, mbit: u64) -> RateStep {
    RateStep {
        at: Duration::from_millis(millis),
        rate: BitRate::new(mbit * 1_000_000),
    }
}

#[test]
fn the_mean_is_the_integral_over_the_time() {
    let series = RateSeries::of_steps(vec![step(0, 20), step(2_000, 5)]).unwrap();
    let mean = |millis| series.mean(Duration::from_millis(millis)).bits_per_second();
    assert_eq!(mean(1_000), 20_000_000);
    assert_eq!(mean(3_000), 15_000_000);
    assert_eq!(mean(8_000), 8_750_000);
    assert_eq!(
        series.range(),
        (BitRate::new(5_000_000), BitRate::new(20_000_000))
    );
}

#[test]
fn steps_must_begin_with_the_run_be_in_order_and_end_with_a_rate() {
    let error = |steps| RateSeries::of_steps(steps).unwrap_err();
    assert_eq!(error(vec![]), RateSeriesError::NoStep);
    let late = Duration::from_millis(5);
    assert_eq!(error(vec![step(5, 1)]), RateSeriesError::LateStart(late));
    let out_of_order = RateSeriesError::OutOfOrder {
        earlier: late,
        later: late,
    };
    assert_eq!(
        error(vec![step(0, 1), step(5, 2), step(5, 3)]),
        out_of_order
    );
    assert_eq!(
        error(vec![step(0, 1), step(5, 0)]),
        RateSeriesError::EndsAtZero(late)
    );
}

#[test]
fn opportunities_of_a_trace_end_when_it_says_and_repeat_after_the_last() {
    let series = RateSeries::of_mahimahi("0\n1\n4\n4\n\n6\n").unwrap();
    let expected = [
        step(0, 24),
        step(1, 0),
        step(3, 24),
        step(4, 0),
        step(5, 12),
    ];
    assert_eq!(series.steps(), expected);
    assert_eq!(series.period(), Some(Duration::from_millis(6)));
    // Five opportunities each 6 ms.
    let mean = |millis| series.mean(Duration::from_millis(millis)).bits_per_second();
    assert_eq!(mean(6), 10_000_000);
    assert_eq!(mean(600), 10_000_000);
    assert_eq!(mean(7), 12_000_000, "the first millisecond again");
}

#[test]
fn a_line_that_is_no_time_is_named() {
    let error = |text| RateSeries::of_mahimahi(text).unwrap_err().to_string();
    assert!(error("1\n2.5\n").starts_with("line 2 is `2.5`: "));
    assert!(error("-1").starts_with("line 1 is `-1`: "));
    assert!(error("86400001").starts_with("line 1 is `86400001`: "));
    assert!(error("3\n1\n").starts_with("line 2 is 1 ms, and the line before it 3 ms"));
    assert!(error("0\n0\n").starts_with("the trace has no time after 0 ms"));
    assert!(error("").starts_with("the trace has no time after 0 ms"));
}
