//! BBR over a bottleneck, against what draft-ietf-ccwg-bbr says that it does.

use crate::bulk::{goodput, host, link, numbers, second, undisturbed};
use crate::path::{CLIENT, Fate, Path, SERVER};
use slicewise_traffic::transport::{CongestionControl, TcpProfile};
use slicewise_transport::Segment;
use slicewise_units::Instant;

/// Goodput of a link of 50 Mbit/s that is full, Mbit/s.
const MOST: f64 = 50.0 * 1_448.0 / 1_538.0;
/// Frames of a round trip of 40 ms at 50 Mbit/s.
const BDP_FRAMES: u128 = 162;
const PROFILES: [TcpProfile; 3] = [TcpProfile::Linux, TcpProfile::Linux415, TcpProfile::Rfc];
const SEEDS: [u64; 3] = [3, 5, 11];

const fn millis(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

/// A sender without an end over `path`; returns its number.
fn bulk<F: FnMut(usize, &Segment) -> Fate>(
    path: &mut Path<F>,
    profile: TcpProfile,
    congestion: CongestionControl,
) -> usize {
    let flow = path.add(host(profile, congestion));
    path.write(flow, CLIENT, u64::MAX);
    flow
}

/// Mean of the frames that wait from now on until `end`.
fn mean_queue<F: FnMut(usize, &Segment) -> Fate>(path: &mut Path<F>, end: Instant) -> u128 {
    let (before, from) = (path.queued, path.now);
    path.run_until(end);
    (path.queued - before) / u128::from(end.saturating_since(from).nanos())
}

#[test]
fn startup_finds_the_rate_of_an_idle_path_and_drain_empties_the_queue() {
    for (profile, seed) in PROFILES.into_iter().zip(SEEDS) {
        let mut path = Path::new(link(50, 2_000, 20), undisturbed(seed));
        let flow = bulk(&mut path, profile, CongestionControl::Bbr);
        path.run_until(millis(500));
        let before = path.arrived(flow, SERVER);
        path.run_until(millis(1_000));
        #[expect(clippy::cast_precision_loss, reason = "megabits")]
        let rate = (path.arrived(flow, SERVER) - before) as f64 * 16.0 / 1e6;
        assert!(rate > 0.8 * MOST, "{profile:?}: {rate:.1} Mbit/s");
        assert!(
            (path.longest as u128) < 3 * BDP_FRAMES / 2,
            "{profile:?}: {} frames",
            path.longest
        );
        let queue = mean_queue(&mut path, millis(2_000));
        assert!(queue <= 5, "{profile:?}: {queue} frames after Drain");
        assert_eq!(path.dropped, 0);
    }
}

#[test]
fn two_flows_share_a_link_within_one_to_two() {
    for seed in SEEDS {
        let mut path = Path::new(link(50, 324, 20), undisturbed(seed));
        bulk(&mut path, TcpProfile::Linux, CongestionControl::Bbr);
        path.run_until(second(5));
        bulk(&mut path, TcpProfile::Linux, CongestionControl::Bbr);
        let shares = goodput(&mut path, 2, 10, 70);
        let (less, more) = (shares[0].min(shares[1]), shares[0].max(shares[1]));
        assert!(more < 2.0 * less, "seed {seed}: {shares:?}");
        assert!(more + less > 0.9 * MOST, "seed {seed}: {shares:?}");
    }
}

/// Each round trip with loss lowers the rate by what was lost until the next probe, two to three seconds later.
#[test]
fn random_loss_of_one_percent_does_not_starve_it_as_it_does_cubic() {
    for seed in SEEDS {
        let [bbr, cubic] = [CongestionControl::Bbr, CongestionControl::Cubic].map(|congestion| {
            let mut draw = numbers(seed);
            let fate = move |to: usize, segment: &Segment| match to == SERVER
                && segment.bytes > 0
                && draw(100) == 0
            {
                true => Fate::IsLost,
                false => Fate::Arrives,
            };
            let mut path = Path::new(link(50, 2_000, 20), fate);
            bulk(&mut path, TcpProfile::Linux, congestion);
            goodput(&mut path, 1, 2, 32)[0]
        });
        assert!(bbr > 0.4 * MOST, "seed {seed}: BBR has {bbr:.1} Mbit/s");
        assert!(
            cubic < 0.1 * MOST,
            "seed {seed}: CUBIC has {cubic:.1} Mbit/s"
        );
    }
}

/// Section 2.7: loss beyond 2 % in a probe bounds what is under way.
#[test]
fn a_short_queue_overflows_little() {
    for seed in SEEDS {
        let mut path = Path::new(link(50, 16, 20), undisturbed(seed));
        let flow = bulk(&mut path, TcpProfile::Linux, CongestionControl::Bbr);
        path.run_until(second(2));
        let before = *path.end(flow, CLIENT).figures();
        let rate = goodput(&mut path, 1, 2, 32)[0];
        let after = *path.end(flow, CLIENT).figures();
        let (sent, again) = (
            after.segments - before.segments,
            after.retransmitted_segments - before.retransmitted_segments,
        );
        assert!(rate > 0.7 * MOST, "seed {seed}: {rate:.1} Mbit/s");
        assert!(
            again * 50 < sent,
            "seed {seed}: {again} of {sent} sent again"
        );
    }
}

/// Data that an application sends now and then is no measure of the path.
#[test]
fn a_pause_of_the_application_does_not_lower_the_rate() {
    let mut path = Path::new(link(50, 2_000, 20), undisturbed(7));
    let flow = path.add(host(TcpProfile::Linux, CongestionControl::Bbr));
    path.write(flow, CLIENT, 10_000_000);
    path.run_until(second(3));
    for n in 0..30 {
        path.write(flow, CLIENT, 3_000);
        path.run_until(millis(3_000 + n * 100));
    }
    let before = path.arrived(flow, SERVER);
    path.write(flow, CLIENT, u64::MAX / 4);
    path.run_until(millis(6_200));
    let megabits = (path.arrived(flow, SERVER) - before) * 8 / 1_000_000;
    assert!(
        megabits >= 9,
        "{megabits} Mbit in 300 ms, of which a round trip is 40 ms"
    );
}
