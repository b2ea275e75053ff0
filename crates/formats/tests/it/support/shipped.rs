//! The policies of the studies that ship, as their router resolves them.
#![allow(dead_code)]

use slicewise_formats::ios;
use slicewise_model::{ClassSpec, Discipline, PolicyParams, PolicySpec, PortParams, Rate};
use slicewise_units::{Accounting, BitRate};

/// The licence: 35 Mbit/s of IP packets.
pub const LICENCE: Rate = Rate {
    rate: BitRate::new(35_000_000),
    accounting: Accounting::L3,
};

/// The names of the policies that are IOS text.
pub const NAMES: [&str; 6] = [
    "priority",
    "shaping",
    "policing",
    "bandwidth",
    "wred",
    "tail-drop",
];

/// A policy for the router: ports of 1 Gbit/s, of which the licence can be guaranteed.
pub fn resolve(spec: &PolicySpec) -> PolicyParams {
    let port = PortParams {
        rate: Rate {
            rate: BitRate::new(1_000_000_000),
            accounting: Accounting::L1,
        },
        admissible: LICENCE,
        hysteresis: 0,
    };
    spec.resolve_for(port).unwrap()
}

/// A policy of `studies/router-mechanisms`.
pub fn policy(name: &str) -> PolicyParams {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../studies/router-mechanisms"
    );
    let text = std::fs::read_to_string(format!("{folder}/{name}.cfg")).unwrap();
    resolve(&parse(&text))
}

pub fn parse(text: &str) -> PolicySpec {
    ios::parse(text).unwrap().policy(None).unwrap().spec
}

/// No policy: one queue.
pub fn no_policy() -> PolicyParams {
    resolve(&PolicySpec {
        name: "no-policy".into(),
        classes: vec![ClassSpec::class_default()],
        discipline: Discipline::Fifo,
        guaranteed: None,
        queues: Vec::new(),
    })
}
