//! Streams of events and waiting gateways whose token is revoked.

use crate::support::{Server, each_with_link, put, slice, token};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Nothing takes that long.
const LONG: Duration = Duration::from_secs(30);

/// A stream of events from the first on, with a token or without one.
fn stream(server: &Server, token: Option<&str>) -> impl Iterator<Item = String> + use<> {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(LONG)).unwrap();
    let authorization = token.map_or_else(String::new, |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    write!(
        connection,
        "GET /v1/events?after=0 HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{authorization}Connection: close\r\n\r\n"
    )
    .unwrap();
    // A read that fails is no end of the stream.
    BufReader::new(connection).lines().map(Result::unwrap)
}

/// Read on until an event of this slice has come.
fn wait_for(lines: &mut impl Iterator<Item = String>, slice: &str) {
    let name = format!("\"slice\":\"{slice}\"");
    assert!(lines.any(|line| line.contains(&name)), "{slice}");
}

#[test]
fn a_stream_ends_when_its_token_is_revoked_and_others_go_on() {
    each_with_link(|store, server, open| {
        put(&open, &slice("first", 1, 1));
        let admin = server.client_of(&token(store, "admin", "admin"));
        let screen = token(store, "screen", "viewer");
        let other = token(store, "other", "viewer");
        let mut revoked = stream(&server, Some(&screen));
        let mut kept = stream(&server, Some(&other));
        wait_for(&mut revoked, "first");
        wait_for(&mut kept, "first");
        admin.remove_token("screen").unwrap();
        // Another token of this name is not this one.
        token(store, "screen", "viewer");
        put(&admin, &slice("second", 2, 1));
        assert!(!revoked.any(|line| line.contains("second")));
        wait_for(&mut kept, "second");
    });
}

#[test]
fn a_stream_without_a_token_ends_with_the_first_token() {
    each_with_link(|store, server, open| {
        put(&open, &slice("first", 1, 1));
        let mut lines = stream(&server, None);
        wait_for(&mut lines, "first");
        token(store, "admin", "admin");
        assert_eq!(lines.filter(|line| line.contains("data:")).count(), 0);
    });
}

#[test]
fn a_gateway_that_waits_is_refused_when_its_token_is_revoked() {
    each_with_link(|store, server, _| {
        let admin = server.client_of(&token(store, "admin", "admin"));
        let gateway = server.client_of(&token(store, "edge", "gateway:gw"));
        let after = put(&admin, &slice("first", 1, 1)).value.generation;
        let waiting = std::thread::spawn(move || gateway.desired("gw", after, LONG));
        // Whether it waits by now or comes later: it is not told what comes after this.
        admin.remove_token("edge").unwrap();
        put(&admin, &slice("second", 2, 1));
        let refused = waiting.join().unwrap().unwrap_err();
        assert_eq!(refused.status(), Some(401));
    });
}
