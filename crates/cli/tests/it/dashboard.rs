//! The dashboard in a real browser, driven by keys alone, against a real controller. A thread stands for the gateway: it puts
//! everything in force that it is told.

mod access;
mod charts;
mod foreign_page;
mod list;
mod rules;
mod silence;
mod traffic;
mod views;

use crate::support::browser::{Browser, ENTER, ESCAPE, SPACE, TAB};
use crate::support::{Sandbox, contains, text, words};
use serde_json::Value;
use slicewise_api::{
    Acknowledgement, Batch, Change, Client, ClientParams, CounterReport, Counts, DelayPercentiles,
    DirectionCounters, GatewayAnnouncement, GatewayChange, Guarantee, LinkAnnouncement,
    LinkDirection, Match, Precondition, Slice, SliceCounters, Terms,
};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// `slicewise controller` with a store of its own.
pub struct Controller {
    process: Child,
    pub url: String,
    pub sandbox: Sandbox,
}

impl Controller {
    pub fn start() -> Self {
        Self::start_with(Sandbox::new(), &[])
    }

    /// One with these arguments more.
    fn start_with(sandbox: Sandbox, more: &[&str]) -> Self {
        let mut process = sandbox
            .command(&words(
                "controller --listen 127.0.0.1:0 --store sqlite:controller.db",
            ))
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let url = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line
                .split_once(" url=")
                .map(|(_, rest)| rest.split(' ').next().unwrap_or_default().to_owned());
            said.push_str(&line);
            said.push('\n');
            address
        });
        let url =
            url.unwrap_or_else(|| panic!("the controller does not say where it listens:\n{said}"));
        // Its log must not fill the pipe.
        thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self {
            process,
            url,
            sandbox,
        }
    }

    fn client(&self) -> Client {
        self.client_with(None)
    }

    fn client_with(&self, token: Option<String>) -> Client {
        let certificate = self.sandbox.path("certificate.pem");
        Client::new(&ClientParams {
            url: self.url.clone(),
            token,
            authorities: certificate.exists().then_some(certificate),
        })
        .unwrap()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What stands for the gateway `edge` with the link `uplink` of 100 Mbit/s.
struct Gateway {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    fn start(client: Client) -> Self {
        Self::start_with(client, counted)
    }

    /// One that reports this of its slices.
    fn start_with(client: Client, report: fn(&[String]) -> CounterReport) -> Self {
        announce(&client);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let (mut after, mut slices) = (0, Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                after = follow(&client, after, &mut slices);
                client.report_counters("edge", &report(&slices)).unwrap();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

fn announce(client: &Client) {
    let direction = LinkDirection {
        admission: slicewise_api::AdmissionRule::default(),
        rate_bps: 100_000_000,
        counts: Counts::L1,
        slices_count: Counts::L2,
        largest_frame_bytes: 1514,
        buffer_bytes: None,
        shortest_delay_ns: 100_000,
        longest_delay_ns: 10_000_000_000,
        reserved: Vec::new(),
    };
    let link = LinkAnnouncement {
        name: "uplink".to_owned(),
        forward: direction.clone(),
        backward: direction,
        classes: Vec::new(),
    };
    client
        .announce(
            "edge",
            &GatewayAnnouncement {
                links: vec![link],
                reached: None,
            },
        )
        .unwrap();
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A failure of it is seen as what the page does not say.
            let _ = thread.join();
        }
    }
}

/// Put in force what changed after a generation; the generation reached.
fn follow(client: &Client, after: u64, slices: &mut Vec<String>) -> u64 {
    let desired = client
        .desired("edge", after, Duration::from_millis(200))
        .unwrap();
    let mut gone = desired.draining;
    if let Some(snapshot) = desired.snapshot {
        *slices = snapshot.into_iter().map(|slice| slice.name).collect();
    }
    for change in desired.changes {
        match change {
            GatewayChange::Put(slice) => {
                slices.retain(|name| *name != slice.name);
                slices.push(slice.name);
            }
            GatewayChange::Remove(name) => {
                slices.retain(|known| *known != name);
                gone.push(name);
            }
        }
    }
    if desired.generation > after || !gone.is_empty() {
        let acknowledgement = Acknowledgement {
            generation: desired.generation,
            gone,
            ..Acknowledgement::default()
        };
        client.acknowledge("edge", &acknowledgement).unwrap();
    }
    desired.generation
}

/// Each slice sends 8 Mbit/s and drops nothing.
fn counted(slices: &[String]) -> CounterReport {
    let direction = DirectionCounters {
        sent_frames: 1000,
        sent_bytes: 1_000_000,
        delay_ns: Some(DelayPercentiles {
            p50: 100_000,
            p99: 200_000,
            largest: 300_000,
        }),
        ..DirectionCounters::default()
    };
    let slices = slices.iter().map(|name| SliceCounters {
        name: name.clone(),
        forward: Some(direction.clone()),
        backward: None,
    });
    CounterReport {
        interval_ns: 1_000_000_000,
        slices: slices.collect(),
        ..CounterReport::default()
    }
}

/// A slice for UDP packets to a port, guaranteed so many Mbit/s.
fn slice(name: &str, port: u16, mbit: u64) -> Slice {
    Slice {
        name: name.to_owned(),
        tenant: "default".to_owned(),
        matches: vec![Match {
            destination_port: Some(port.to_string()),
            ..Match::default()
        }],
        forward: Some(Terms {
            guarantee: Some(Guarantee {
                rate_bps: mbit * 1_000_000,
                burst_bytes: 15_140,
                delay_ns: Some(20_000_000),
                ..Guarantee::default()
            }),
            ..Terms::default()
        }),
        ..Slice::default()
    }
}

fn add(client: &Client, slice: &Slice) {
    client.put_slice(slice, Precondition::Absent, None).unwrap();
}

/// Fill the form of a new slice by keys: its name, destination port and guaranteed rate.
fn fill(browser: &Browser, name: &str, port: &str, rate: &str) {
    browser.tab_to("New slice");
    browser.press(&ENTER.to_string());
    browser.wait_for("return document.activeElement.labels?.[0]?.innerText === 'Name'");
    browser.press(name);
    browser.tab_to("Destination port");
    browser.press(port);
    browser.tab_to("Guaranteed rate");
    browser.press(rate);
}

/// The state of the first slice in the list is said only while it is not installed.
const INSTALLED: &str = "return document.querySelector('tr[data-index] .verdict')?.hidden";

/// Messages about the slice in the form as it is now; while keys are pressed slowly, there are answers to what it was before.
const ANSWER: &str =
    "return document.querySelector('.admission[aria-busy=\"false\"]')?.dataset.sign";

#[test]
fn slices_are_created_refused_taken_undone_and_removed_by_keys_alone() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let controller = Controller::start();
    let _gateway = Gateway::start(controller.client());
    browser.open(&controller.url);
    browser.wait_for_text("There is no slice yet.");

    fill(&browser, "gold", "5201", "30 Mbit/s");
    browser.wait_for(&format!("{ANSWER} === 'holds'"));
    browser.press(&ENTER.to_string());
    browser.wait_for_text("gold is created.");
    browser.wait_for(INSTALLED);
    browser.wait_for_text("8 of 30 Mbit/s");

    fill(&browser, "silver", "5202", "60 Mbit/s");
    browser.wait_for(&format!("{ANSWER} === 'broken'"));
    let answer = browser.script("return document.querySelector('.admission').innerText");
    let answer = answer.as_str().unwrap().replace('\u{a0}', " ");
    contains(&answer, "link uplink, forward: guarantees 60 Mbit/s");
    browser.tab_to("Take ");
    // A person takes longer than an answer, and none comes that would take the focus away.
    thread::sleep(Duration::from_millis(500));
    browser.press(&ENTER.to_string());
    browser.wait_for(&format!("{ANSWER} === 'holds'"));
    let reason =
        browser.script("return document.querySelector('.admission [data-delay]').innerText");
    let reason = reason.as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("No delay is stated forward: it is the "),
        "{reason}"
    );
    browser.press(&ENTER.to_string());
    browser.wait_for_text("silver is created.");
    let taken = controller.client().slice("silver").unwrap();
    let rate_bps = taken.slice.forward.unwrap().guarantee.unwrap().rate_bps;
    assert!((10_000_000..60_000_000).contains(&rate_bps), "{rate_bps}");

    browser.tab_to("History");
    browser.press(&ENTER.to_string());
    browser.wait_for_text("Generation 2");
    browser.wait_for_text("silver created");
    browser.tab_to("Undo generation 2");
    browser.press(&ENTER.to_string());
    browser.wait_for(
        "return document.querySelector('dialog')?.innerText.includes('Undo the last change?')",
    );
    browser.press(&ENTER.to_string());
    browser.wait_for_text("Generation 3");
    browser.wait_for_text("silver removed");

    browser.tab_to("Slices");
    browser.press(&ENTER.to_string());
    browser.wait_for("return document.querySelector('.status')?.innerText === '1 slice'");
    browser.tab_to("Remove gold");
    browser.press(&SPACE.to_string());
    browser.wait_for("return document.activeElement.innerText === 'Cancel'");
    browser.press(&TAB.to_string());
    browser.press(&ENTER.to_string());
    browser.wait_for_text("There is no slice yet.");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_page_that_is_open_says_that_the_controller_is_away_and_keeps_what_it_knew() {
    let Some(browser) = Browser::start(360, 740) else {
        return;
    };
    let mut controller = Controller::start();
    let gateway = Gateway::start(controller.client());
    let add = Sandbox::new()
        .command(&[
            "slice",
            "add",
            "gold",
            "--match",
            "protocol=udp",
            "--rate",
            "5 Mbit/s",
        ])
        .env("SLICEWISE_CONTROLLER", &controller.url)
        .output()
        .unwrap();
    assert!(add.status.success(), "{}", text(&add.stderr));
    browser.open(&controller.url);
    browser.wait_for("return document.querySelector('tr[data-index] a')?.innerText === 'gold'");
    let widths = browser.script("return [document.documentElement.scrollWidth, innerWidth]");
    let widths: Vec<u64> = widths
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert!(
        widths[0] <= widths[1],
        "the page is wider than the phone: {widths:?}"
    );
    drop(gateway);
    controller.process.kill().unwrap();
    browser.wait_for_text("The controller does not answer.");
    browser.wait_for("return document.querySelector('tr[data-index] a')?.innerText === 'gold'");
}

/// Slices of the measurement.
const MANY: usize = 5_000;

/// Times of the page with many slices, printed:
/// `cargo test -p slicewise --test it -- --ignored --nocapture how_fast_the_dashboard_is`.
#[test]
#[ignore = "measures, and asserts nothing"]
fn how_fast_the_dashboard_is() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let controller = Controller::start();
    let _gateway = Gateway::start(controller.client());
    for first in (0..MANY).step_by(1_000) {
        let changes = (first..first + 1_000).map(many).collect();
        let batch = Batch {
            changes,
            reason: None,
        };
        controller.client().batch(&batch, None).unwrap();
    }
    browser.open(&controller.url);
    let all = format!(
        "return document.querySelector('.status')?.innerText === '{} slices'",
        "5,000"
    );
    browser.wait_for(&all);
    let paint = browser
        .script("return performance.getEntriesByName('first-contentful-paint')[0].startTime");
    let rows = browser.script("return performance.getEntriesByName('first-rows')[0].startTime");
    let whole = browser.script("return performance.getEntriesByName('all-rows')[0].startTime");
    println!(
        "{MANY} slices: first paint {paint} ms, first rows {rows} ms, whole list {whole} ms after the request"
    );
    let [median, p95, longest] = ["0.5", "0.95", "1"]
        .map(|quantile| browser.wait_for(&SCROLL.replace("QUANTILE", quantile)));
    println!(
        "scrolling by a screen a frame: frame times {median} ms in the median, {p95} ms for 95 %, {longest} ms at most"
    );
    thread::sleep(Duration::from_secs(10));
    let tasks = browser.script("return window.longTasks");
    println!("10 s of live figures: tasks longer than 50 ms: {tasks} ms");
}

/// Scrolls through the list once, and then returns a quantile of the times between frames.
const SCROLL: &str = "if (!window.frameTimes) {
    window.frameTimes = []; window.longTasks = [];
    let last = performance.now(); let steps = 0;
    const step = () => {
        const now = performance.now();
        window.frameTimes.push(now - last); last = now;
        scrollTo(0, (steps += 1) * innerHeight);
        if (steps < 300) requestAnimationFrame(step);
        else new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((one) => one.duration))).observe({ type: 'longtask' });
    };
    requestAnimationFrame(step);
}
if (window.frameTimes.length < 300) return null;
const sorted = window.frameTimes.slice(1).sort((a, b) => a - b);
return sorted[Math.min(sorted.length - 1, Math.floor(QUANTILE * sorted.length))].toFixed(1);";

/// One of many slices, of 10 kbit/s.
fn many(number: usize) -> Change {
    Change::Put(Slice {
        name: format!("slice-{number:05}"),
        tenant: "default".to_owned(),
        matches: vec![Match {
            destination: Some(format!("10.{}.{}.0/24", number / 250, number % 250)),
            ..Match::default()
        }],
        forward: Some(Terms {
            guarantee: Some(Guarantee {
                rate_bps: 10_000,
                burst_bytes: 1514,
                delay_ns: Some(2_000_000_000),
                ..Guarantee::default()
            }),
            ..Terms::default()
        }),
        ..Slice::default()
    })
}

/// Hold back answers about the slice `gold` until `release` is called, and count them.
const HOLD: &str = "
[window.held, window.answered] = [0, 0];
const released = new Promise((release) => { window.release = release; });
const before = window.fetch;
window.fetch = async (path, options) => {
    const answer = await before(path, options);
    if (path !== '/v1/slices/gold') return answer;
    window.held += 1;
    await released;
    setTimeout(() => { window.answered += 1; }, 300);
    return answer;
};";

#[test]
fn an_answer_that_comes_after_the_end_of_its_slice_does_not_bring_it_back() {
    let Some(browser) = Browser::start(1280, 900) else {
        return;
    };
    let controller = Controller::start();
    let client = controller.client();
    let gateway = Gateway::start(controller.client());
    add(&client, &slice("gold", 5201, 30));
    browser.open(&controller.url);
    browser.wait_for(INSTALLED);
    drop(gateway);
    browser.script(HOLD);
    client
        .remove_slice("gold", Precondition::None, None)
        .unwrap();
    browser.wait_for("return window.held");
    let _gateway = Gateway::start(controller.client());
    browser.wait_for_text("There is no slice yet.");
    browser.script("window.release()");
    browser.wait_for("return window.answered");
    browser.wait_for_text("There is no slice yet.");
}
