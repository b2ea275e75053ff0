//! A gateway whose ports are in memory, and a controller of a few lines.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "tests and a benchmark, each of which uses a part of it"
)]

pub mod gateway;
pub mod relay;
pub mod server;

use gateway::Gateway;
use server::Server;
use slicewise_api::{GatewaySlice, GatewayTerms, Guarantee, Match, Terms};
use slicewise_live::DirectionParams;
use slicewise_model::{Discipline, GuaranteedSpec, PolicySpec, Rate};
use slicewise_units::BitRate;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LINK: u64 = 1_000_000_000;
/// Longer than anything here takes: only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn directions() -> [DirectionParams; 2] {
    let spec = PolicySpec {
        name: "test".to_owned(),
        classes: Vec::new(),
        discipline: Discipline::Guaranteed,
        guaranteed: Some(GuaranteedSpec::default()),
        queues: Vec::new(),
    };
    let params = DirectionParams {
        link: Rate::l2(BitRate::new(LINK)),
        policy: spec.resolve(BitRate::new(LINK)).unwrap().into(),
        seed: 1,
    };
    [params.clone(), params]
}

/// A slice of a VLAN with a guarantee of some kbit/s.
pub fn slice(name: &str, vlan: u16, kbit: u64) -> GatewaySlice {
    let terms = GatewayTerms {
        matches: vec![Match {
            vlan: Some(vlan),
            ..Match::default()
        }],
        terms: Terms {
            guarantee: (kbit > 0).then_some(Guarantee {
                rate_bps: kbit * 1_000,
                burst_bytes: 1_522,
                delay_ns: Some(50_000_000),
                ..Guarantee::default()
            }),
            ..Terms::default()
        },
    };
    GatewaySlice {
        name: name.to_owned(),
        link: "uplink".to_owned(),
        tenant: "default".to_owned(),
        tenant_weight: 1,
        forward: Some(terms.clone()),
        backward: Some(terms),
        version: kbit,
    }
}

/// A controller, and a gateway with slice `a` of VLAN 1 in force; its state is in the folder.
pub fn started() -> (Server, Gateway, TempDir) {
    let (folder, server) = (tempfile::tempdir().unwrap(), Server::start());
    let gateway = Gateway::start(&server.url, &folder.path().join("state")).unwrap();
    server.put(slice("a", 1, 1_000));
    server.wait_for(1);
    (server, gateway, folder)
}

/// Wait until something is the case.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
