//! A gateway that is killed at any moment, while slices change.

use crate::changes::retry;
use crate::support::gateway::Gateway;
use crate::support::server::Server;
use crate::support::{slice, wait_until};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says to a test process that it is a gateway: the address of the controller and the state file.
const URL: &str = "SLICEWISE_TEST_GATEWAY_URL";
const STATE: &str = "SLICEWISE_TEST_GATEWAY_STATE";
/// How often it is killed.
const KILLS: &str = "SLICEWISE_TEST_KILLS";

/// No test: what a killed process runs.
#[test]
#[ignore = "run by the other tests"]
fn gateway_that_runs_until_it_is_killed() {
    let (Ok(url), Ok(state)) = (std::env::var(URL), std::env::var(STATE)) else {
        return;
    };
    // The one before may still be ending.
    let _gateway = retry(|| Gateway::start(&url, Path::new(&state)).ok());
    std::thread::sleep(Duration::from_secs(600));
}

fn start(server: &Server, state: &Path) -> Child {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(this);
    command.args([
        "--exact",
        "killed::gateway_that_runs_until_it_is_killed",
        "--ignored",
    ]);
    command.env(URL, &server.url).env(STATE, state);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Slices change all the time; the process is killed (SIGKILL) so many times, and started again.
fn kill_again_and_again(kills: u64) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = Server::start();
    let mut acknowledged = 0;
    for kill in 0..kills {
        server.with(|state| state.asked.clear());
        let mut child = start(&server, &state);
        wait_until("it asks", || server.with(|state| !state.asked.is_empty()));
        // It has what it has acknowledged.
        let after = server.with(|state| state.asked[0]);
        assert!(
            after >= acknowledged,
            "asks after {after}, acknowledged {acknowledged}"
        );
        for change in 0..10 + kill % 23 {
            let name = format!("s{}", change % 6);
            let vlan = u16::try_from(change % 6).unwrap();
            if change % 5 == 4 {
                server.remove(&name);
            } else {
                server.put(slice(&name, vlan, 100 + change));
            }
            std::thread::sleep(Duration::from_micros(kill * 377 % 2_000));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = server.acknowledged();
    }
    let mut child = start(&server, &state);
    let generation = server.with(|state| state.generation);
    server.wait_for(generation);
    wait_until("what was removed is gone", || {
        server.with(|state| state.draining.is_empty())
    });
    assert_eq!(server.with(|state| state.acknowledged.refused.clone()), []);
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had is what the controller wants.
    let alone = Gateway::start("http://127.0.0.1:9", &state).unwrap();
    let wanted = server.with(|state| state.slices.keys().cloned().collect::<Vec<_>>());
    wait_until("it starts alone", || {
        alone.names().is_some_and(|names| names == wanted)
    });
}

#[test]
fn a_gateway_that_is_killed_under_changes_loses_nothing_that_it_acknowledged_and_converges() {
    let kills = std::env::var(KILLS)
        .ok()
        .and_then(|kills| kills.parse().ok());
    kill_again_and_again(kills.unwrap_or(5));
}

#[test]
#[ignore = "takes minutes"]
fn a_gateway_that_is_killed_five_hundred_times_converges() {
    kill_again_and_again(500);
}
