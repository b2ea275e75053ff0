//! `slicewise top`: what a running gateway does, in the terminal.

use crate::Failure;
use crate::arguments::TopOptions;
use crate::exit::Exit;
use crate::outln;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use console::Term;
use slicewise_live::metrics::{self, Sample, Samples, printable};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub fn top(options: &TopOptions) -> Result<Exit, Failure> {
    let read = || metrics::read(options.port).map_err(Failure::mistake);
    let interval = Duration::from_secs(options.interval);
    let terminal = Term::stdout();
    let mut before = (read()?, Instant::now());
    loop {
        std::thread::sleep(interval);
        let now = (read()?, Instant::now());
        let seconds = (now.1 - before.1).as_secs_f64();
        let text = screen(&before.0, &now.0, seconds);
        if options.once {
            outln!("{text}");
            return Ok(Exit::Success);
        }
        // A terminal that is gone ends it.
        let drawn = terminal
            .clear_screen()
            .and_then(|()| terminal.write_line(&text));
        if drawn.is_err() {
            return Ok(Exit::Success);
        }
        before = now;
    }
}

/// A gateway has two directions and two interfaces.
const ENDS: usize = 2;
/// Classes of a direction that are shown: those that a gateway reports, and the rest together.
const MOST_CLASSES: usize = metrics::TOP_CLASSES + 1;

/// One screen: what changed between two moments, and what is. Whoever holds the port may have written the
/// labels.
fn screen(before: &Samples, now: &Samples, seconds: f64) -> String {
    let mut parts = vec![heading(now)];
    let directions = labels(now, "slicewise_received_frames_total", "direction");
    for direction in directions.into_iter().take(ENDS) {
        parts.push(direction_line(before, now, &direction, seconds));
        parts.push(classes(before, now, &direction, seconds).to_string());
    }
    parts.join("\n")
}

fn heading(now: &Samples) -> String {
    let interfaces: Vec<String> = now
        .of("slicewise_interface_up")
        .take(ENDS)
        .map(|sample| {
            let state = if sample.value > 0.0 { "up" } else { "DOWN" };
            format!(
                "{} {state} ({})",
                printable(sample.label("interface")),
                printable(sample.label("packet_io"))
            )
        })
        .collect();
    let uptime = now.sum("slicewise_uptime_seconds", &[]);
    let lost = now.sum("slicewise_interface_lost_frames_total", &[]);
    format!(
        "{}   running {uptime:.0} s   lost before the gateway: {lost:.0}{}",
        interfaces.join(", "),
        controller(now)
    )
}

/// A line about the controller, where the gateway has one.
fn controller(now: &Samples) -> String {
    let value = |name: &str| now.of(name).next().map(|sample| sample.value);
    let Some(followed) = value("slicewise_controller_followed") else {
        return String::new();
    };
    let state = if followed > 0.0 {
        "followed"
    } else {
        "NOT FOLLOWED (the log says why); slices stay as they are"
    };
    let generation = value("slicewise_controller_generation").unwrap_or_default();
    let refused = value("slicewise_controller_refused_slices").unwrap_or_default();
    let written = match value("slicewise_state_file_written") {
        Some(0.0) => "NOT WRITTEN: the controller is told nothing until it is",
        _ => "written",
    };
    format!(
        "\ncontroller {state}   generation {generation:.0}   slices refused: {refused:.0}   state file {written}"
    )
}

fn direction_line(before: &Samples, now: &Samples, direction: &str, seconds: f64) -> String {
    let at = [("direction", direction)];
    let rate = |name: &str| (now.sum(name, &at) - before.sum(name, &at)) / seconds;
    let lateness = "slicewise_departure_lateness_seconds";
    let count = format!("{lateness}_count");
    let departures = now.sum(&count, &at) - before.sum(&count, &at);
    let within = |samples: &Samples| {
        let labels = [("direction", direction), ("le", "0.0001")];
        samples.sum(&format!("{lateness}_bucket"), &labels)
    };
    let late = departures - (within(now) - within(before));
    let share = if departures > 0.0 {
        late / departures * 100.0
    } else {
        0.0
    };
    let lost = now.sum("slicewise_lost_link_time_seconds_total", &at);
    let warning = if lost > 0.0 {
        "\nLINK TIME WAS LOST: delays may have exceeded their bounds (`event=link_time_lost` in the log says what to do)"
    } else {
        ""
    };
    format!(
        "\n{}   in {} {}   out {} {}   discarded {:.0}   late by more than 100 µs: {share:.2} %   link time lost: {}{warning}",
        printable(direction),
        bits(rate("slicewise_received_bytes_total")),
        frames(rate("slicewise_received_frames_total")),
        bits(rate("slicewise_sent_bytes_total")),
        frames(rate("slicewise_sent_frames_total")),
        now.sum("slicewise_discarded_frames_total", &at),
        time(lost),
    )
}

fn classes(before: &Samples, now: &Samples, direction: &str, seconds: f64) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "Class",
            "Offered",
            "Sent",
            "Frames/s",
            "Queue",
            "Dropped",
            "Median",
            "p99",
            "Longest",
            "Dropped for",
        ]);
    let name = "slicewise_class_offered_frames_total";
    let here = now.of(name).filter(|s| s.label("direction") == direction);
    for class in here.take(MOST_CLASSES).map(|sample| sample.label("class")) {
        let at = [("direction", direction), ("class", class)];
        let rate = |name: &str| (now.sum(name, &at) - before.sum(name, &at)) / seconds;
        let delay = |quantile: &str| {
            let labels = [at[0], at[1], ("quantile", quantile)];
            now.value("slicewise_class_queueing_delay_seconds", &labels)
                .map_or_else(String::new, time)
        };
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let dropped = "slicewise_class_dropped_frames_total";
        table.add_row(vec![
            Cell::new(printable(class)),
            number(bits(rate("slicewise_class_offered_bytes_total"))),
            number(bits(rate("slicewise_class_sent_bytes_total"))),
            number(format!("{:.0}", rate("slicewise_class_sent_frames_total"))),
            number(format!(
                "{:.0}",
                now.sum("slicewise_class_queue_frames", &at)
            )),
            number(format!("{:.0}", now.sum(dropped, &at))),
            number(delay("0.5")),
            number(delay("0.99")),
            number(delay("1")),
            Cell::new(reasons(now, dropped, direction, class)),
        ]);
    }
    table
}

/// Why frames of a class were dropped, most frequent first.
fn reasons(now: &Samples, name: &str, direction: &str, class: &str) -> String {
    let mut reasons: Vec<&Sample> = now
        .of(name)
        .filter(|s| s.label("direction") == direction && s.label("class") == class)
        .collect();
    reasons.sort_by(|a, b| b.value.total_cmp(&a.value));
    let names: Vec<&str> = reasons
        .iter()
        .map(|sample| sample.label("reason"))
        .collect();
    printable(&names.join(", "))
}

/// Each value of a label once, in order of appearance.
fn labels(samples: &Samples, name: &str, label: &str) -> Vec<String> {
    let mut seen = BTreeMap::new();
    samples
        .of(name)
        .map(|sample| sample.label(label).to_owned())
        .filter(|value| seen.insert(value.clone(), ()).is_none())
        .collect()
}

/// Bytes per second, as bits.
fn bits(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    match bits {
        _ if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        _ if bits >= 1e6 => format!("{:.2} Mbit/s", bits / 1e6),
        _ => format!("{:.1} kbit/s", bits / 1e3),
    }
}

fn frames(per_second: f64) -> String {
    format!("({per_second:.0}/s)")
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 1.0 => format!("{seconds:.2} s"),
        _ if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{:.0} µs", seconds * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report of a gateway with those numbers of frames of 1,000 bytes.
    fn samples(received: u32, sent: u32) -> Samples {
        let out = r#"direction="left>right""#;
        let class = r#"direction="left>right",class="best effort""#;
        let (received_bytes, sent_bytes) = (1_000 * received, 1_000 * sent);
        Samples::parse(&format!(
            r#"
slicewise_interface_up{{interface="left",packet_io="af_xdp_native"}} 1
slicewise_interface_up{{interface="right",packet_io="closed"}} 0
slicewise_interface_lost_frames_total{{interface="left",reason="ring_full"}} 7
slicewise_uptime_seconds 12.5
slicewise_controller_followed 1
slicewise_controller_generation 17
slicewise_controller_refused_slices 2
slicewise_state_file_written 0
slicewise_received_frames_total{{{out}}} {received}
slicewise_received_bytes_total{{{out}}} {received_bytes}
slicewise_sent_frames_total{{{out}}} {sent}
slicewise_sent_bytes_total{{{out}}} {sent_bytes}
slicewise_discarded_frames_total{{{out},reason="runt"}} 3
slicewise_lost_link_time_seconds_total{{{out}}} 0.0025
slicewise_departure_lateness_seconds_bucket{{{out},le="0.0001"}} {}
slicewise_departure_lateness_seconds_count{{{out}}} {sent}
slicewise_class_offered_frames_total{{{class}}} {received}
slicewise_class_offered_bytes_total{{{class}}} {received_bytes}
slicewise_class_sent_frames_total{{{class}}} {sent}
slicewise_class_sent_bytes_total{{{class}}} {sent_bytes}
slicewise_class_queue_frames{{{class}}} 40
slicewise_class_dropped_frames_total{{{class},reason="policed"}} 1
slicewise_class_dropped_frames_total{{{class},reason="queue_full"}} 9
slicewise_class_queueing_delay_seconds{{{class},quantile="0.5"}} 0.0002
slicewise_class_queueing_delay_seconds{{{class},quantile="0.99"}} 0.0345
slicewise_class_queueing_delay_seconds{{{class},quantile="1"}} 1.5
"#,
            sent - sent / 100
        ))
    }

    #[test]
    fn the_screen_shows_rates_between_two_looks_and_totals() {
        insta::assert_snapshot!(screen(&samples(1_000, 1_000), &samples(5_000, 4_000), 2.0), @"
        left up (af_xdp_native), right DOWN (closed)   running 12 s   lost before the gateway: 7
        controller followed   generation 17   slices refused: 2   state file NOT WRITTEN: the controller is told nothing until it is

        left>right   in 16.00 Mbit/s (2000/s)   out 12.00 Mbit/s (1500/s)   discarded 3   late by more than 100 µs: 1.00 %   link time lost: 2.50 ms
        LINK TIME WAS LOST: delays may have exceeded their bounds (`event=link_time_lost` in the log says what to do)
        ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
         Class         Offered        Sent           Frames/s   Queue   Dropped   Median   p99        Longest   Dropped for         
        ════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
         best effort   16.00 Mbit/s   12.00 Mbit/s       1500      40        10   200 µs   34.50 ms    1.50 s   queue_full, policed 
        ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        ");
    }

    #[test]
    fn labels_of_whoever_holds_the_port_control_no_terminal() {
        let name = "\x1b]0;owned\x07\x1b[2J";
        let mut text = String::new();
        for number in 0..10_000 {
            text.push_str(&format!(
                "slicewise_interface_up{{interface=\"{name}{number}\",packet_io=\"{name}\"}} 1\n\
                 slicewise_received_frames_total{{direction=\"{name}{number}\"}} 1\n\
                 slicewise_class_offered_frames_total{{direction=\"{name}0\",class=\"{name}{number}\"}} 1\n\
                 slicewise_class_dropped_frames_total{{direction=\"{name}0\",class=\"{name}0\",\
                 reason=\"{name}{number}\"}} 1\n"
            ));
        }
        let hostile = Samples::parse(&text);
        let shown = screen(&hostile, &hostile, 1.0);
        assert!(
            shown
                .chars()
                .all(|character| character == '\n' || !character.is_control())
        );
        assert!(shown.contains(r"\u{1b}]0;owned\u{7}\u{1b}[2J0"), "{shown}");
        assert!(shown.lines().count() < 100);
    }

    #[test]
    fn a_gateway_that_tells_nothing_yet_has_a_screen() {
        insta::assert_snapshot!(screen(&Samples::default(), &Samples::default(), 1.0), @"   running 0 s   lost before the gateway: 0");
    }
}
