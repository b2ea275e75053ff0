//! A controller that is started on another store, or on an older copy of its own.

use crate::support::gateway::{Gateway, params};
use crate::support::server::Server;
use crate::support::{directions, slice, wait_until};
use slicewise_agent::Agent;
use std::path::Path;
use std::time::Duration;

/// Time in which a gateway that followed would have asked and changed its slices.
const WHILE: Duration = Duration::from_millis(700);

/// A controller with slice `a` and, if given, the identity of its store.
fn server(store: Option<&str>) -> Server {
    let server = Server::start();
    server.with(|state| state.store = store.map(str::to_owned));
    server.put(slice("a", 1, 1_000));
    server
}

/// Replaces the store of a controller by an empty one, and its generation.
fn replace(server: &Server, store: Option<&str>, generation: u64) {
    server.with(|state| {
        state.store = store.map(str::to_owned);
        state.generation = generation;
        state.forgotten = 0;
        state.slices.clear();
    });
}

fn has(gateway: &Gateway, names: &[&str]) -> bool {
    gateway.names().is_some_and(|found| found == names)
}

/// Asserts that the gateway keeps slice `a`, whatever the controller says.
fn keeps(gateway: &Gateway, why: &str) {
    std::thread::sleep(WHILE);
    assert!(has(gateway, &["a"]), "{why}");
}

fn is_free(url: &str, state: &Path) -> bool {
    Agent::open(params(url, state), directions()).is_ok()
}

#[test]
fn a_controller_with_another_store_is_followed_only_once_an_operator_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = server(Some("one"));
    let gateway = Gateway::start(&server.url, &state).unwrap();
    gateway.wait_for(&["a"]);
    server.wait_for(1);
    // Empty, further, of an earlier version, and an older copy of the same.
    for (store, generation) in [
        (Some("two"), 0),
        (Some("two"), 900),
        (None, 900),
        (Some("one"), 0),
    ] {
        replace(&server, store, generation);
        keeps(&gateway, &format!("{store:?} with generation {generation}"));
    }
    // Nor after a restart.
    gateway.stop();
    replace(&server, Some("two"), 900);
    wait_until("the file is free", || is_free(&server.url, &state));
    let gateway = crate::changes::retry(|| Gateway::start(&server.url, &state).ok());
    gateway.wait_for(&["a"]);
    keeps(&gateway, "after a restart");
    // The operator's word, and from then on the other store is the one that is followed.
    replace(&server, Some("two"), 0);
    server.put(slice("b", 2, 1_000));
    server.with(|state| {
        state.adopts = true;
        state.acknowledged.generation = 0;
    });
    gateway.wait_for(&["b"]);
    server.wait_for(1);
    server.with(|state| state.adopts = false);
    let generation = server.put(slice("c", 3, 1_000));
    server.wait_for(generation);
    gateway.stop();
    wait_until("the file is free", || is_free(&server.url, &state));
    let gateway = crate::changes::retry(|| Gateway::start(&server.url, &state).ok());
    let generation = server.remove("b");
    server.wait_for(generation);
    gateway.wait_for(&["c"]);
}

#[test]
fn a_gateway_of_an_earlier_version_keeps_its_slices_where_the_first_store_that_states_its_identity_is_older()
 {
    let folder = tempfile::tempdir().unwrap();
    let server = server(None);
    for vlan in 1..4 {
        server.put(slice("a", vlan, 1_000));
    }
    let gateway = Gateway::start(&server.url, &folder.path().join("state")).unwrap();
    server.wait_for(4);
    replace(&server, Some("empty"), 0);
    keeps(&gateway, "an empty store");
    // The same one, by a controller of this version: it is followed, and noted.
    server.with(|state| {
        state.store = Some("same".to_owned());
        state.generation = 4;
        state.slices.insert("a".to_owned(), slice("a", 3, 1_000));
    });
    let generation = server.put(slice("b", 2, 1_000));
    server.wait_for(generation);
    replace(&server, Some("other"), 900);
    std::thread::sleep(WHILE);
    assert!(has(&gateway, &["a", "b"]));
}
