//! The metrics of a gateway, and how they are served.

use super::*;
use crate::gateway::ControllerSnapshot;
use insta::assert_snapshot;
use slicewise_dataplane::DropReason;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// A gateway with a class on the way out that drops, and nothing on the way back.
fn example() -> Snapshot {
    let mut delay = Histogram::default();
    for micros in [10, 20, 300] {
        delay.record(Duration::from_micros(micros));
    }
    let mut counters = ClassCounters {
        class: "best \"effort\"".to_owned(),
        offered_frames: 5,
        offered_bytes: 7_570,
        sent_frames: 3,
        sent_bytes: 4_542,
        ..ClassCounters::default()
    };
    counters.dropped_frames[DropReason::QueueFull as usize] = 2;
    let interface = |name: &str| InterfaceSnapshot {
        name: name.to_owned(),
        packet_io: "af_packet",
        is_open: true,
        counters: PortCounters::default(),
    };
    let idle = DirectionSnapshot {
        counters: DirectionCounters::default(),
        backlog: 0,
        classes: Vec::new(),
        others: None,
        elephants: Vec::new(),
        delay: Histogram::default(),
        lateness: Histogram::default(),
    };
    let busy = DirectionSnapshot {
        counters: DirectionCounters {
            received_frames: 5,
            received_bytes: 7_570,
            sent_frames: 3,
            sent_bytes: 4_542,
            lost_link_time: Duration::from_micros(2_500),
            link_stalls: 3,
            ..DirectionCounters::default()
        },
        classes: vec![ClassSnapshot {
            counters,
            delay: delay.clone(),
        }],
        elephants: vec![(
            "best \"effort\"".to_owned(),
            ElephantCounters {
                tagged: 3,
                moved: 2,
                moved_back: 1,
                unfollowed_frames: 9,
            },
        )],
        delay,
        ..idle.clone()
    };
    Snapshot {
        uptime: Duration::from_millis(1_500),
        interfaces: [interface("left"), interface("right")],
        directions: [busy, idle],
        reloads: 1,
        refused_reloads: 0,
        memory_bytes: 4_096,
        free_bytes: 2_048,
        refused_frames: 7,
        lost_log_lines: 1,
        controller: Some(ControllerSnapshot {
            is_followed: true,
            generation: 17,
            refused_slices: 2,
            is_written: false,
        }),
        reallocation: Some(ReallocationSnapshot {
            commits: 4,
            skipped: 3,
            refused: 1,
            lateness: Histogram::default(),
            rates: BothWays {
                forward: vec![("rest".to_owned(), BitRate::new(17_500_000))],
                backward: Vec::new(),
            },
        }),
    }
}

#[test]
fn a_gateway_is_reported_as_openmetrics() {
    let text = openmetrics::render(&example());
    // Buckets by the dozen, and the idle way back, are as the rest.
    let is_shown = |line: &&str| {
        !["# HELP", "_bucket{", "right>left"]
            .iter()
            .any(|part| line.contains(part))
    };
    let lines: Vec<&str> = text.lines().filter(is_shown).collect();
    assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_is_reported_is_read_back() {
    let samples = Samples::parse(&openmetrics::render(&example()));
    let class = [("class", "best \"effort\"")];
    assert_eq!(
        samples.value("slicewise_class_offered_frames_total", &class),
        Some(5.0)
    );
    assert_eq!(
        samples.sum("slicewise_class_dropped_frames_total", &class),
        2.0
    );
    assert_eq!(samples.value("slicewise_uptime_seconds", &[]), Some(1.5));
}

/// A server, whose gateway answers until the end of the test.
struct Answering {
    server: Server,
    is_over: Arc<AtomicBool>,
    gateway: Option<thread::JoinHandle<()>>,
}

impl Answering {
    fn new() -> Self {
        let exchange = Arc::new(Exchange::new().unwrap());
        exchange.set_reallocation(example().reallocation);
        let is_over = Arc::new(AtomicBool::new(false));
        let (asked, over) = (Arc::clone(&exchange), Arc::clone(&is_over));
        let gateway = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if asked.is_wanted() {
                    asked.publish(example());
                }
                thread::yield_now();
            }
        });
        Self {
            server: Server::start(0, exchange).unwrap(),
            is_over,
            gateway: Some(gateway),
        }
    }

    fn first_line(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server.port())).unwrap();
        // It may have answered, and closed, before it has read everything.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        text.lines().next().unwrap_or("(nothing)").to_owned()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.gateway.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn top_reads_what_the_gateway_reports() {
    let answering = Answering::new();
    let samples = read(answering.server.port()).unwrap();
    assert_eq!(samples, Samples::parse(&openmetrics::render(&example())));
}

#[test]
fn whatever_is_asked_is_answered_or_hung_up_on_and_the_next_one_is_served() {
    let answering = Answering::new();
    assert_eq!(
        answering.first_line(b"POST /metrics HTTP/1.1\r\n\r\n"),
        "HTTP/1.1 405 Method Not Allowed"
    );
    assert_eq!(
        answering.first_line(b"GET / HTTP/1.1\r\n\r\n"),
        "HTTP/1.1 404 Not Found"
    );
    assert_eq!(
        answering.first_line(b"\r\n\r\n"),
        "HTTP/1.1 405 Method Not Allowed"
    );
    assert_eq!(answering.first_line(b"GET /metrics"), "(nothing)");
    assert_eq!(answering.first_line(b""), "(nothing)");
    assert_eq!(answering.first_line(&[0xff; 100_000]), "(nothing)");
    assert_eq!(
        answering.first_line(b"GET /metrics HTTP/1.1\r\n\r\n"),
        "HTTP/1.1 200 OK"
    );
}

/// Returns true if the server has hung up on a client that says nothing.
fn is_closed(client: &mut TcpStream) -> bool {
    client.set_nonblocking(true).unwrap();
    match client.read(&mut [0; 1]) {
        Ok(0) => true,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        Ok(_) => panic!("it was answered"),
    }
}

#[test]
fn a_scrape_is_answered_while_slow_clients_are_connected_and_the_oldest_give_way() {
    let answering = Answering::new();
    let silent = || TcpStream::connect((Ipv4Addr::LOCALHOST, answering.server.port())).unwrap();
    let scrape = || answering.first_line(b"GET /metrics HTTP/1.1\r\n\r\n");
    // One that asks, and takes no answer.
    let mut takes_none = silent();
    takes_none
        .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut slow: Vec<TcpStream> = (0..3).map(|_| silent()).collect();
    assert_eq!(scrape(), "HTTP/1.1 200 OK");
    // None of them had to be given up for that.
    assert!(!slow.iter_mut().any(is_closed));
    let mut more: Vec<TcpStream> = (0..server::MOST_CONNECTIONS).map(|_| silent()).collect();
    assert_eq!(scrape(), "HTTP/1.1 200 OK");
    assert!(slow.iter_mut().all(is_closed));
    assert!(!more.last_mut().is_some_and(is_closed));
}

#[test]
fn whoever_asks_byte_by_byte_is_hung_up_on_in_time() {
    let answering = Answering::new();
    let mut slow = TcpStream::connect((Ipv4Addr::LOCALHOST, answering.server.port())).unwrap();
    let began = Instant::now();
    while slow.write_all(b"x").is_ok() {
        thread::sleep(std::time::Duration::from_millis(100));
        assert!(began.elapsed().as_secs() < 60, "still listened to");
    }
}

#[test]
fn a_gateway_that_does_not_answer_is_reported_as_not_running() {
    let exchange = Arc::new(Exchange::new().unwrap());
    let server = Server::start(0, exchange).unwrap();
    let refused = read(server.port()).unwrap_err();
    let message = refused
        .to_string()
        .replace(&server.port().to_string(), "PORT");
    assert_snapshot!(message, @"no running gateway answers on 127.0.0.1:PORT, but something that says: HTTP/1.1 503 Service Unavailable");
}
