//! `slicewise top` on a terminal, before a server that answers as a gateway does.

use crate::support::{Sandbox, contains, is_installed};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const CLASSES: u64 = 30;

/// Answers until it is asked `most` times; returns the port. Class 7 drops frames.
fn gateway(most: u64) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = AtomicU64::new(0);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let time = asked.fetch_add(1, Ordering::Relaxed);
            if time == most {
                return;
            }
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let mut text =
                "slicewise_received_frames_total{direction=\"left>right\"} 1\n".to_owned();
            for class in 1..=CLASSES {
                let labels = format!("{{direction=\"left>right\",class=\"class-{class:02}\"}}");
                let bytes = class * time * 1_000_000;
                text.push_str(&format!(
                    "slicewise_class_offered_frames_total{labels} {time}\n\
                     slicewise_class_offered_bytes_total{labels} {bytes}\n"
                ));
                if class == CLASSES - 2 {
                    text.push_str(&format!(
                        "slicewise_class_dropped_frames_total{labels} {time}00\n"
                    ));
                }
            }
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n\r\n{text}");
        }
    });
    port
}

/// A shell on a terminal of 80 columns and 24 rows.
struct Terminal {
    child: Child,
    seen: Arc<Mutex<String>>,
    _folder: Sandbox,
}

impl Terminal {
    /// Runs `slicewise top`, and says at the end what it exits with, and whether keys are echoed again.
    fn new(port: u16) -> Option<Self> {
        if !is_installed("script") {
            eprintln!("not tested: there is no `script` to make a terminal");
            return None;
        }
        let folder = Sandbox::new();
        let line = format!(
            "stty cols 80 rows 24; tty; $slicewise top --port {port}; echo exit $?; stty -a | grep -o ' icanon'; echo end"
        );
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(folder.path(""))
            .env("slicewise", env!("CARGO_BIN_EXE_slicewise"))
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let (shared, mut out) = (Arc::clone(&seen), child.stdout.take().unwrap());
        thread::spawn(move || {
            let (mut piece, mut all) = ([0; 4096], Vec::new());
            while let Ok(read @ 1..) = out.read(&mut piece) {
                all.extend_from_slice(&piece[..read]);
                *shared.lock().unwrap() = String::from_utf8_lossy(&all).into_owned();
            }
        });
        Some(Self {
            child,
            seen,
            _folder: folder,
        })
    }

    /// Everything that was printed, as soon as it has such a part.
    #[track_caller]
    fn wait_for(&self, is_there: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let seen = self.seen.lock().unwrap().clone();
            if is_there(&seen) {
                return seen;
            }
            assert!(Instant::now() < end, "{seen:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &[u8]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys).unwrap();
        stdin.flush().unwrap();
    }

    /// What the shell prints after the alternate screen was left.
    #[track_caller]
    fn ended(mut self) -> String {
        let seen = self.wait_for(|seen| seen.contains("\nend\r\n"));
        self.child.kill().ok();
        self.child.wait().unwrap();
        let (before, after) = seen.split_once("\u{1b}[?1049l").unwrap();
        contains(before, "\u{1b}[?1049h");
        after.replace('\r', "")
    }
}

/// Lines of the last whole frame.
fn frame(seen: &str) -> Option<Vec<String>> {
    let (frames, _) = seen.rsplit_once("\u{1b}[?2026l")?;
    let (_, frame) = frames.rsplit_once("\u{1b}[1;1H")?;
    let lines = frame.split("\r\n");
    Some(
        lines
            .map(|line| console::strip_ansi_codes(line).into_owned())
            .collect(),
    )
}

fn has_table(seen: &str) -> bool {
    frame(seen).is_some_and(|lines| lines.iter().any(|line| line.starts_with(" class-30")))
}

#[test]
fn the_busiest_classes_fill_the_screen_until_q_is_pressed() {
    let Some(mut terminal) = Terminal::new(gateway(u64::MAX)) else {
        return;
    };
    let seen = terminal.wait_for(has_table);
    let lines = frame(&seen).unwrap();
    assert_eq!(lines.len(), 24, "{lines:#?}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{lines:#?}"
    );
    let classes: Vec<&str> = (lines.iter().filter_map(|line| line.strip_prefix(" class-")))
        .map(|line| &line[..2])
        .collect();
    assert_eq!(&classes[..4], ["30", "29", "28", "27"]);
    assert_eq!(lines[22], " … 13 more", "{lines:#?}");
    contains(&lines[23], "q quits");
    contains(&seen, "\u{1b}[1;31m✗ ");

    let tty = seen.lines().next().unwrap();
    let resized = Command::new("stty")
        .args(["-F", tty, "cols", "120", "rows", "40"])
        .status();
    assert!(resized.unwrap().success());
    let seen = terminal.wait_for(|seen| frame(seen).is_some_and(|lines| lines.len() == 40));
    contains(&frame(&seen).unwrap().join("\n"), " class-01 ");

    terminal.press(b"q");
    assert_eq!(terminal.ended(), "exit 0\n icanon\nend\n");
}

#[test]
fn the_screen_is_left_on_ctrl_c_and_when_the_gateway_is_gone() {
    let Some(mut terminal) = Terminal::new(gateway(u64::MAX)) else {
        return;
    };
    terminal.wait_for(has_table);
    terminal.press(b"\x03");
    assert_eq!(terminal.ended(), "exit 0\n icanon\nend\n");

    let terminal = Terminal::new(gateway(2)).unwrap();
    let said = terminal.ended();
    contains(&said, "error: no gateway answers on 127.0.0.1:");
    contains(&said, "exit 2\n icanon\nend\n");
}
