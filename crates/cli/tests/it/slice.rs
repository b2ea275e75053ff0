//! `slicewise slice` against a server that answers as a controller does.

use crate::support::{Sandbox, contains, text};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it came.
#[derive(Debug, Clone)]
struct Request {
    line: String,
    headers: String,
    body: Value,
}

/// Answers requests with what is written down for their first line; 404 otherwise.
struct Scripted {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

type Answers = Vec<(&'static str, u16, Value)>;

impl Scripted {
    fn new(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &answers, &seen);
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Exit code, standard output and standard error of `slicewise slice` with `arguments`.
    fn slice(&self, arguments: &[&str]) -> (i32, String, String) {
        let sandbox = Sandbox::new();
        sandbox.write("token", "secret\n");
        let output = sandbox
            .command(&[&["slice"], arguments].concat())
            .env("SLICEWISE_CONTROLLER", &self.url)
            .args(["--token-file", "token"])
            .output()
            .unwrap();
        let code = output.status.code().unwrap();
        (code, text(&output.stdout), text(&output.stderr))
    }

    /// What `slicewise slice` prints on a terminal of so many columns; `None` where none can be made.
    fn on_a_terminal(&self, columns: u16, arguments: &str) -> Option<String> {
        let controller = &self.url;
        let line = format!("NO_COLOR=1 $slicewise slice {arguments} --controller {controller}");
        let printed = Sandbox::new().on_a_terminal(columns, &line)?;
        let widest = printed.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{printed}");
        Some(printed)
    }

    /// The same as one text for a snapshot.
    fn snapshot(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.slice(arguments);
        let trimmed: Vec<&str> = out.lines().map(str::trim_end).collect();
        let text = format!("{}\n{err}exit {code}", trimmed.join("\n"));
        text.trim_start().to_owned()
    }
}

fn answer(stream: TcpStream, answers: &Answers, seen: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = String::new();
    while reader.read_line(&mut headers).unwrap() > 2 {}
    let headers = headers.to_lowercase();
    let length = headers.lines().find_map(|header| {
        let length = header.strip_prefix("content-length:")?;
        length.trim().parse().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let known = answers.iter().find(|(request, ..)| *request == line);
    let missing =
        json!({"status": 404, "title": "Not found", "detail": format!("nothing at {line}")});
    let (status, answer) =
        known.map_or((404, missing), |(_, status, body)| (*status, body.clone()));
    seen.lock().unwrap().push(Request {
        line,
        headers,
        body,
    });
    let kind = if status < 400 {
        "application/json"
    } else {
        "application/problem+json"
    };
    let answer = answer.to_string();
    let length = answer.len();
    write!(
        reader.into_inner(),
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{answer}"
    )
    .unwrap();
}

fn link() -> Value {
    let direction = json!({
        "rate_bps": 100_000_000, "counts": "L1", "slices_count": "L2", "largest_frame_bytes": 1514,
        "shortest_delay_ns": 100_000, "longest_delay_ns": 10_000_000_000u64,
        "promised": {"slices": 1, "rate_bps": 10_000_000, "burst_bytes": 3028},
        "left": {"rate_bps": 90_000_000, "smallest_delay_ns": 300_000},
        "delay_classes": []
    });
    json!({"name": "uplink", "gateway": "edge", "forward": direction, "backward": direction})
}

fn record(name: &str, state: &str) -> Value {
    json!({
        "name": name, "tenant": "default", "path": ["uplink"],
        "matches": [{"protocol": "udp", "destination_port": "5060"}],
        "forward": {
            "guarantee": {"rate_bps": 10_000_000, "burst_bytes": 3028, "delay_ns": 2_000_000},
            "maximum": {"rate_bps": 20_000_000, "burst_bytes": 3028}, "weight": 1
        },
        "backward": {"weight": 2},
        "state": state, "version": 7, "generation": 3, "bound_ns": {"forward": 1_999_999},
        "created_by": "ada", "created_at_ms": 1, "changed_at_ms": 1,
        "unacknowledged": if state == "installed" { json!([]) } else { json!(["edge"]) }
    })
}

fn refusal() -> Value {
    json!({
        "type": "urn:slicewise:problem:refused", "title": "Refused", "status": 409,
        "detail": "guarantees 95 Mbit/s (L2), but only 90 Mbit/s (L2) of the link is free: write a rate of at most 90 Mbit/s",
        "offer": {
            "accepted": false, "reason": "link `uplink`, forward: guarantees 95 Mbit/s (L2), but only 90 Mbit/s (L2) of the link is free: write a rate of at most 90 Mbit/s",
            "refused_on": {"slice": "voice", "link": "uplink", "direction": "forward"},
            "largest_rate_bps": 90_000_000, "smallest_delay_ns": 2_345_678
        }
    })
}

const MATCH: [&str; 2] = ["--match", "protocol=udp,destination_port=5060"];

#[test]
fn a_list_is_a_table_read_part_by_part() {
    let server = Scripted::new(vec![
        (
            "GET /v1/slices?limit=1000&name_contains=v",
            200,
            json!({"items": [record("video", "admitted")], "next": "video"}),
        ),
        (
            "GET /v1/slices?after=video&limit=1000&name_contains=v",
            200,
            json!({"items": [record("voice", "installed")]}),
        ),
    ]);
    insta::assert_snapshot!(server.snapshot(&["list", "--name", "v"]), @"
    ───────────────────────────────────────────────────────────────────────────────────
     Slice  State         Forward  Forward  Tenant   Path    Gateways          Forward
                       guaranteed    delay                                     at most
    ═══════════════════════════════════════════════════════════════════════════════════
     video  admitted    10 Mbit/s     2 ms  default  uplink  waits for edge  20 Mbit/s
     voice  installed   10 Mbit/s     2 ms  default  uplink  –               20 Mbit/s
    ───────────────────────────────────────────────────────────────────────────────────
    2 slices
    exit 0
    ");
    let (_, printed, _) = server.slice(&["list", "--name", "v", "--json"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed[1]["name"], "voice");
    let token = &server.requests()[0].headers;
    contains(token, "authorization: bearer secret");
}

#[test]
fn a_list_and_a_slice_fit_the_terminal_and_say_what_they_leave_out() {
    let mut long = record(
        "video-of-a-customer-with-a-long-name-in-berlin-mitte",
        "admitted",
    );
    long["backward"]["guarantee"] = json!({"rate_bps": 2_500_000, "burst_bytes": 3028});
    long["bound_ns"] = json!({"forward": 1_999_999, "backward": 12_345_678});
    let mut refused = record("voice", "admitted");
    refused["path"] = json!(["uplink", "core"]);
    refused["problems"] = json!([{"gateway": "edge", "reason": "no room"}]);
    let delay = json!({"p50": 100_000, "p99": 200_000, "largest": 1_234_567});
    let counters = json!({"name": "voice", "hops": [{
        "gateway": "edge-of-berlin-mitte", "at_ms": 5, "interval_ns": 1_000_000_000,
        "forward": {
            "sent_frames": 1000, "sent_bytes": 1_000_000, "waiting_frames": 2,
            "dropped": {"queue_full": 3, "policed": 12}, "delay_ns": delay
        },
        "backward": {"sent_frames": 0, "sent_bytes": 0}
    }]});
    let server = Scripted::new(vec![
        (
            "GET /v1/slices?limit=1000",
            200,
            json!({"items": [refused.clone(), long]}),
        ),
        ("GET /v1/slices/voice", 200, refused),
        ("GET /v1/slices/voice/counters", 200, counters),
    ]);
    for columns in [80, 120] {
        for call in ["list", "show voice"] {
            let Some(printed) = server.on_a_terminal(columns, call) else {
                return;
            };
            let name = call.replace(' ', "_");
            insta::assert_snapshot!(format!("{name}_on_{columns}_columns"), printed);
        }
    }
}

#[test]
fn a_list_that_is_cut_off_says_of_how_many() {
    let server = Scripted::new(vec![(
        "GET /v1/slices?limit=1000&count=true",
        200,
        json!({"items": [record("video", "installed"), record("voice", "installed")], "next": "voice", "total": 2001}),
    )]);
    let (code, printed, _) = server.slice(&["list", "--limit", "1"]);
    assert_eq!(
        (code, printed.lines().last()),
        (0, Some("1 of 2,001 slices"))
    );
    let (_, printed, _) = server.slice(&["list", "--limit", "1", "--json"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed.as_array().unwrap().len(), 1);
}

#[test]
fn code_points_have_their_names() {
    let server = Scripted::new(vec![
        ("GET /v1/links", 200, json!([link()])),
        ("PUT /v1/slices/voice", 201, record("voice", "admitted")),
    ]);
    let add = |dscp: &str| server.slice(&["add", "voice", "--match", dscp, "--weight", "1"]);
    assert_eq!(add("protocol=udp,dscp=ef").0, 0);
    let sent = server.requests().pop().unwrap().body;
    assert_eq!(sent["matches"][0]["dscp"], 46);
    let (code, _, said) = add("dscp=fe");
    assert_eq!(code, 2);
    insta::assert_snapshot!(said, @"error: `--match dscp=fe`: `fe` is not a code point from 0 to 63, or the name of one: known are `default`, `le`, `cs1`, `cs2`, `cs3`, `cs4`, `cs5`, `cs6`, `cs7`, `af11`, `af12`, `af13`, `af21`, `af22`, `af23`, `af31`, `af32`, `af33`, `af41`, `af42` and 3 more; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`");
}

#[test]
fn a_delay_that_was_not_stated_is_said_with_its_reason() {
    let mut made = record("voice", "admitted");
    made["forward"]["guarantee"]["delay_ns"] = Value::Null;
    made["bound_ns"] = json!({"forward": 1_264_000, "backward": 2_000_000});
    let choices = json!({
        "forward": {"reason": "smallest", "default_ns": 905_000, "links_ns": [1_264_000]},
        "backward": {"reason": "default", "default_ns": 2_000_000, "links_ns": [2_000_000]}
    });
    made["delay_choice"] = choices.clone();
    let answer = json!({"accepted": true, "bound_ns": made["bound_ns"], "delay_choice": choices});
    let server = Scripted::new(vec![
        ("GET /v1/links", 200, json!([link()])),
        ("PUT /v1/slices/voice", 201, made),
        (
            "GET /v1/slices/voice",
            404,
            json!({"type": "x", "title": "x", "status": 404, "detail": "x"}),
        ),
        ("POST /v1/offers", 200, answer),
    ]);
    let options = [&["voice"], &MATCH[..], &["--rate", "10 Mbit/s", "--both"]].concat();
    let asked = |command: &'static str| server.slice(&[&[command], &options[..]].concat()).1;
    insta::assert_snapshot!(asked("add"), @"
    voice is created (generation 3, admitted, waits for edge): delayed by at most 1.264 ms forward, 2 ms backward
    forward: no delay was stated, so it is the smallest that fitted when it was admitted, or the one from before a change, not the default of 905 µs (burst / rate, within the delays of the links)
    backward: no delay was stated, so it is the default (burst / rate, within the delays of the links)
    ");
    insta::assert_snapshot!(asked("offer"), @"
    would be accepted: delayed by at most 1.264 ms forward, 2 ms backward
    forward: no delay was stated, so it is the smallest that fitted when it was admitted, or the one from before a change, not the default of 905 µs (burst / rate, within the delays of the links)
    backward: no delay was stated, so it is the default (burst / rate, within the delays of the links)
    ");
}

#[test]
fn a_slice_is_shown_with_its_counters() {
    let counted = json!({"name": "voice", "hops": [{
        "gateway": "edge", "at_ms": 5, "interval_ns": 1_000_000_000,
        "forward": {
            "sent_frames": 1000, "sent_bytes": 1_000_000, "dropped": {"queue_full": 3}, "waiting_frames": 2,
            "delay_ns": {"p50": 100_000, "p99": 200_000, "largest": 1_234_567}
        },
        "backward": {"sent_frames": 0, "sent_bytes": 0}
    }]});
    let server = Scripted::new(vec![
        ("GET /v1/slices/voice", 200, record("voice", "installed")),
        ("GET /v1/slices/voice/counters", 200, counted),
    ]);
    insta::assert_snapshot!(server.snapshot(&["show", "voice"]));
    insta::assert_snapshot!(server.snapshot(&["show", "nobody"]), @"
    error: nothing at GET /v1/slices/nobody
    exit 2
    ");
}

#[test]
fn a_new_slice_is_put_only_if_there_is_none_of_its_name() {
    let server = Scripted::new(vec![
        ("GET /v1/links", 200, json!([link()])),
        ("PUT /v1/slices/voice", 201, record("voice", "admitted")),
    ]);
    let add = [
        "add",
        "voice",
        "--rate",
        "10 Mbit/s",
        "--delay",
        "2 ms",
        "--both",
        "--backward-delay",
        "none",
    ];
    insta::assert_snapshot!(server.snapshot(&[&add[..], &MATCH].concat()), @"
    voice is created (generation 3, admitted, waits for edge): delayed by at most 2 ms forward
    exit 0
    ");
    let put = server.requests().pop().unwrap();
    assert!(put.headers.contains("if-none-match: *"), "{}", put.headers);
    assert_eq!(
        put.body,
        json!({
            "name": "voice", "path": [],
            "matches": [{"protocol": "udp", "destination_port": "5060"}],
            "forward": {"guarantee": {"rate_bps": 10_000_000, "burst_bytes": 3028, "delay_ns": 2_000_000}, "weight": 1},
            "backward": {"guarantee": {"rate_bps": 10_000_000, "burst_bytes": 3028}, "weight": 1}
        })
    );
}

#[test]
fn a_change_keeps_what_is_not_given_and_names_the_version_it_read() {
    let server = Scripted::new(vec![
        ("GET /v1/links", 200, json!([link()])),
        ("GET /v1/slices/voice", 200, record("voice", "installed")),
        ("PUT /v1/slices/voice", 200, record("voice", "admitted")),
    ]);
    let change = [
        "change",
        "voice",
        "--maximum",
        "none",
        "--rate",
        "12 Mbit/s",
        "--without",
        "backward",
    ];
    insta::assert_snapshot!(server.snapshot(&change), @"
    voice is changed (generation 3, admitted, waits for edge): delayed by at most 2 ms forward
    exit 0
    ");
    let put = server.requests().pop().unwrap();
    assert!(put.headers.contains("if-match: \"7\""), "{}", put.headers);
    assert_eq!(
        put.body["forward"],
        json!({"guarantee": {"rate_bps": 12_000_000, "burst_bytes": 3028, "delay_ns": 2_000_000}, "weight": 1})
    );
    assert_eq!(put.body.get("backward"), None);
}

#[test]
fn a_refusal_says_why_and_what_would_be_accepted() {
    let server = Scripted::new(vec![
        ("GET /v1/links", 200, json!([link()])),
        ("PUT /v1/slices/voice", 409, refusal()),
        ("POST /v1/offers", 200, refusal()["offer"].clone()),
        (
            "PUT /v1/slices/taken",
            412,
            json!({"status": 412, "detail": "slice `taken` exists"}),
        ),
    ]);
    let wanted = [&["--rate", "95 Mbit/s"][..], &MATCH].concat();
    insta::assert_snapshot!(server.snapshot(&[&["add", "voice"], &wanted[..]].concat()), @"
    error: refused: link `uplink`, forward: guarantees 95 Mbit/s (L2), but only 90 Mbit/s (L2) of the link is free: write a rate of at most 90 Mbit/s
    exit 1
    ");
    insta::assert_snapshot!(server.snapshot(&[&["offer", "voice"], &wanted[..]].concat()), @"
    would be refused: link `uplink`, forward: guarantees 95 Mbit/s (L2), but only 90 Mbit/s (L2) of the link is free: write a rate of at most 90 Mbit/s
    exit 1
    ");
    insta::assert_snapshot!(server.snapshot(&[&["add", "taken"], &wanted[..]].concat()), @"
    error: slice `taken` exists (look at it with `slicewise slice show`, and `change` it)
    exit 2
    ");
    let (code, printed, _) = server.slice(&[&["add", "voice", "--json"], &wanted[..]].concat());
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(code, 1);
    assert_eq!(printed["offer"]["largest_rate_bps"], 90_000_000);
}

#[test]
fn an_offer_that_is_accepted_says_what_else_would_be() {
    let offer = json!({"accepted": true, "bound_ns": {"forward": 2_000_000}, "largest_rate_bps": 90_000_000});
    let server = Scripted::new(vec![
        ("GET /v1/links", 200, json!([link()])),
        ("GET /v1/slices/voice", 200, record("voice", "installed")),
        ("POST /v1/offers", 200, offer),
    ]);
    insta::assert_snapshot!(server.snapshot(&["offer", "voice", "--rate", "20 Mbit/s"]), @"
    would be accepted: delayed by at most 2 ms forward
    would also be accepted: a rate of up to 90 Mbit/s
    exit 0
    ");
}

#[test]
fn slices_are_removed_together() {
    let server = Scripted::new(vec![(
        "POST /v1/batches",
        200,
        json!({"generation": 9, "slices": [record("video", "draining"), record("voice", "draining")]}),
    )]);
    insta::assert_snapshot!(server.snapshot(&["remove", "video", "voice"]), @"
    video, voice are removed (generation 9); capacity is free once waiting frames have left
    exit 0
    ");
    let sent = server.requests().pop().unwrap();
    assert_eq!(
        sent.body,
        json!({"changes": [{"remove": "video"}, {"remove": "voice"}]})
    );
}

#[test]
fn slices_that_drain_are_purged_one_after_the_other() {
    let in_force = json!({
        "type": "urn:slicewise:problem:conflict", "title": "Conflict", "status": 409,
        "detail": "slice `voice` does not drain: remove it first"
    });
    let server = Scripted::new(vec![
        (
            "POST /v1/slices/video/purge",
            202,
            record("video", "draining"),
        ),
        ("POST /v1/slices/voice/purge", 409, in_force),
    ]);
    insta::assert_snapshot!(server.snapshot(&["purge", "video", "voice"]), @"
    video is purged (generation 3); waiting for: edge
    error: slice `voice` does not drain: remove it first
    exit 1
    ");
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let server = Scripted::new(vec![("GET /v1/links", 200, json!([link()]))]);
    let mistakes: [&[&str]; 5] = [
        &["add", "voice", "--rate", "10"],
        &["add", "voice", "--rate", "10 Mbit/s"],
        &["add", "voice", "--match", "protocol=udp"],
        &[
            "add",
            "Voice",
            "--match",
            "protocol=udp",
            "--rate",
            "1 Mbit/s",
        ],
        &["add", "voice", "--match", "port=80", "--rate", "1 Mbit/s"],
    ];
    let texts = mistakes.map(|arguments| server.snapshot(arguments));
    insta::assert_snapshot!(texts.join("\n"), @r#"
    error: invalid value '10' for '--rate <RATE>': `10` is a number without a unit: a rate needs one of bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, GB/s

    For more information, try '--help'.
    exit 2
    error: say which packets belong to the slice: for example `--match protocol=udp,destination_port=5201`
    exit 2
    error: say what the slice is promised: for example `--rate "10 Mbit/s"`, or `--weight 1` for a part of the excess
    exit 2
    error: /name: "Voice" is not a name: expected 1 to 63 of a-z, 0-9, `.`, `_` and `-`, and a letter or digit first
    exit 2
    error: `--match port=80`: unknown field `port`, expected one of `source`, `destination`, `protocol`, `source_port`, `destination_port`, `dscp`, `vlan`, `inner_vlan`, `teid`; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`
    exit 2
    "#);
    let asked = server.requests();
    assert!(asked.iter().all(|one| one.line == "GET /v1/links"));
}

#[test]
fn a_controller_that_is_away_is_named() {
    let sandbox = Sandbox::new();
    // Nothing listens on port 9 of this host.
    let list = ["slice", "list", "--controller", "http://127.0.0.1:9"];
    let error = sandbox.refused(1, &list);
    contains(&error, "http://127.0.0.1:9 cannot be reached");
    let error = sandbox.refused(2, &["slice", "list", "--controller", "127.0.0.1:9650"]);
    contains(&error, "is not an address of a controller");
}
