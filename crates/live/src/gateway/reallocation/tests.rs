//! GatewayLoops over rates: when they read, what they skip, and who goes first.

use super::*;
use crate::engine::{Engine, EngineParams};
use crate::gateway::{Controlled, PacketIo, control};
use slicewise_model::{
    ClassMap, ClassSpec, Discipline, MatchMode, PolicySpec, Rate, RateSpec, ReallocatedClassSpec,
    ReallocationSpec,
};

const LINK: BitRate = BitRate::new(10_000_000);

/// Two classes, one of them shaped, and a loop each 100 ms, 20 ms later, in the forward direction.
fn params(every_ms: u64) -> GatewayParams {
    let class = |name: &str| {
        ClassSpec::new(ClassMap {
            name: name.to_owned(),
            mode: MatchMode::All,
            conditions: vec![],
        })
    };
    let mut rest = class("rest");
    rest.shape = Some(RateSpec::PercentMilli(50_000).into());
    let spec = PolicySpec {
        name: "p".to_owned(),
        classes: vec![class("gold"), rest],
        discipline: Discipline::MinimumShare,
        guaranteed: None,
        queues: Vec::new(),
    };
    let half = |name: &str| ReallocatedClassSpec {
        name: name.to_owned(),
        guarantee: RateSpec::PercentMilli(50_000),
        minimum: None,
        maximum: None,
    };
    let reallocation = ReallocationSpec {
        every: Duration::from_millis(every_ms),
        delay: Duration::from_millis(every_ms / 5),
        rate: None,
        headroom: 0,
        weight: 100_000,
        classes: vec![half("gold"), half("rest")],
    };
    let direction = DirectionParams {
        link: Rate::l2(LINK),
        policy: spec.resolve(LINK).unwrap().into(),
        seed: 1,
    };
    let params = reallocation.resolve(&spec, LINK).unwrap();
    GatewayParams {
        interfaces: ["a".to_owned(), "b".to_owned()],
        directions: [direction.clone(), direction],
        reallocated: [Some(ReallocatedPolicy { spec, params }), None],
        packet_io: PacketIo::AfPacket,
        memory_bytes: 8 << 20,
        metrics_port: None,
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO.saturating_add(Duration::from_millis(ms))
}

/// Counters after so many bytes were offered to `rest`, in all.
fn offered(bytes: u64) -> Vec<ClassCounters> {
    let class = |name: &str, bytes| ClassCounters {
        class: name.to_owned(),
        offered_frames: bytes / 1_000,
        offered_bytes: bytes,
        ..ClassCounters::default()
    };
    vec![class("gold", 0), class("rest", bytes)]
}

/// The rate of `rest` that is to be committed at `now`.
fn changed(loops: &mut GatewayLoops, now: Instant) -> Option<u64> {
    let directions = loops.changed(now)?;
    let rest = directions[0].policy.classes.iter();
    let rest = rest.filter_map(|class| class.shape).next()?;
    loops.directions = directions;
    loops.on_in_force(now, now);
    Some(rest.rate.rate.bits_per_second())
}

#[test]
fn rates_follow_what_was_offered_since_the_last_reading_after_the_delay() {
    let mut loops = GatewayLoops::new(&params(100), at(0));
    assert_eq!(loops.poll_at(), Some(at(0)));
    // What came before is of no interval.
    loops
        .on_read(Way::Forward, &offered(900_000), at(0))
        .unwrap();
    assert_eq!(loops.poll_at(), Some(at(100)));
    assert_eq!(changed(&mut loops, at(90)), None);
    // 8 Mbit/s, and a frame in each interval for the other.
    loops
        .on_read(Way::Forward, &offered(1_000_000), at(100))
        .unwrap();
    assert_eq!(loops.poll_at(), Some(at(120)));
    assert_eq!(changed(&mut loops, at(119)), None);
    assert_eq!(changed(&mut loops, at(120)), Some(8_000_000));
    assert_eq!(loops.poll_at(), Some(at(200)));
    // The same again is no change.
    loops
        .on_read(Way::Forward, &offered(1_100_000), at(200))
        .unwrap();
    assert_eq!(changed(&mut loops, at(220)), None);
    loops.on_in_force(at(220), at(220));
    assert_eq!(loops.state.lateness.count(), 2);
    assert_eq!(loops.poll_at(), Some(at(300)));
}

#[test]
fn a_late_loop_skips_intervals_and_keeps_its_beat() {
    let mut loops = GatewayLoops::new(&params(100), at(0));
    loops.on_read(Way::Forward, &offered(0), at(0)).unwrap();
    // 8 Mbit/s for 340 ms.
    loops
        .on_read(Way::Forward, &offered(340_000), at(340))
        .unwrap();
    assert_eq!(loops.state.skipped, 2);
    assert_eq!(changed(&mut loops, at(360)), Some(8_000_000));
    assert_eq!(loops.state.lateness.largest(), Duration::from_millis(240));
    assert_eq!(loops.poll_at(), Some(at(400)));
    // The next end of an interval would be too near.
    loops
        .on_read(Way::Forward, &offered(470_000), at(470))
        .unwrap();
    assert_eq!(loops.state.skipped, 3);
    assert_eq!(changed(&mut loops, at(480)), None);
    loops.on_in_force(at(480), at(480));
    assert_eq!(loops.poll_at(), Some(at(600)));
}

#[test]
fn of_two_decisions_that_are_late_the_newer_counts() {
    let mut loops = GatewayLoops::new(&params(100), at(0));
    loops.on_read(Way::Forward, &offered(0), at(0)).unwrap();
    loops
        .on_read(Way::Forward, &offered(100_000), at(100))
        .unwrap();
    loops
        .on_read(Way::Forward, &offered(175_000), at(200))
        .unwrap();
    assert_eq!(changed(&mut loops, at(230)), Some(6_000_000));
    assert_eq!(changed(&mut loops, at(230)), None);
}

/// A thread of loops that has decided at 100 ms, the end of the gateway, and its engine.
fn decided() -> (ReallocationThread, Answers, Control, Controlled, Engine) {
    let params = params(100);
    let engine = EngineParams::at_least(params.directions.clone(), params.memory_bytes);
    let engine = Engine::new(&engine, at(0)).unwrap();
    let exchange = Arc::new(Exchange::new().unwrap());
    let (answers, mut thread) = ReallocationThread::new(&params, &exchange, at(0));
    for (ms, bytes) in [(0, 0), (100, 100_000)] {
        let counters = offered(bytes);
        let read = thread.loops.on_read(Way::Forward, &counters, at(ms));
        read.unwrap();
    }
    // Answers are given in advance, so that nobody waits.
    let (control, controlled) = control(Box::new(drop)).unwrap();
    (thread, answers, control, controlled, engine)
}

/// Another configuration, without loops.
fn reloaded() -> Answer {
    Answer::Reloaded(Box::new(GatewayParams {
        reallocated: [None, None],
        ..params(100)
    }))
}

#[test]
fn what_was_decided_before_a_reload_is_not_committed() {
    let (mut thread, answers, control, controlled, mut engine) = decided();
    answers(reloaded());
    answers(Answer::Basis(Box::new(engine.basis())));
    thread.commit(&control).unwrap();
    while controlled.carry_out(&mut engine, at(130)) {}
    assert_eq!(engine.commits(), 0);
    assert!(thread.reloaded.is_some());
}

#[test]
fn counters_around_a_reload_decide_nothing() {
    let (mut thread, answers, control, _controlled, mut engine) = decided();
    thread.loops.on_refused(at(120));
    answers(reloaded());
    let counted = engine.count_classes(Way::Forward, 0, 32, at(200));
    answers(Answer::Counted(Box::new(counted)));
    thread.read(Way::Forward, &control).unwrap();
    assert_eq!(thread.loops.poll_at(), Some(at(200)), "not read");
}

#[test]
fn a_commit_that_a_reload_made_stale_is_refused_and_the_next_decision_counts() {
    let (mut thread, answers, control, _controlled, engine) = decided();
    answers(Answer::Basis(Box::new(engine.basis())));
    answers(Answer::Committed(Err(slicewise_dataplane::Stale)));
    thread.commit(&control).unwrap();
    assert_eq!(
        (thread.loops.state.refused, thread.loops.state.commits),
        (1, 0)
    );
    let again = thread
        .loops
        .on_read(Way::Forward, &offered(200_000), at(200));
    again.unwrap();
    assert_eq!(changed(&mut thread.loops, at(220)), Some(8_000_000));
}
