//! Files with records out of order, wrong timestamps, or clock steps.

use super::*;
use crate::Direction;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;
const YEAR: u64 = 365 * DAY_NS;
const START: u64 = 56 * YEAR;

fn seen(record: u64, time_ns: u64) -> Seen {
    Seen {
        sighting: Sighting {
            time_ns,
            key: record,
            flow: 0,
            l2_bytes: 100,
            ttl: 64,
            dscp: 0,
            direction: Direction::Unknown,
            time_is_restored: false,
        },
        tcp: None,
        record,
        jumps: false,
    }
}

/// Packets released for these input times, and the facts.
fn sorted(times: &[u64]) -> (Vec<Seen>, TimeFacts) {
    let mut line = Timeline::default();
    let mut out = Vec::new();
    for (record, time_ns) in (1..).zip(times) {
        line.push(seen(record, *time_ns));
        assert!(line.held.len() <= MOST_HELD);
        out.extend(std::iter::from_fn(|| line.pop()));
    }
    line.finish();
    out.extend(std::iter::from_fn(|| line.pop()));
    (out, line.facts().clone())
}

fn every_ms(count: u64) -> Vec<u64> {
    (0..count).map(|number| START + number * MS).collect()
}

fn times(packets: &[Seen]) -> Vec<u64> {
    packets.iter().map(Seen::time_ns).collect()
}

fn jumps(packets: &[Seen]) -> Vec<u64> {
    let jumped = packets.iter().filter(|seen| seen.jumps);
    jumped.map(|seen| seen.record).collect()
}

#[test]
fn blocks_of_two_queues_are_sorted() {
    let mut times_ns = Vec::new();
    for block in 0..100 {
        let of_block = |offset: u64| START + block * 40 * MS + offset;
        times_ns.extend((0..20).map(|number| of_block(number * 2 * MS)));
        times_ns.extend((0..20).map(|number| of_block(number * 2 * MS + MS)));
    }
    let (out, facts) = sorted(&times_ns);
    times_ns.sort_unstable();
    assert_eq!(times(&out), times_ns);
    assert_eq!((jumps(&out), facts.wrong_stamps), (vec![], 0));
    assert_eq!(facts.out_of_order, 100 * 19);
    assert_eq!(facts.most_out_of_order_ns, 37 * MS);
    assert_eq!(facts.beyond_window, 0);
}

#[test]
fn packets_later_than_the_window_keep_their_time_and_are_counted() {
    let mut times_ns = every_ms(2_000);
    let late = times_ns.remove(500);
    times_ns.insert(1_000, late);
    let (out, facts) = sorted(&times_ns);
    assert_eq!((facts.out_of_order, facts.beyond_window), (1, 1));
    assert_eq!(facts.most_out_of_order_ns, 500 * MS);
    assert_eq!(facts.wrong_stamps, 0);
    assert_eq!(jumps(&out), [0; 0]);
    let place = out.iter().position(|seen| seen.record == 1_001).unwrap();
    assert_eq!(out[place].time_ns(), late);
}

#[test]
fn a_few_stamps_far_from_their_neighbours_are_wrong_wherever_they_are() {
    for wrong_ns in [0, START - HOUR, START + HOUR, START + YEAR, u64::MAX] {
        for (at, count) in [(50, 1), (50, 2), (50, MOST_WRONG_STAMPS), (98, 2)] {
            let mut times_ns = every_ms(100);
            times_ns[at..at + count].fill(wrong_ns);
            let (out, facts) = sorted(&times_ns);
            let is_pause = at == 98 && wrong_ns == START + HOUR;
            let wrong = if is_pause { 0 } else { count };
            let case = format!("{count} at {at}: {wrong_ns}");
            assert_eq!(facts.wrong_stamps, wrong as u64, "{case}");
            assert_eq!(out.len(), 100, "{case}");
            assert_eq!(jumps(&out).len(), usize::from(is_pause), "{case}");
            if !is_pause {
                let restored = times(&out)[at..at + count].to_vec();
                assert_eq!(restored, vec![times_ns[at - 1]; count], "{case}");
                assert!(out[at].sighting.time_is_restored);
                assert_eq!(facts.named_wrong_stamps[0].record, at as u64 + 1);
            }
        }
    }
}

#[test]
fn a_first_stamp_years_from_the_rest_is_wrong() {
    for wrong_ns in [0, START + YEAR] {
        let mut times_ns = every_ms(100);
        times_ns[0] = wrong_ns;
        let (out, facts) = sorted(&times_ns);
        assert_eq!(facts.wrong_stamps, 1);
        assert_eq!(jumps(&out), [0; 0]);
        assert_eq!(out[0].time_ns(), times_ns[1]);
    }
}

#[test]
fn a_few_packets_days_from_the_others_have_their_own_times() {
    for (before, behind) in [(10, 10), (2, 100), (100, 2), (100, MOST_WRONG_STAMPS)] {
        let mut times_ns = every_ms((before + behind) as u64);
        for time_ns in &mut times_ns[before..] {
            *time_ns += 3 * DAY_NS;
        }
        let (out, facts) = sorted(&times_ns);
        assert_eq!(facts.wrong_stamps, 0, "{before}, {behind}");
        assert_eq!(times(&out), times_ns);
        assert_eq!(jumps(&out), [before as u64 + 1]);
    }
}

#[test]
fn wrong_stamps_are_found_among_packets_seconds_apart() {
    let mut times_ns: Vec<u64> = (0..120).map(|n| START + n * 10 * SECOND).collect();
    times_ns[60] = START + YEAR;
    let (out, facts) = sorted(&times_ns);
    assert_eq!(facts.wrong_stamps, 1);
    assert_eq!(out[60].time_ns(), times_ns[59]);
}

#[test]
fn a_clock_that_was_set_and_a_pause_are_jumps_and_change_no_time() {
    for by_ns in [
        HOUR.wrapping_neg(),
        (200 * MS).wrapping_neg(),
        10 * SECOND,
        HOUR,
    ] {
        let mut times_ns = every_ms(1_000);
        for time_ns in &mut times_ns[500..] {
            *time_ns = time_ns.wrapping_add(by_ns);
        }
        let (out, facts) = sorted(&times_ns);
        assert_eq!(times(&out), times_ns);
        assert_eq!(jumps(&out), [501]);
        assert_eq!((facts.wrong_stamps, facts.out_of_order), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn records_out_of_order_by_less_than_the_window_are_sorted(
        gaps in prop::collection::vec((0..30 * MS, 0..SORT_WINDOW_NS), 1..500),
    ) {
        let mut now = START;
        let mut written: Vec<(u64, u64)> = Vec::new();
        for (gap, delay) in gaps {
            now += gap;
            written.push((now + delay, now));
        }
        let mut expected: Vec<u64> = written.iter().map(|(_, time)| *time).collect();
        written.sort_unstable();
        let times_ns: Vec<u64> = written.into_iter().map(|(_, time)| time).collect();
        let (out, facts) = sorted(&times_ns);
        expected.sort_unstable();
        prop_assert_eq!(times(&out), expected);
        prop_assert_eq!((facts.beyond_window, facts.wrong_stamps), (0, 0));
        prop_assert!(jumps(&out).is_empty());
    }

    #[test]
    fn every_packet_leaves_once_whatever_the_stamps(
        steps in prop::collection::vec(
            prop_oneof![
                4 => (0..50 * MS).prop_map(|ns| (true, ns)),
                1 => any::<u64>().prop_map(|ns| (false, ns)),
                1 => (0..20 * SECOND).prop_map(|ns| (true, ns)),
            ],
            0..200,
        ),
    ) {
        let mut now = START;
        let times_ns: Vec<u64> = steps
            .into_iter()
            .map(|(is_step, ns)| {
                if is_step {
                    now += ns;
                }
                if is_step { now } else { ns }
            })
            .collect();
        let (out, facts) = sorted(&times_ns);
        let mut records: Vec<u64> = out.iter().map(|seen| seen.record).collect();
        records.sort_unstable();
        let all: Vec<u64> = (1..=times_ns.len() as u64).collect();
        prop_assert_eq!(records, all);
        for seen in &out {
            let restored = seen.sighting.time_is_restored;
            let at = usize::try_from(seen.record).unwrap() - 1;
            prop_assert!(restored || seen.time_ns() == times_ns[at]);
        }
        let restored = out.iter().filter(|seen| seen.sighting.time_is_restored).count();
        prop_assert_eq!(restored as u64, facts.wrong_stamps);
    }
}
