//! Lines that `slicewise top` shows.

use slicewise_live::metrics::{self, Sample, Samples, printable};
use slicewise_report::terminal::{Colours, Column, Listing, coloured, wrapped};
use std::collections::BTreeSet;
use std::time::Duration;

/// Where it is shown.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Columns.
    pub columns: u16,
    /// Rows of a full screen; `None` where text runs on.
    pub rows: Option<u16>,
    pub colours: Colours,
}

/// A gateway has two directions and two interfaces.
const ENDS: usize = 2;
/// Classes of a direction that are shown: those that a gateway reports, and the rest together.
const MOST_CLASSES: usize = metrics::TOP_CLASSES + 1;

/// Rates between two moments and the state at the second. Labels are not trusted: another program may hold the port.
pub fn lines(before: &Samples, now: &Samples, seconds: f64, view: &View) -> Vec<String> {
    let interval = Interval {
        before,
        now,
        seconds,
    };
    let mut shown = wrapped_lines(&heading(now), view);
    let directions: Vec<Direction> = labels(now, "slicewise_received_frames_total", "direction")
        .into_iter()
        .take(ENDS)
        .map(|name| interval.direction(name, view))
        .collect();
    let Some(rows) = view.rows else {
        for direction in directions {
            let table = classes(&direction.classes).fitted(
                view.columns,
                "on a wider terminal",
                view.colours,
            );
            shown.extend(direction.about);
            shown.extend(table.lines().map(str::to_owned));
        }
        return shown;
    };
    // A head and its rule, for each direction, and the last line.
    let fixed: usize = directions
        .iter()
        .map(|direction| direction.about.len() + 2)
        .sum();
    let room = usize::from(rows).saturating_sub(shown.len() + fixed + 1);
    let counts: Vec<usize> = directions
        .iter()
        .map(|direction| direction.classes.len())
        .collect();
    let mut left_out = Vec::new();
    for (direction, room) in directions.into_iter().zip(shares(&counts, room)) {
        shown.extend(direction.about);
        let (table, left) = fit(&direction.classes, room, view);
        shown.extend(table);
        left_out.extend(
            left.into_iter()
                .filter(|one| !left_out.contains(one))
                .collect::<Vec<_>>(),
        );
    }
    shown.truncate(usize::from(rows).saturating_sub(1));
    shown.resize(usize::from(rows).saturating_sub(1), String::new());
    shown.push(help(&left_out, view));
    shown
}

/// The screen before there is anything to compare with.
pub fn waiting(interval: Duration, view: &View) -> Vec<String> {
    let rows = usize::from(view.rows.unwrap_or(2)).saturating_sub(1);
    let mut shown = vec![format!("Measuring for {} s …", interval.as_secs())];
    shown.resize(rows.max(1), String::new());
    shown.push(help(&[], view));
    shown
}

fn help(left_out: &[String], view: &View) -> String {
    let left_out = match left_out {
        [] => String::new(),
        _ => format!("   not shown: {}", left_out.join(", ")),
    };
    let help = format!("q quits   busiest first{left_out}");
    match help.chars().count() <= usize::from(view.columns) {
        true => help,
        false => format!("q quits{left_out}"),
    }
}

/// Rows of each direction: what one does not need is the other's.
fn shares(counts: &[usize], room: usize) -> Vec<usize> {
    let &[first, second] = counts else {
        return vec![room; counts.len()];
    };
    let second = second.min((room / 2).max(room.saturating_sub(first)));
    vec![first.min(room - second), second]
}

/// The busiest classes in so many rows below a head, and what the width leaves out.
fn fit(all: &[Class], room: usize, view: &View) -> (Vec<String>, Vec<String>) {
    // The last row tells of those for which there is none.
    let shown = if all.len() <= room {
        all.len()
    } else {
        room.saturating_sub(1)
    };
    let (busiest, others) = all.split_at(shown);
    let (table, left_out) = classes(busiest).fit(view.columns, view.colours);
    // Without the rules above and below it.
    let lines = table.lines().filter(|line| !line.starts_with('─'));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    if !others.is_empty() && room > 0 {
        let dropping = others.iter().filter(|class| class.drop_rate > 0.0).count();
        let count = others.len();
        lines.push(match dropping {
            0 => format!(" … {count} more"),
            _ => {
                let text = format!(" … {count} more, {dropping} of them dropping");
                coloured(&Listing::bad(&text), view.colours)
            }
        });
    }
    (lines, left_out)
}

fn wrapped_lines(text: &str, view: &View) -> Vec<String> {
    let lines = wrapped(text, view.columns.into());
    lines.lines().map(str::to_owned).collect()
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
    let lost = match lost {
        0.0 => String::new(),
        _ => format!("   lost before the gateway: {lost:.0}"),
    };
    format!(
        "{}   running {uptime:.0} s{lost}{}",
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

/// Between two looks.
struct Interval<'a> {
    before: &'a Samples,
    now: &'a Samples,
    seconds: f64,
}

/// A direction of a gateway.
struct Direction {
    /// Lines above its classes.
    about: Vec<String>,
    /// Busiest first.
    classes: Vec<Class>,
}

struct Class {
    name: String,
    /// Bytes per second.
    offered: f64,
    sent: f64,
    frames: f64,
    queue: f64,
    dropped: f64,
    /// Frames per second.
    drop_rate: f64,
    median: String,
    p99: String,
    longest: String,
    reasons: String,
}

impl Interval<'_> {
    /// Counts since the look before; since a restart, if the gateway has restarted in between.
    fn change(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let [before, now] = [self.before, self.now].map(|samples| samples.sum(name, labels));
        if now < before { now } else { now - before }
    }

    fn rate(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.change(name, labels) / self.seconds
    }

    fn direction(&self, name: String, view: &View) -> Direction {
        let mut about = vec![String::new()];
        about.extend(wrapped_lines(&self.direction_text(&name), view));
        let offered = "slicewise_class_offered_frames_total";
        let here = self
            .now
            .of(offered)
            .filter(|s| s.label("direction") == name);
        let classes = here.take(MOST_CLASSES).map(|sample| sample.label("class"));
        let mut classes: Vec<Class> = classes.map(|class| self.class(&name, class)).collect();
        classes.sort_by(|a, b| b.offered.total_cmp(&a.offered));
        Direction { about, classes }
    }

    fn direction_text(&self, direction: &str) -> String {
        let at = [("direction", direction)];
        let rate = |name: &str| self.rate(name, &at);
        let lateness = "slicewise_departure_lateness_seconds";
        let departures = self.change(&format!("{lateness}_count"), &at);
        let in_time = [("direction", direction), ("le", "0.0001")];
        let late = departures - self.change(&format!("{lateness}_bucket"), &in_time);
        let share = if departures > 0.0 {
            late / departures * 100.0
        } else {
            0.0
        };
        let mut text = format!(
            "{}   in {} {}   out {} {}   late by > 100 µs: {share:.2} %",
            printable(direction),
            bits(rate("slicewise_received_bytes_total")),
            frames(rate("slicewise_received_frames_total")),
            bits(rate("slicewise_sent_bytes_total")),
            frames(rate("slicewise_sent_frames_total")),
        );
        let discarded = self.now.sum("slicewise_discarded_frames_total", &at);
        if discarded > 0.0 {
            text.push_str(&format!("   discarded {discarded:.0}"));
        }
        let lost = self.now.sum("slicewise_lost_link_time_seconds_total", &at);
        if lost > 0.0 {
            text.push_str(&format!(
                "   link time lost {}\nLINK TIME WAS LOST: delays may have exceeded their bounds (`event=link_time_lost` in the log says \
                 what to do)",
                time(lost)
            ));
        }
        text
    }

    fn class(&self, direction: &str, class: &str) -> Class {
        let at = [("direction", direction), ("class", class)];
        let rate = |name: &str| self.rate(name, &at);
        let delay = |quantile: &str| {
            let labels = [at[0], at[1], ("quantile", quantile)];
            let delay = self
                .now
                .value("slicewise_class_queueing_delay_seconds", &labels);
            delay.map_or_else(String::new, time)
        };
        let dropped = "slicewise_class_dropped_frames_total";
        Class {
            name: printable(class),
            offered: rate("slicewise_class_offered_bytes_total"),
            sent: rate("slicewise_class_sent_bytes_total"),
            frames: rate("slicewise_class_sent_frames_total"),
            queue: self.now.sum("slicewise_class_queue_frames", &at),
            dropped: self.now.sum(dropped, &at),
            drop_rate: rate(dropped),
            median: delay("0.5"),
            p99: delay("0.99"),
            longest: delay("1"),
            reasons: reasons(self.now, dropped, direction, class),
        }
    }
}

fn classes(classes: &[Class]) -> Listing {
    let mut table = Listing::new([
        Column::Name("Class"),
        Column::Number("Offered"),
        Column::Number("Sent"),
        Column::Number("Drops/s"),
        Column::Number("p99"),
        Column::Number("Queue"),
        Column::Number("Dropped"),
        Column::Number("Longest"),
        Column::Number("Median"),
        Column::Number("Frames/s"),
        Column::Text("Dropped for"),
    ]);
    for class in classes {
        table.add([
            class.name.clone(),
            bits(class.offered),
            bits(class.sent),
            match class.drop_rate {
                rate if rate <= 0.0 => "0".to_owned(),
                rate if rate < 1.0 => Listing::bad("✗ < 1"),
                rate => Listing::bad(&format!("✗ {rate:.0}")),
            },
            class.p99.clone(),
            format!("{:.0}", class.queue),
            format!("{:.0}", class.dropped),
            class.longest.clone(),
            class.median.clone(),
            format!("{:.0}", class.frames),
            class.reasons.clone(),
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
    let mut seen = BTreeSet::new();
    samples
        .of(name)
        .map(|sample| sample.label(label).to_owned())
        .filter(|value| seen.insert(value.clone()))
        .collect()
}

/// Bytes per second, as bits.
fn bits(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    match bits {
        _ if bits >= 1e9 => format!("{} Gbit/s", three_digits(bits / 1e9)),
        _ if bits >= 1e6 => format!("{} Mbit/s", three_digits(bits / 1e6)),
        _ if bits >= 1e3 => format!("{} kbit/s", three_digits(bits / 1e3)),
        _ => format!("{bits:.0} bit/s"),
    }
}

/// At least three, so that columns stay as narrow.
fn three_digits(number: f64) -> String {
    let decimals = match number {
        _ if number >= 100.0 => 0,
        _ if number >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.decimals$}")
}

fn frames(per_second: f64) -> String {
    format!("({per_second:.0}/s)")
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 1.0 => format!("{} s", three_digits(seconds)),
        _ if seconds >= 1e-3 => format!("{} ms", three_digits(seconds * 1e3)),
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

    fn shown(before: &Samples, now: &Samples, seconds: f64, columns: u16) -> String {
        let view = View {
            columns,
            rows: None,
            colours: Colours::None,
        };
        lines(before, now, seconds, &view).join("\n")
    }

    #[test]
    fn the_screen_shows_rates_between_two_looks_and_totals() {
        insta::assert_snapshot!(shown(&samples(1_000, 1_000), &samples(5_000, 4_000), 2.0, u16::MAX), @"
        left up (af_xdp_native), right DOWN (closed)   running 12 s   lost before the gateway: 7
        controller followed   generation 17   slices refused: 2   state file NOT WRITTEN: the controller is told nothing until it is

        left>right   in 16.0 Mbit/s (2000/s)   out 12.0 Mbit/s (1500/s)   late by > 100 µs: 1.00 %   discarded 3   link time lost 2.50 ms
        LINK TIME WAS LOST: delays may have exceeded their bounds (`event=link_time_lost` in the log says what to do)
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
         Class            Offered         Sent  Drops/s      p99  Queue  Dropped  Longest  Median  Frames/s  Dropped for
        ═════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
         best effort  16.0 Mbit/s  12.0 Mbit/s        0  34.5 ms     40       10   1.50 s  200 µs      1500  queue_full, policed
        ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
        ");
        insta::assert_snapshot!(shown(&samples(1_000, 1_000), &samples(5_000, 4_000), 2.0, 80), @"
        left up (af_xdp_native), right DOWN (closed)   running 12 s   lost before the
          gateway: 7
        controller followed   generation 17   slices refused: 2   state file NOT
          WRITTEN: the controller is told nothing until it is

        left>right   in 16.0 Mbit/s (2000/s)   out 12.0 Mbit/s (1500/s)   late by > 100
          µs: 1.00 %   discarded 3   link time lost 2.50 ms
        LINK TIME WAS LOST: delays may have exceeded their bounds
          (`event=link_time_lost` in the log says what to do)
        ─────────────────────────────────────────────────────────────────────────
         Class            Offered         Sent  Drops/s      p99  Queue  Dropped
        ═════════════════════════════════════════════════════════════════════════
         best effort  16.0 Mbit/s  12.0 Mbit/s        0  34.5 ms     40       10
        ─────────────────────────────────────────────────────────────────────────
        Not shown: Longest, Median, Frames/s, Dropped for (on a wider terminal)
        ");
    }

    /// So many classes, each busier than the one before.
    fn busy(count: u64, factor: u64) -> Samples {
        let mut text = String::new();
        for direction in ["left>right", "right>left"] {
            text.push_str(&format!(
                "slicewise_received_frames_total{{direction=\"{direction}\"}} {factor}\n"
            ));
            for class in 1..=count {
                let labels = format!("{{direction=\"{direction}\",class=\"class {class}\"}}");
                text.push_str(&format!(
                    "slicewise_class_offered_frames_total{labels} {factor}\n\
                     slicewise_class_offered_bytes_total{labels} {}\n",
                    class * factor
                ));
            }
        }
        Samples::parse(&text)
    }

    #[test]
    fn a_full_screen_has_as_many_of_the_busiest_classes_as_there_are_rows_for() {
        for (rows, classes) in [(24, 40), (24, 4), (40, 40), (120, 33), (12, 40)] {
            let view = View {
                columns: 80,
                rows: Some(rows),
                colours: Colours::None,
            };
            let lines = lines(&busy(classes, 0), &busy(classes, 1_000), 1.0, &view);
            assert_eq!(lines.len(), usize::from(rows), "{lines:#?}");
            assert!(lines.last().unwrap().starts_with("q quits"), "{lines:#?}");
            let names = lines.iter().filter_map(|line| line.strip_prefix(" class "));
            let numbers = names.map(|rest| rest.split(' ').next().unwrap().parse().unwrap());
            let numbers: Vec<u64> = numbers.collect();
            let (first, second) = numbers.split_at(numbers.len().div_ceil(2));
            for half in [first, second] {
                let busiest: Vec<u64> = (1..=classes.min(33)).rev().take(half.len()).collect();
                assert_eq!(half, busiest, "{lines:#?}");
            }
            let more = lines.iter().any(|line| line.starts_with(" … "));
            assert_eq!(
                more,
                numbers.len() as u64 / 2 < classes.min(33),
                "{lines:#?}"
            );
        }
    }

    #[test]
    fn rows_that_one_direction_does_not_need_are_those_of_the_other() {
        assert_eq!(shares(&[40, 3], 20), [17, 3]);
        assert_eq!(shares(&[3, 40], 20), [3, 17]);
        assert_eq!(shares(&[40, 40], 21), [11, 10]);
        assert_eq!(shares(&[2, 2], 20), [2, 2]);
        assert_eq!(shares(&[40], 20), [20]);
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
        let shown = shown(&hostile, &hostile, 1.0, u16::MAX);
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
        insta::assert_snapshot!(shown(&Samples::default(), &Samples::default(), 1.0, u16::MAX), @"running 0 s");
    }
}
