//! Random hierarchies and loads.

use super::rig::{MS, Rig, of_pipes};
use proptest::prelude::*;
use slicewise_model::HqosSpec;
use slicewise_units::BitRate;

const PORT: BitRate = BitRate::new(1_000_000_000);

/// Time since the one before, ns; pipe, queue, and bytes.
type Arrival = (u64, u32, u32, u32);

/// Pipes of which each can send a frame of the largest size in a period.
fn hierarchy() -> impl Strategy<Value = HqosSpec> {
    let pipe = (
        200_000_u64..125_000_000,
        1_600_u64..100_000,
        1_u8..5,
        any::<[u8; 4]>(),
    );
    prop::collection::vec(pipe, 1..6).prop_map(|pipes| {
        let rates: Vec<u64> = pipes.iter().map(|pipe| pipe.0).collect();
        let mut spec = of_pipes(&rates, PORT);
        for (profile, (_, size, weight, shares)) in spec.pipe_profiles.iter_mut().zip(pipes) {
            profile.rates.tb_size = size;
            profile.oversubscription_weight = weight;
            profile.wrr_weights = shares.map(|share| share.max(1));
        }
        spec
    })
}

fn load() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![Just(0), 0_u64..20_000, 0_u64..2 * MS];
    let arrival = (gap, 0_u32..6, 0_u32..16, 60_u32..1_500);
    prop::collection::vec(arrival, 0..400)
}

fn offer_all(rig: &mut Rig, spec: &HqosSpec, arrivals: &[Arrival]) -> u64 {
    let mut now = 0;
    for &(gap, pipe, queue, bytes) in arrivals {
        now += gap;
        rig.run_until(now);
        let _ = rig.offer(pipe % spec.pipe_profiles.len() as u32, queue, bytes);
    }
    now
}

proptest! {
    #[test]
    fn every_frame_leaves_or_is_counted_and_queues_keep_their_order(
        spec in hierarchy(),
        arrivals in load(),
    ) {
        let mut rig = Rig::new(&spec, PORT);
        let now = offer_all(&mut rig, &spec, &arrivals);
        rig.assert_conserved_in_order();
        rig.run_until(now + 10_000 * MS);
        rig.assert_conserved_in_order();
        prop_assert_eq!(rig.pipeline.backlog(), 0, "all have left");
    }

    #[test]
    fn a_pipe_never_exceeds_its_rate_by_more_than_its_bucket(
        spec in hierarchy(),
        arrivals in load(),
    ) {
        let mut rig = Rig::new(&spec, PORT);
        let now = offer_all(&mut rig, &spec, &arrivals);
        rig.run_until(now + 1_000 * MS);
        let params = spec.resolve(PORT).unwrap();
        for (pipe, profile) in (0..).zip(&params.pipe_profiles) {
            let credits = &profile.credits;
            let rate = params.rate as f64 * credits.tb_credits_per_period as f64 / credits.tb_period as f64;
            let sent: Vec<_> = rig.departures.iter().filter(|frame| frame.pipe == pipe).collect();
            for (position, first) in sent.iter().enumerate() {
                let mut cost = 0;
                for frame in &sent[position..] {
                    cost += u64::from(frame.bytes) + 24;
                    let seconds = (frame.at - first.at) as f64 * 1e-9;
                    // The port's time counts a frame when it begins, and credits come a period at a time.
                    let most = credits.tb_size as f64 + rate * seconds + 1_546.0
                        + credits.tb_credits_per_period as f64;
                    prop_assert!(cost as f64 <= most, "{cost} in {seconds} s: {most}");
                }
            }
        }
    }

    /// Of the polls that find nothing, each was at a time at which a frame might have left, or at the end of a period.
    #[test]
    fn few_polls_are_in_vain(spec in hierarchy(), arrivals in load()) {
        let mut rig = Rig::new(&spec, PORT);
        let now = offer_all(&mut rig, &spec, &arrivals);
        rig.run_until(now + 1_000 * MS);
        let last = rig.departures.last().map_or(0, |frame| frame.at);
        let pipes = spec.pipe_profiles.len() as u64;
        let periods = (last / (10 * MS) + 1) + (last / (40 * MS) + 1) * pipes;
        let most = 3 * arrivals.len() as u64 + 2 * periods + 10;
        prop_assert!(rig.polls <= most, "{} polls, {most} expected", rig.polls);
    }

    /// Polling at the times that are announced is as good as polling all the time.
    #[test]
    fn a_frame_leaves_as_early_as_if_polled_all_the_time(spec in hierarchy(), arrivals in load()) {
        let (mut told, mut always) = (Rig::new(&spec, PORT), Rig::new(&spec, PORT));
        let end = offer_all(&mut told, &spec, &arrivals) + 50 * MS;
        told.run_until(end);
        let mut now = 0;
        for &(gap, pipe, queue, bytes) in &arrivals {
            always.poll_until(now + gap, 1_000);
            now += gap;
            let _ = always.offer(pipe % spec.pipe_profiles.len() as u32, queue, bytes);
        }
        always.poll_until(end, 1_000);
        for pipe in 0..spec.pipe_profiles.len() as u32 {
            let sent = |rig: &Rig| rig.bytes_sent(|frame| frame.pipe == pipe, 0);
            let (told, always) = (sent(&told), sent(&always));
            prop_assert!(told + 1_546 >= always, "pipe {pipe}: {told} B, polled always {always} B");
        }
    }
}
