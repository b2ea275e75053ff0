use crate::at;
use crate::network::Network;
use slicewise_applications::Application;
use slicewise_stats::application::VideoFigures;
use slicewise_traffic::application::{
    AdaptationRule, ApplicationParams, ServerParams, VideoParams,
};
use slicewise_units::{BitRate, Duration};

const RULES: [AdaptationRule; 3] = [
    AdaptationRule::Throughput,
    AdaptationRule::Bola,
    AdaptationRule::Dynamic,
];

/// Figures after the first minute of three, of so many clients over a link.
fn run(rule: AdaptationRule, clients: u32, kbits_per_second: u64) -> VideoFigures {
    let params = VideoParams {
        clients,
        ladder: [400, 1_000, 2_500, 5_000]
            .map(|kbit| BitRate::new(kbit * 1_000))
            .into(),
        segment: Duration::from_secs(4),
        buffer: Duration::from_secs(30),
        rule,
        stagger: Duration::from_millis(500),
        server: ServerParams::default(),
    };
    let mut application =
        Application::new(&ApplicationParams::Video(params), at(0), at(180_000), 1);
    let mut network = Network::new(
        kbits_per_second * 1_000,
        Duration::from_millis(40),
        ServerParams::default(),
    );
    network.run(&mut application, at(180_000));
    application.figures(at(60_000), at(180_000)).video.unwrap()
}

#[test]
fn on_a_link_between_two_qualities_the_mean_lies_between_them() {
    for rule in RULES {
        let figures = run(rule, 1, 3_500);
        assert!(
            (1.5..=2.9).contains(&figures.quality_mean.unwrap()),
            "{rule:?}: {figures:?}"
        );
        assert_eq!(figures.stalls, 0, "{rule:?}");
        assert!(
            figures.bit_rate_mean.unwrap() <= 3.5e6,
            "{rule:?}: {figures:?}"
        );
    }
}

#[test]
fn on_a_link_above_the_top_quality_it_is_reached() {
    for rule in RULES {
        let figures = run(rule, 1, 20_000);
        assert_eq!(figures.quality_mean, Some(3.0), "{rule:?}");
        assert_eq!(
            (figures.switches_per_minute, figures.stalls),
            (Some(0.0), 0)
        );
        // A segment every 4 s.
        assert_eq!(figures.segments, 30, "{rule:?}");
    }
}

#[test]
fn on_a_link_below_the_lowest_quality_playing_stops_again_and_again() {
    for rule in RULES {
        let figures = run(rule, 1, 300);
        assert_eq!(figures.quality_mean, Some(0.0), "{rule:?}");
        assert!(figures.stalls > 10, "{rule:?}: {figures:?}");
        // It gets 3 s to play in 4 s.
        assert!(
            (figures.stalled_ratio.unwrap() - 0.25).abs() < 0.03,
            "{rule:?}: {figures:?}"
        );
    }
}

#[test]
fn clients_share_a_link() {
    for rule in RULES {
        let figures = run(rule, 8, 24_000);
        assert_eq!(figures.clients, 8);
        assert!(
            (1.5..=2.9).contains(&figures.quality_mean.unwrap()),
            "{rule:?}: {figures:?}"
        );
        assert!(figures.quality_least <= figures.quality_mean);
        assert_eq!(figures.stalls, 0, "{rule:?}");
    }
}
