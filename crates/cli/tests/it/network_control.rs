//! What a link needs to live, beside what overloads it: a configuration of a gateway, and its engine under virtual time.

use slicewise_live::engine::Engine;
use slicewise_live::memory::MemoryPort;
use slicewise_live::{DirectionParams, EngineParams};
use slicewise_study::{GatewayConfig, MemoryFiles};
use slicewise_units::{Duration, Instant, Way};

const GUARANTEED: &str = "{discipline: guaranteed, classes: [{name: gold, match: {vlan: 7}, \
    guarantee: {rate: 5 Mbit/s, burst: 4 kB, delay: 10 ms}}]}";

fn engine(policy: &str, control: &str) -> Engine {
    let text = format!("interfaces: [left, right]\nlink: 10 Mbit/s\npolicy: {policy}\n{control}");
    let config = GatewayConfig::parse(&text, "gateway.yaml", &MemoryFiles::default());
    let config = config.unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    let params = EngineParams {
        directions: config.directions.map(|direction| DirectionParams {
            link: direction.link,
            policy: direction.policy.into(),
            seed: 1,
        }),
        largest_frame: 1_522,
        receive_queues: [0; 2],
        memory_bytes: 64 << 20,
        adds_slices: false,
    };
    Engine::new(&params, Instant::ZERO).unwrap()
}

fn frame(types_and_tags: &[u8], payload: &[u8], bytes: usize) -> Vec<u8> {
    let mut frame = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
        types_and_tags,
        payload,
    ]
    .concat();
    frame.resize(bytes, 0);
    frame
}

/// Best effort at twice the rate of the link for a second, and `others` every 10 ms; the frames of each that arrive, and the longest that
/// one took.
fn overloaded(engine: &mut Engine, others: &[Vec<u8>]) -> Vec<(usize, Duration)> {
    let flood = frame(&[0x88, 0xb5], &[], 1_250);
    let mut ports = [(); 2].map(|()| MemoryPort::new(1_500, 10_000));
    let mut found = vec![(0, Duration::ZERO); others.len()];
    for step in 0..20_000u64 {
        let mut now = Instant::ZERO.saturating_add(Duration::from_micros(step * 50));
        if step % 10 == 0 {
            ports[0].arrive(flood.clone());
        }
        if step % 200 == 0 {
            others
                .iter()
                .for_each(|other| ports[0].arrive(other.clone()));
        }
        engine.poll(&mut ports, &mut || {
            now = now.saturating_add(Duration::from_nanos(1));
            now
        });
        for port in &mut ports {
            port.complete(engine.memory());
        }
        for sent in ports[1].take_sent() {
            if let Some(at) = others.iter().position(|other| *other == sent) {
                // In order: the first comes at step 0, and each 200 steps later.
                let (arrived, longest) = found[at];
                let steps = step.saturating_sub(arrived as u64 * 200);
                found[at] = (arrived + 1, longest.max(Duration::from_micros(steps * 50)));
            }
        }
    }
    found
}

fn arp() -> Vec<u8> {
    frame(&[8, 6], &[], 60)
}

#[test]
fn arp_arrives_beside_overloaded_best_effort_under_any_policy() {
    for policy in [
        GUARANTEED,
        "{none: true}",
        "{discipline: fifo, classes: [{name: a, match: {vlan: 7}}]}",
        "{discipline: deficit_round_robin, classes: [{name: a, match: {vlan: 7}, weight: 9}]}",
        "{classes: [{name: a, match: {vlan: 7}, priority: {}}]}",
        "{ios: \"class-map match-all c\\n match vlan 7\\npolicy-map p\\n class c\\n  bandwidth percent 50\\n\"}",
    ] {
        let arrived = overloaded(&mut engine(policy, ""), &[arp()])[0].0;
        assert_eq!(arrived, 100, "{policy}");
        let off = "network_control: {enabled: false}";
        let arrived = overloaded(&mut engine(policy, off), &[arp()])[0].0;
        assert!(arrived < 90, "{policy}: {arrived} arrive without it");
    }
}

#[test]
fn a_storm_of_arp_takes_no_more_than_its_share_of_a_guaranteed_slice() {
    let gold = frame(&[0x81, 0, 0, 7, 0x88, 0xb5], &[], 1_500);
    let mut engine = engine(GUARANTEED, "");
    let storm = vec![arp(); 500];
    let found = overloaded(&mut engine, &[vec![gold], storm].concat());
    let (arrived, longest) = found[0];
    assert_eq!(arrived, 100, "every frame of the slice");
    assert!(longest <= Duration::from_millis(10), "{longest}");
    let own = engine
        .classes(Way::Forward)
        .find(|(class, _)| class.class == "network-control");
    let (own, _) = own.unwrap();
    assert!(
        own.sent_frames < own.offered_frames / 2,
        "the rest is best effort, and is dropped"
    );
    // 1 % of the link, and its part of what is left over.
    assert!(own.sent_bytes * 8 > 100_000);
}
