//! Networks whose losses, duplicates and delays are known, behind clocks that differ.

use super::{Fact, Recorder, sighting, source};
use crate::Sighting;
use crate::matching::{Alignment, MatchParams, Matcher, drive};
use proptest::prelude::*;

/// Fate of a packet: lost, or received after a delay, and perhaps once more.
#[derive(Debug, Clone, Copy)]
struct Fate {
    gap_ns: u64,
    flow: u32,
    delay_ns: Option<u64>,
    copy_after_ns: Option<u64>,
}

fn fate() -> impl Strategy<Value = Fate> {
    let delay = proptest::option::weighted(0.8, 1_000_000_u64..40_000_000);
    let copy = proptest::option::weighted(0.1, 0_u64..5_000_000);
    (0_u64..3_000_000, 0_u32..5, delay, copy).prop_map(|(gap_ns, flow, delay_ns, copy_after_ns)| {
        Fate {
            gap_ns,
            flow,
            delay_ns,
            copy_after_ns,
        }
    })
}

/// Both captures and the true fates of their packets.
fn captures(fates: &[Fate], clock_ns: i64) -> (Vec<Sighting>, Vec<Sighting>, Vec<Fact>) {
    let (mut sent, mut received, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = 1_700_000_000_000_000_000;
    for (number, fate) in (1_u64..).zip(fates) {
        now += fate.gap_ns;
        let key = number.wrapping_mul(0xD6E8_FEB8_6659_FD93);
        sent.push(sighting(now, key, fate.flow));
        truth.push(Fact::Sent(key, now));
        let Some(delay_ns) = fate.delay_ns else {
            truth.push(Fact::Lost(key, now));
            continue;
        };
        let at = (now + delay_ns).saturating_add_signed(clock_ns);
        received.push(sighting(at, key, fate.flow + 10));
        truth.push(Fact::Received(key, now, at));
        if let Some(after) = fate.copy_after_ns {
            received.push(sighting(at + after, key, fate.flow + 10));
            truth.push(Fact::Duplicate(key, now, at + after));
        }
    }
    received.sort_by_key(|one| one.time_ns);
    truth.sort_unstable();
    (sent, received, truth)
}

fn matched(
    params: MatchParams,
    sent: &[Sighting],
    received: &[Sighting],
    batch: usize,
) -> (Recorder, Matcher) {
    let mut recorder = Recorder::default();
    let mut matcher = Matcher::new(params);
    let (sent, received) = (source(sent, batch), source(received, batch));
    drive(&mut matcher, sent, received, &mut recorder);
    (recorder, matcher)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn finds_the_true_fates_whatever_the_clocks(
        fates in proptest::collection::vec(fate(), 1..400),
        clock_ns in -1_000_000_000_000_i64..1_000_000_000_000,
        batch in 1_usize..50,
    ) {
        // Clocks are aligned by packets that arrived once; if all arrived twice, there is no evidence.
        let came = || fates.iter().filter(|fate| fate.delay_ns.is_some());
        prop_assume!(came().next().is_none() || came().any(|fate| fate.copy_after_ns.is_none()));
        let (sent, received, truth) = captures(&fates, clock_ns);
        let alignment_ns = Alignment::probe(&sent, &received).map_or(0, |found| found.offset_ns(0));
        let params = MatchParams { alignment_ns, ..MatchParams::default() };
        let (recorder, matcher) = matched(params, &sent, &received, batch);
        prop_assert_eq!(recorder.sorted(), truth);
        prop_assert_eq!(matcher.counts().received_first, 0);
        for &(key, number) in &recorder.in_flow {
            let place = sent.iter().position(|one| one.key == key).unwrap();
            let of_flow = sent[..place].iter().filter(|one| one.flow == sent[place].flow);
            prop_assert_eq!(number, Some(u32::try_from(of_flow.count()).unwrap()));
        }
        let sent_order: Vec<u64> = recorder.facts.iter().filter_map(|fact| match fact {
            Fact::Sent(_, at) => Some(*at),
            _ => None,
        }).collect();
        prop_assert!(sent_order.is_sorted());
    }

    #[test]
    fn reports_the_same_in_the_same_order_whatever_the_batch_size(
        fates in proptest::collection::vec(fate(), 1..200),
        batch in 1_usize..50,
    ) {
        let (sent, received, _) = captures(&fates, 0);
        let params = MatchParams { timeout_ns: 30_000_000, ..MatchParams::default() };
        let (whole, _) = matched(params, &sent, &received, usize::MAX);
        let (divided, _) = matched(params, &sent, &received, batch);
        prop_assert_eq!(whole.facts, divided.facts);
    }
}

#[test]
fn remembers_no_more_than_two_time_outs_of_packets() {
    let packets = 400_000;
    let all: Vec<Sighting> = (0..packets)
        .map(|number| sighting(number * 1_000_000, number, 0))
        .collect();
    let third: Vec<Sighting> = all.iter().copied().step_by(3).collect();
    let params = MatchParams {
        timeout_ns: 1_000_000_000,
        ..MatchParams::default()
    };
    let (_, matcher) = matched(params, &all, &third, 64);
    assert_eq!(matcher.counts().matched, packets.div_ceil(3));
    assert_eq!(matcher.counts().lost, packets - packets.div_ceil(3));
    assert!(matcher.counts().peak_entries < 1_100, "1.04 s at 1 a ms");
    assert!(matcher.memory_bytes() < 300_000);
}

#[test]
fn decides_early_and_counts_it_beyond_the_limit() {
    let all: Vec<Sighting> = (0..1_000)
        .map(|number| sighting(number, number, 0))
        .collect();
    let params = MatchParams {
        most_entries: 100,
        ..MatchParams::default()
    };
    let (_, matcher) = matched(params, &all, &[], 64);
    assert_eq!(matcher.counts().lost, 1_000);
    assert_eq!(matcher.counts().decided_early, 900);
    assert_eq!(matcher.counts().peak_entries, 100);
}

#[test]
fn one_wrong_time_decides_one_packet_wrongly_at_most() {
    for wrong in [0, u64::MAX] {
        let mut sent: Vec<Sighting> = (0..10_000)
            .map(|number| sighting(1_000_000_000_000 + number * 1_000_000, number, 0))
            .collect();
        let mut received = sent.clone();
        sent[5_000].time_ns = wrong;
        received[7_000].time_ns = wrong;
        let params = MatchParams {
            timeout_ns: 1_000_000_000,
            ..MatchParams::default()
        };
        let (_, matcher) = matched(params, &sent, &received, 100);
        assert_eq!(matcher.counts().matched, 9_998);
        assert!(matcher.counts().peak_entries < 2_100);
    }
}

#[test]
fn matches_captures_of_which_one_began_an_hour_earlier() {
    let hour_ms = 3_600_000_u64;
    let all: Vec<Sighting> = (0..hour_ms + 1_000)
        .map(|number| sighting(number * 1_000_000, number, 0))
        .collect();
    let late = &all[all.len() - 1_000..];
    for (sent, received) in [(all.as_slice(), late), (late, all.as_slice())] {
        let (_, matcher) = matched(MatchParams::default(), sent, received, 512);
        assert_eq!(matcher.counts().matched, 1_000);
        assert!(matcher.counts().peak_entries < 6_300);
    }
}

#[test]
fn the_largest_timestamp_delays_no_other_packet() {
    for last in [u64::MAX, i64::MAX as u64] {
        let sent = [sighting(1_000, 1, 0), sighting(last, 2, 0)];
        let received = [sighting(2_000, 1, 0)];
        let (recorder, matcher) = matched(MatchParams::default(), &sent, &received, 1);
        assert_eq!(matcher.counts().matched, 1);
        assert_eq!(recorder.fates().len(), 2);
        let (_, matcher) = matched(MatchParams::default(), &received, &sent, 1);
        assert_eq!(matcher.counts().unsent, 1);
    }
}
