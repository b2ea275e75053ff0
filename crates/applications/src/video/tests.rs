use super::*;
use proptest::prelude::*;
use slicewise_stats::application::VideoFigures;
use slicewise_traffic::application::{AdaptationRule, ServerParams};
use slicewise_units::BitRate;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn params(segment_ms: u64, buffer_ms: u64, rule: AdaptationRule) -> VideoParams {
    VideoParams {
        clients: 1,
        ladder: [400, 1_000, 2_500, 5_000]
            .map(|kbit| BitRate::new(kbit * 1_000))
            .into(),
        segment: Duration::from_millis(segment_ms),
        buffer: Duration::from_millis(buffer_ms),
        rule,
        stagger: Duration::ZERO,
        server: ServerParams::default(),
    }
}

/// A segment on its way: what of it arrives when.
#[derive(Debug, Clone, Copy)]
struct Seen {
    asked: Instant,
    quality: usize,
    level: Duration,
}

/// One client, whose segments arrive in two portions at these rates in kbit/s, in turn; late by as much as the wake-ups
/// are late. Returns what it asked for.
fn play(video: &mut Video, kbits: &[u64], late: Duration, until: Instant) -> Vec<Seen> {
    let mut kbits = kbits.iter().copied().cycle();
    let mut seen = Vec::new();
    while let Some(now) = video.poll_at().map(|time| time + late) {
        if now >= until {
            break;
        }
        match video.poll_action(now) {
            Some(Action::Open { connection }) => video.on_connected(connection, now),
            Some(Action::Request {
                connection,
                response,
                ..
            }) => {
                let client = &video.clients[0];
                seen.push(Seen {
                    asked: now,
                    quality: client.adaptation.quality,
                    level: client.player.level(now),
                });
                let first = now + Duration::from_millis(20);
                let lasts = response * 8_000_000 / kbits.next().unwrap();
                video.on_received(connection, 1, first);
                video.on_received(
                    connection,
                    response - 1,
                    first + Duration::from_nanos(lasts),
                );
            }
            Some(Action::Close { connection }) => video.on_ended(connection, now),
            Some(Action::Send { .. }) => panic!("a client asks"),
            None => {}
        }
    }
    seen
}

fn run(params: &VideoParams, kbits: &[u64], seconds: u64) -> (Video, Vec<Seen>) {
    let until = at(seconds * 1_000);
    let mut video = Video::new(params, at(0).into(), until, 1);
    let seen = play(&mut video, kbits, Duration::ZERO, until);
    (video, seen)
}

#[test]
fn the_first_segment_has_the_quality_within_1_mbit_per_second() {
    let (video, seen) = run(
        &params(4_000, 30_000, AdaptationRule::Dynamic),
        &[10_000],
        60,
    );
    assert_eq!(seen[0].quality, 1);
    // 90 % of 10 Mbit/s from then on.
    assert!(seen[1..].iter().all(|seen| seen.quality == 3));
    let figures = video.video_figures(at(0), at(60_000));
    // 20 ms, and 0.5 MB at 10 Mbit/s.
    assert_eq!(figures.start_up_mean_ns, Some(420e6));
    assert_eq!(figures.quality_least, figures.quality_mean);
    // One change, in a minute.
    assert!((figures.switches_per_minute.unwrap() - 1.0).abs() < 1e-9);
    let early = video.video_figures(at(0), at(6_000));
    assert!((early.switches_per_minute.unwrap() - 10.0).abs() < 1e-9);
    let later = video.video_figures(at(1_000), at(60_000));
    assert_eq!((later.start_up_mean_ns, later.clients), (None, 1));
    // The second segment, the change, took 20 ms and 2 s.
    assert!((later.switches_per_minute.unwrap() - 60.0 / 59.0).abs() < 1e-9);
    assert_eq!(
        (later.quality_mean, later.bit_rate_mean),
        (Some(3.0), Some(5e6))
    );
}

#[test]
fn what_did_not_happen_has_no_mean() {
    let (video, _) = run(
        &params(4_000, 30_000, AdaptationRule::Dynamic),
        &[10_000],
        60,
    );
    // Asked, and nothing arrived.
    let none = VideoFigures {
        clients: 1,
        switches_per_minute: Some(0.0),
        ..VideoFigures::default()
    };
    assert_eq!(video.video_figures(at(0), at(300)), none);
    // Between two segments it plays.
    let playing = video.video_figures(at(25_000), at(25_001));
    assert_eq!((playing.segments, playing.quality_mean), (0, None));
    assert_eq!(
        (playing.start_up_mean_ns, playing.stalled_ratio),
        (None, Some(0.0))
    );
}

#[test]
fn a_buffer_no_longer_than_a_segment_takes_the_next_one_before_it_is_empty() {
    // 3/5 of 5 s: a segment.
    let (_, seen) = run(
        &params(3_000, 5_000, AdaptationRule::Throughput),
        &[2_000],
        30,
    );
    assert!(seen[1..].iter().all(|seen| seen.quality < 3), "{seen:?}");
    assert!(
        seen[1..]
            .iter()
            .all(|seen| seen.level == Duration::from_secs(3)),
        "{seen:?}"
    );
}

#[test]
fn throughput_is_relied_on_by_nine_tenths() {
    let rule = AdaptationRule::Throughput;
    // 2.5 Mbit/s / 0.9 = 2.778 Mbit/s; with 30 s to play the other rules do not matter.
    let (_, seen) = run(&params(4_000, 30_000, rule), &[2_800], 60);
    assert!(seen[3..].iter().all(|seen| seen.quality == 2), "{seen:?}");
    let (_, seen) = run(&params(4_000, 30_000, rule), &[2_750], 60);
    assert!(seen[1..].iter().all(|seen| seen.quality == 1), "{seen:?}");
}

/// Segments of 4 s at 5 Mbit/s, of which 0.7 are relied on: with 2.5 s to play, 2.2 Mbit/s.
#[test]
fn with_little_to_play_quality_is_limited_from_the_third_segment_on() {
    let terms = |rule| {
        Terms::new(
            Ladder::new(&params(4_000, 30_000, rule).ladder, Duration::from_secs(4)),
            rule,
            Duration::from_secs(18),
        )
    };
    let terms = terms(AdaptationRule::Throughput);
    let mut adaptation = Adaptation::new(&terms);
    let second = Duration::from_secs(1);
    for (segments, expected) in [(1, 2), (2, 1), (3, 1)] {
        adaptation.on_segment(&terms, 625_000, 2.5, second, second, at(0));
        assert_eq!(
            adaptation.choose(&terms, 2.5, at(0)).quality,
            expected,
            "{segments}"
        );
    }
    assert_eq!(
        adaptation.choose(&terms, 2.9, at(0)).quality,
        2,
        "2.54 Mbit/s"
    );
    assert_eq!(
        adaptation.choose(&terms, 0.3, at(0)).quality,
        0,
        "none left"
    );
    assert_eq!(adaptation.choose(&terms, 18.0, at(0)).quality, 2);
}

#[test]
fn the_dynamic_rule_uses_bola_from_the_stable_buffer_down_to_half_of_it() {
    let rule = AdaptationRule::Dynamic;
    let ladder = Ladder::new(&params(4_000, 30_000, rule).ladder, Duration::from_secs(4));
    let terms = Terms::new(ladder, rule, Duration::from_secs(18));
    let mut adaptation = Adaptation::new(&terms);
    let second = Duration::from_secs(1);
    // 5 Mbit/s: quality 2 by throughput.
    adaptation.on_segment(&terms, 625_000, 13.9, second, second, at(0));
    assert!(!adaptation.uses_bola());
    adaptation.on_segment(&terms, 625_000, 14.0, second, second, at(0));
    assert!(adaptation.uses_bola());
    adaptation.choose(&terms, 9.0, at(0));
    assert!(adaptation.uses_bola());
    adaptation.choose(&terms, 8.9, at(0));
    assert!(!adaptation.uses_bola());
    adaptation.choose(&terms, 17.9, at(0));
    assert!(!adaptation.uses_bola());
}

/// It begins with what the throughput allows, and has its own way two segments later.
#[test]
fn bola_begins_anew_when_it_takes_over() {
    let rule = AdaptationRule::Dynamic;
    let ladder = Ladder::new(&params(4_000, 30_000, rule).ladder, Duration::from_secs(4));
    let terms = Terms::new(ladder, rule, Duration::from_secs(18));
    let mut adaptation = Adaptation::new(&terms);
    let second = Duration::from_secs(1);
    adaptation.quality = 3;
    let mut qualities = [0; 3];
    for quality in &mut qualities {
        // 2 Mbit/s.
        adaptation.on_segment(&terms, 250_000, 20.0, second, second, at(0));
        adaptation.quality = 3;
        *quality = adaptation.choose(&terms, 20.0, at(0)).quality;
    }
    assert_eq!(qualities, [1, 1, 3]);
}

#[test]
fn a_failed_connection_is_opened_again_and_the_segment_asked_for_again() {
    let params = params(4_000, 30_000, AdaptationRule::Bola);
    let mut video = Video::new(&params, at(0).into(), at(60_000), 1);
    let open = Some(Action::Open { connection: 0 });
    assert_eq!(video.poll_action(at(0)), open);
    video.on_connected(0, at(10));
    assert!(matches!(
        video.poll_action(at(10)),
        Some(Action::Request { .. })
    ));
    video.on_received(0, 1_000, at(20));
    video.on_ended(0, at(30));
    assert_eq!(video.poll_action(at(1_029)), None);
    assert_eq!(video.poll_at(), Some(at(1_030)));
    assert_eq!(video.poll_action(at(1_030)), open);
    video.on_connected(0, at(1_040));
    let again = video.poll_action(at(1_040));
    let Some(Action::Request { response, .. }) = again else {
        panic!("{again:?}");
    };
    assert_eq!(response, 500_000);
    video.on_received(0, 499_999, at(2_000));
    assert_eq!(video.clients[0].segments.len(), 0);
    video.on_received(0, 1, at(2_010));
    assert_eq!(video.clients[0].segments.len(), 1);
    // From the first time that it was asked for.
    let figures = video.video_figures(at(0), at(60_000));
    assert_eq!(figures.start_up_mean_ns, Some(2_000e6));
}

#[test]
fn at_the_end_a_client_asks_for_nothing_and_closes() {
    let (_, seen) = run(
        &params(2_000, 30_000, AdaptationRule::Dynamic),
        &[10_000],
        20,
    );
    assert!(seen.iter().all(|seen| seen.asked < at(20_000)));
    let mut video = Video::new(
        &params(2_000, 30_000, AdaptationRule::Dynamic),
        at(0).into(),
        at(20_000),
        1,
    );
    play(&mut video, &[10_000], Duration::ZERO, at(90_000));
    assert!(matches!(video.clients[0].state, State::Over));
    assert_eq!(video.poll_at(), None);
    // What is left is not played after the end: no stall, whatever the span.
    assert_eq!(video.video_figures(at(0), at(90_000)).stalls, 0);
}

fn rules() -> impl Strategy<Value = AdaptationRule> {
    prop_oneof![
        Just(AdaptationRule::Throughput),
        Just(AdaptationRule::Bola),
        Just(AdaptationRule::Dynamic),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn there_is_never_more_to_play_than_the_buffer_holds_nor_a_client_that_stops_asking(
        rule in rules(),
        segment in 500u64..6_000,
        buffer in 1_000u64..40_000,
        kbits in prop::collection::vec(200u64..20_000, 1..20),
        late in 0u64..50,
    ) {
        let params = params(segment, buffer, rule);
        let until = at(120_000);
        let mut video = Video::new(&params, at(0).into(), until, 1);
        let seen = play(&mut video, &kbits, Duration::from_millis(late), until);
        let segment = Duration::from_millis(segment);
        let stable = Duration::from_millis(buffer / 5 * 3);
        for pair in seen.windows(2) {
            let most = if pair[0].quality == 3 { Duration::from_millis(buffer) } else { stable };
            // It was asked for below the limit, for which the quality of the segment before counts.
            let room = if most <= segment { most } else { most - segment };
            let rounding = Duration::from_millis(5);
            prop_assert!(pair[1].level <= room + rounding, "{pair:?}");
            prop_assert!(pair[1].level + segment <= Duration::from_millis(buffer).max(room + segment) + rounding);
            // A segment at the lowest rate takes 150 s · segment / 6 s at most; the buffer is played meanwhile.
            let longest = Duration::from_nanos(segment.nanos() * 25) + Duration::from_millis(buffer + 1_000);
            prop_assert!(pair[1].asked - pair[0].asked <= longest);
        }
        let played = video.video_figures(at(0), until);
        prop_assert!(played.stalled_ratio.is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
        prop_assert!(played.quality_mean.is_none_or(|mean| (0.0..=3.0).contains(&mean)));
        // The last one may arrive later.
        prop_assert!([0, 1].contains(&(seen.len() as u64 - played.segments)));
    }
}
