//! A hierarchy is changed while frames wait, which the library cannot do.

use super::rig::{MS, Rig, of_pipes, policy};
use crate::support;
use proptest::prelude::*;
use slicewise_model::{HqosSpec, PolicySpec};
use slicewise_units::BitRate;

const PORT: BitRate = BitRate::new(1_000_000_000);

fn pipes(rate: u64) -> HqosSpec {
    of_pipes(&[rate, 12_500_000], PORT)
}

/// A queue in order of arrival.
fn plain() -> PolicySpec {
    support::policy(Vec::new())
}

#[test]
fn the_rate_of_a_pipe_changes_and_frames_stay() {
    let mut rig = Rig::new(&pipes(1_250_000), PORT);
    rig.keep_full(0, 12, 1_000, 200 * MS);
    let before = rig.departures.len();
    assert_eq!(rig.pipeline.backlog(), 64);
    rig.apply(&policy(&pipes(12_500_000)), PORT);
    assert_eq!(rig.pipeline.backlog(), 64);
    rig.run_until(210 * MS);
    rig.assert_conserved_in_order();
    // 64 frames of 1024 bytes take 5 ms at the new rate, and 52 ms at the old.
    assert_eq!(rig.departures.len() - before, 64);
}

#[test]
fn a_change_gives_no_credits() {
    let spec = pipes(1_250_000);
    let mut changed = Rig::new(&spec, PORT);
    let mut unchanged = Rig::new(&spec, PORT);
    for rig in [&mut changed, &mut unchanged] {
        rig.keep_full(0, 12, 1_000, 100 * MS);
    }
    for step in 1..20 {
        changed.apply(&policy(&spec), PORT);
        for rig in [&mut changed, &mut unchanged] {
            rig.keep_full(0, 12, 1_000, (100 + step * 10) * MS);
        }
    }
    let sent = |rig: &Rig| rig.bytes_sent(|_| true, 100 * MS);
    assert!(sent(&changed).abs_diff(sent(&unchanged)) <= 2_000);
}

#[test]
fn counters_of_queues_go_on_through_a_change() {
    let mut rig = Rig::new(&pipes(1_250_000), PORT);
    for _ in 0..70 {
        let _ = rig.offer(0, 3, 1_000);
    }
    let before = rig.counters();
    rig.apply(&policy(&pipes(12_500_000)), PORT);
    assert_eq!(rig.counters(), before);
}

proptest! {
    #[test]
    fn whatever_it_is_changed_to_frames_stay_in_order(
        load in prop::collection::vec((0_u64..100_000, 0_u32..2, 0_u32..16, 60_u32..1_500), 1..200),
        changes in prop::collection::vec((0_u64..5 * MS, 0_usize..4), 1..6),
    ) {
        let small = {
            let mut spec = pipes(1_250_000);
            spec.pipe_profiles[0].rates.tb_size = 600;
            spec
        };
        let forms = [
            policy(&pipes(1_250_000)),
            policy(&of_pipes(&[12_500_000, 1_250_000, 500_000, 125_000], PORT)),
            plain(),
            policy(&small),
        ];
        let mut rig = Rig::of_policy(&forms[0], PORT);
        let mut now = 0;
        let mut load = load.into_iter();
        for (gap, form) in changes {
            for (wait, pipe, queue, bytes) in load.by_ref().take(60) {
                now += wait;
                rig.run_until(now);
                let _ = rig.offer(pipe, queue, bytes);
            }
            now += gap;
            rig.run_until(now);
            rig.apply(&forms[form], PORT);
            rig.assert_conserved_in_order();
        }
        rig.run_until(now + 10_000 * MS);
        rig.assert_conserved_in_order();
        prop_assert_eq!(rig.pipeline.backlog(), 0);
    }
}
