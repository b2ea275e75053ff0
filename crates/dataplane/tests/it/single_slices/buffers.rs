//! Links with a limited buffer: no guaranteed frame may be lost because it is full, so what may wait has to fit, too.

use super::diff::{resolved, steps_to};
use super::*;
use slicewise_model::PolicyParams;

/// Later than any frame waits.
const IDLE: u64 = 1_000_000_000;

fn with_buffer(mut policy: PolicyParams, buffer: Option<u64>) -> PolicyParams {
    policy.links[0].buffer = buffer.map(ByteCount::new);
    policy
}

fn port(kinds: &[Kind], buffer: Option<u64>) -> Port {
    let policy = with_buffer(resolved(kinds).unwrap(), buffer);
    let mut port = Port::new(&spec(&[]), Some(LINK));
    let change = Change::Policy(policy);
    drop(port.pipeline.apply(change, Instant::ZERO).unwrap());
    port
}

/// Frames of a VLAN that are to leave under its guarantee.
fn burst(port: &mut Port, vlan: u16) {
    for _ in 0..6 {
        assert_eq!(
            port.offer(arrival(port.now(), vlan, 1_000)),
            Verdict::Queued
        );
    }
}

fn within(ms: u64) -> Kind {
    guaranteed(4_000, 6_000, Duration::from_millis(ms))
}

/// 46 kB of the slice may wait within 80 ms and 11 kB within 10 ms, and 13 kB of the other.
#[test]
fn while_a_delay_changes_there_is_room_for_what_waits_during_the_longer_one() {
    let other = guaranteed(4_000, 3_000, Duration::from_millis(20));
    let other = add(&(2..=2), other);
    for [before, after] in [[80, 10], [10, 80]] {
        let mut port = port(&[within(before)], Some(50_000));
        burst(&mut port, 1);
        apply(&mut port, change(&(1..=1), within(after))).unwrap();
        let refused = apply(&mut port, other.clone()).unwrap_err();
        assert!(refused.is_temporary(), "{refused}");
        assert!(refused.to_string().contains("may queue"), "{refused}");
        port.run_until(IDLE);
        let added = apply(&mut port, other.clone());
        assert_eq!(added.is_ok(), after == 10, "{added:?}");
    }
    // While no frame waits, only the new delay counts.
    let mut port = port(&[within(80)], Some(50_000));
    apply(&mut port, change(&(1..=1), within(10))).unwrap();
    apply(&mut port, other).unwrap();
}

#[test]
fn what_waits_during_the_longer_delay_has_to_fit_while_delays_change() {
    let kinds = [
        within(80),
        guaranteed(1_000, 3_000, Duration::from_millis(10)),
    ];
    let mut port = port(&kinds, Some(46_000));
    burst(&mut port, 1);
    // 45 kB are reserved. The larger burst takes 3 kB more during the longer delay.
    let larger = guaranteed(4_000, 9_000, Duration::from_millis(15));
    let refused = apply(&mut port, change(&(1..=1), larger)).unwrap_err();
    assert!(
        matches!(refused, SliceChangeError::InTransition { .. }),
        "{refused}"
    );
    port.run_until(IDLE);
    apply(&mut port, change(&(1..=1), larger)).unwrap();
}

/// Neither delay can come first.
#[test]
fn another_delay_beside_a_limited_buffer_needs_a_commit() {
    for (buffer, steps) in [(None, Some(1)), (Some(50_000), None)] {
        let port = port(&[within(10)], buffer);
        let to = |ms| with_buffer(resolved(&[within(ms)]).unwrap(), buffer);
        let count = |ms| steps_to(&port, &to(ms)).map(|steps| steps.len());
        assert_eq!((count(80), count(10)), (steps, Some(0)));
    }
}
