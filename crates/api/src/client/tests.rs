//! Tests of the client against servers that misbehave.

use super::*;

fn params(url: &str) -> ClientParams {
    ClientParams {
        url: url.to_owned(),
        token: Some("secret".to_owned()),
        authorities: None,
    }
}

#[test]
fn parameters_are_encoded_and_secrets_are_not_shown() {
    let query = [("a", Some("x y/&")), ("b", None), ("c", Some("1"))];
    assert_eq!(with_query("/p", &query), "/p?a=x%20y%2F%26&c=1");
    assert!(!format!("{:?}", params("http://localhost")).contains("secret"));
    let client = Client::new(&params("http://localhost")).unwrap();
    assert!(!format!("{client:?}").contains("secret"));
}

#[test]
fn a_controller_that_says_nothing_is_left_when_patience_ends() {
    // Connections are made, and nobody reads.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::new(&params(&url)).unwrap();
    let client = client.with_patience(Duration::from_millis(50));
    for error in [
        client.links().unwrap_err(),
        client
            .desired("gw", 1, Duration::from_millis(50))
            .unwrap_err(),
    ] {
        assert!(error.is_temporary() && error.to_string().contains("timeout"));
    }
}

/// A server that answers the first request of each connection, and closes it at the second one; the number of connections.
fn closing(answer: &'static [u8]) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::<std::sync::atomic::AtomicUsize>::default();
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0; 4_096]);
            let _ = stream.write_all(answer);
            if !answer.is_empty() {
                let _ = stream.read(&mut [0; 4_096]);
            }
        }
    });
    (url, connections)
}

const LINKS: &[u8] = b"HTTP/1.1 200 x\r\ncontent-length: 2\r\n\r\n[]";

#[test]
fn what_only_reads_is_asked_again_where_a_connection_that_was_kept_is_closed() {
    let (url, connections) = closing(LINKS);
    let client = Client::new(&params(&url)).unwrap();
    for _ in 0..20 {
        assert_eq!(client.links().unwrap(), []);
    }
    assert_eq!(connections.load(Ordering::Relaxed), 20);
    // A change may have been made.
    assert!(client.remove_tenant("red").unwrap_err().is_temporary());
    // Nor is anything asked more than twice.
    let (url, connections) = closing(b"");
    let client = Client::new(&params(&url)).unwrap();
    assert!(client.links().unwrap_err().is_temporary());
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    client.has_answered.store(true, Ordering::Relaxed);
    assert!(client.links().unwrap_err().is_temporary());
    assert_eq!(connections.load(Ordering::Relaxed), 3);
}

#[test]
fn an_answer_that_takes_too_much_memory_is_given_up() {
    let (url, _) = closing(
        b"HTTP/1.1 200 x\r\ncontent-length: 9999999\r\n\r\n[{\"name\":\"a\"},{\"name\":\"b\"}]",
    );
    let client = Client::new(&params(&url)).unwrap().with_answer_max(100);
    let error = client.links().unwrap_err().to_string().replace(&url, "URL");
    insta::assert_snapshot!(error, @"URL does not answer as a controller does: the answer takes more memory than the 100 B that there are for it");
}

#[test]
fn a_token_leaves_this_machine_over_tls_only() {
    for near in [
        "http://localhost:9650",
        "http://127.8.0.1",
        "http://[::1]:9650/",
    ] {
        Client::new(&params(near)).unwrap();
    }
    let far = [
        "http://192.0.2.1:9650",
        "http://localhost.example",
        "http://user@192.0.2.1",
    ];
    for far in far {
        assert!(Client::new(&params(far)).is_err(), "{far}");
    }
    let without = ClientParams {
        token: None,
        ..params("http://192.0.2.1:9650")
    };
    Client::new(&without).unwrap();
    let error = Client::new(&params("http://192.0.2.1:9650")).unwrap_err();
    insta::assert_snapshot!(error, @"http://192.0.2.1:9650: a token would be sent in clear text to another machine: expected `https://`, or `http://` with `localhost` or a loopback address");
}

#[test]
fn errors_say_what_to_do() {
    let wrong = Client::new(&params("127.0.0.1:9650")).unwrap_err();
    // Nothing listens on port 9 of this host.
    let client = Client::new(&params("http://127.0.0.1:9")).unwrap();
    let unreachable = client.links().unwrap_err();
    assert!(unreachable.is_temporary());
    insta::assert_snapshot!(format!("{wrong}\n{unreachable}"));
}

#[test]
fn a_change_that_needs_no_body_says_that_it_has_none() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        stream
            .write_all(b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        String::from_utf8(head).unwrap()
    });
    assert!(
        Client::new(&params(&url))
            .unwrap()
            .restore(1, None)
            .is_err()
    );
    let head = asked.join().unwrap();
    assert!(head.contains("content-length: 0\r\n"), "{head}");
}
