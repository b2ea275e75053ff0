//! A snapshot as OpenMetrics 1.0 text (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use super::{DirectionSnapshot, Snapshot, TOP_CLASSES};
use crate::engine::Discard;
use crate::histogram::Histogram;
use slicewise_dataplane::{ClassCounters, DropReason, ElephantCounters};
use slicewise_units::Duration;
use std::fmt::Write;

/// Bucket ends that are reported: every second one of those counted would be too many for a scrape.
const ENDS_US: [u64; 19] = [
    5, 10, 20, 50, 100, 200, 350, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    200_000, 500_000, 1_000_000, 10_000_000,
];

/// The text, with its `# EOF`.
#[must_use]
pub fn render(snapshot: &Snapshot) -> String {
    let mut text = Text(String::with_capacity(16 * 1024));
    gateway(&mut text, snapshot);
    controller(&mut text, snapshot);
    reallocation(&mut text, snapshot);
    interfaces(&mut text, snapshot);
    directions(&mut text, snapshot);
    classes(&mut text, snapshot);
    elephants(&mut text, snapshot);
    histograms(&mut text, snapshot);
    text.0.push_str("# EOF\n");
    text.0
}

struct Text(String);

/// Names and values of labels.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (key, label)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{key}=\"{}\"", escaped(label));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        for end in ENDS_US {
            let end = Duration::from_micros(end);
            let below = histogram.count() - histogram.count_above(end);
            let end = seconds(end);
            let labels: Vec<_> = labels
                .iter()
                .copied()
                .chain([("le", end.as_str())])
                .collect();
            self.sample(&bucket, &labels, below);
        }
        let all: Vec<_> = labels.iter().copied().chain([("le", "+Inf")]).collect();
        self.sample(&bucket, &all, histogram.count());
        self.sample(&format!("{name}_count"), labels, histogram.count());
        self.sample(&format!("{name}_sum"), labels, seconds(histogram.sum()));
    }
}

fn gateway(text: &mut Text, snapshot: &Snapshot) {
    text.family(
        "slicewise_uptime_seconds",
        "gauge",
        "Time since the gateway started.",
    );
    text.sample("slicewise_uptime_seconds", &[], seconds(snapshot.uptime));
    text.family(
        "slicewise_reloads",
        "counter",
        "Configurations read while running, by whether they were applied.",
    );
    let reloads = [
        ("applied", snapshot.reloads),
        ("refused", snapshot.refused_reloads),
    ];
    for (outcome, count) in reloads {
        text.sample("slicewise_reloads_total", &[("outcome", outcome)], count);
    }
    text.family("slicewise_frame_memory_bytes", "gauge", "Frame memory.");
    text.sample("slicewise_frame_memory_bytes", &[], snapshot.memory_bytes);
    text.family(
        "slicewise_frame_memory_free_bytes",
        "gauge",
        "Frame memory that neither a frame nor an interface holds.",
    );
    text.sample(
        "slicewise_frame_memory_free_bytes",
        &[],
        snapshot.free_bytes,
    );
    text.family(
        "slicewise_frame_memory_refused_frames",
        "counter",
        "Frames dropped because their class had used up its frame memory; among those that classes dropped.",
    );
    text.sample(
        "slicewise_frame_memory_refused_frames_total",
        &[],
        snapshot.refused_frames,
    );
    text.family(
        "slicewise_log_lines_lost",
        "counter",
        "Log lines that could not be written.",
    );
    text.sample(
        "slicewise_log_lines_lost_total",
        &[],
        snapshot.lost_log_lines,
    );
}

fn controller(text: &mut Text, snapshot: &Snapshot) {
    let Some(controller) = &snapshot.controller else {
        return;
    };
    for (name, help, value) in [
        (
            "slicewise_controller_followed",
            "Whether the controller answers, and has the store that the gateway follows.",
            controller.is_followed.into(),
        ),
        (
            "slicewise_controller_generation",
            "Newest generation of the controller that was taken.",
            controller.generation,
        ),
        (
            "slicewise_controller_refused_slices",
            "Slices of the controller that cannot be put in force.",
            controller.refused_slices,
        ),
        (
            "slicewise_state_file_written",
            "Whether the state file has all that is in force.",
            controller.is_written.into(),
        ),
    ] {
        text.family(name, "gauge", help);
        text.sample(name, &[], value);
    }
}

fn reallocation(text: &mut Text, snapshot: &Snapshot) {
    let Some(reallocation) = &snapshot.reallocation else {
        return;
    };
    for (name, help, value) in [
        (
            "slicewise_reallocation_commits",
            "Commits of other rates by `reallocate`.",
            reallocation.commits,
        ),
        (
            "slicewise_reallocation_skipped_intervals",
            "Intervals at whose end `reallocate` read nothing, because the reading before was late.",
            reallocation.skipped,
        ),
        (
            "slicewise_reallocation_refused",
            "Decisions of `reallocate` that were not carried out.",
            reallocation.refused,
        ),
    ] {
        text.family(name, "counter", help);
        text.sample(&format!("{name}_total"), &[], value);
    }
    let name = "slicewise_reallocation_lateness_seconds";
    let help = "How much later than due decisions of `reallocate` were in force.";
    text.family(name, "histogram", help);
    text.histogram(name, &[], &reallocation.lateness);
    let name = "slicewise_reallocated_rate_bits_per_second";
    text.family(name, "gauge", "Rate that `reallocate` gives to a class.");
    let rates = reallocation.rates.as_ref().into_iter();
    for ((label, _), (_, rates)) in each(snapshot).iter().zip(rates) {
        for (class, rate) in rates.iter().take(TOP_CLASSES) {
            let labels = [("direction", label.as_str()), ("class", class.as_str())];
            text.sample(name, &labels, rate.bits_per_second());
        }
    }
}

fn interfaces(text: &mut Text, snapshot: &Snapshot) {
    text.family(
        "slicewise_interface_up",
        "gauge",
        "Whether frames can be sent and received on an interface.",
    );
    for interface in &snapshot.interfaces {
        let labels = [
            ("interface", interface.name.as_str()),
            ("packet_io", interface.packet_io),
        ];
        text.sample(
            "slicewise_interface_up",
            &labels,
            u8::from(interface.is_open),
        );
    }
    text.family(
        "slicewise_interface_lost_frames",
        "counter",
        "Frames that an interface lost before they reached the gateway.",
    );
    for interface in &snapshot.interfaces {
        let counters = &interface.counters;
        for (reason, count) in [
            ("ring_full", counters.ring_full),
            ("cut_off", counters.cut_off),
        ] {
            let labels = [("interface", interface.name.as_str()), ("reason", reason)];
            text.sample("slicewise_interface_lost_frames_total", &labels, count);
        }
    }
    let name = "slicewise_interface_short_refills";
    text.family(
        name,
        "counter",
        "Times that no frame memory was free to receive into.",
    );
    for interface in &snapshot.interfaces {
        let labels = [("interface", interface.name.as_str())];
        let count = interface.counters.short_refills;
        text.sample(&format!("{name}_total"), &labels, count);
    }
}

/// Each direction with the label that names it.
fn each(snapshot: &Snapshot) -> [(String, &DirectionSnapshot); 2] {
    let [first, second] = &snapshot.interfaces;
    let [forward, backward] = &snapshot.directions;
    [
        (format!("{}>{}", first.name, second.name), forward),
        (format!("{}>{}", second.name, first.name), backward),
    ]
}

fn directions(text: &mut Text, snapshot: &Snapshot) {
    let each = each(snapshot);
    let mut counter = |name: &str, help: &str, value: fn(&DirectionSnapshot) -> u64| {
        text.family(name, "counter", help);
        for (label, direction) in &each {
            let labels = [("direction", label.as_str())];
            text.sample(&format!("{name}_total"), &labels, value(direction));
        }
    };
    counter("slicewise_received_frames", "Frames that arrived.", |d| {
        d.counters.received_frames
    });
    counter(
        "slicewise_received_bytes",
        "Bytes that arrived, L2 without FCS.",
        |d| d.counters.received_bytes,
    );
    counter(
        "slicewise_sent_frames",
        "Frames handed to the interface.",
        |d| d.counters.sent_frames,
    );
    counter(
        "slicewise_sent_bytes",
        "Bytes handed to the interface, L2 without FCS.",
        |d| d.counters.sent_bytes,
    );
    counter(
        "slicewise_removed_classes_dropped_frames",
        "Frames dropped by classes that a reload has removed since.",
        |d| d.counters.dropped_by_removed_frames,
    );
    counter(
        "slicewise_not_ip_frames",
        "Frames that arrived and are not IP.",
        |d| d.counters.not_ip_frames,
    );
    counter(
        "slicewise_link_stalls",
        "Times that the link lost time because frames left more than 1 ms late.",
        |d| d.counters.link_stalls,
    );
    let name = "slicewise_lost_link_time_seconds";
    text.family(
        name,
        "counter",
        "Link time lost in these: delay bounds hold while it does not grow.",
    );
    for (label, direction) in &each {
        let lost = seconds(direction.counters.lost_link_time);
        text.sample(&format!("{name}_total"), &[("direction", label)], lost);
    }
    text.family(
        "slicewise_discarded_frames",
        "counter",
        "Frames discarded, not counting those that classes drop.",
    );
    for (label, direction) in &each {
        for reason in Discard::ALL {
            let labels = [("direction", label.as_str()), ("reason", reason.name())];
            let count = direction.counters.discarded[reason as usize];
            text.sample("slicewise_discarded_frames_total", &labels, count);
        }
    }
}

fn classes(text: &mut Text, snapshot: &Snapshot) {
    let each = each(snapshot);
    let all: Vec<(&str, &ClassCounters)> = each
        .iter()
        .flat_map(|(label, direction)| {
            let top = direction.classes.iter().map(|class| &class.counters);
            top.chain(&direction.others)
                .map(move |class| (label.as_str(), class))
        })
        .collect();
    let mut family = |name: &str, kind: &str, help: &str, value: fn(&ClassCounters) -> u64| {
        text.family(name, kind, help);
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (direction, class) in &all {
            let labels = [("direction", *direction), ("class", class.class.as_str())];
            text.sample(&format!("{name}{suffix}"), &labels, value(class));
        }
    };
    let counter = "counter";
    family(
        "slicewise_class_offered_frames",
        counter,
        "Frames offered to a class.",
        |c| c.offered_frames,
    );
    family(
        "slicewise_class_offered_bytes",
        counter,
        "Bytes offered to a class, L2 without FCS.",
        |c| c.offered_bytes,
    );
    family(
        "slicewise_class_sent_frames",
        counter,
        "Frames of a class that left.",
        |c| c.sent_frames,
    );
    family(
        "slicewise_class_sent_bytes",
        counter,
        "Bytes of a class that left, L2 without FCS.",
        |c| c.sent_bytes,
    );
    family(
        "slicewise_class_marked_frames",
        counter,
        "Frames of a class that left with a congestion mark of the gateway.",
        |c| c.marked_frames,
    );
    family(
        "slicewise_class_queue_frames",
        "gauge",
        "Frames of a class that wait.",
        |c| c.queued_frames,
    );
    text.family(
        "slicewise_class_dropped_frames",
        counter,
        "Frames of a class that were dropped, by reason; reasons that never occurred are left out.",
    );
    for (direction, class) in &all {
        for reason in DropReason::ALL {
            let count = class.dropped(reason);
            if count > 0 {
                let labels = [
                    ("direction", *direction),
                    ("class", class.class.as_str()),
                    ("reason", reason.name()),
                ];
                text.sample("slicewise_class_dropped_frames_total", &labels, count);
            }
        }
    }
}

/// Nothing where no class moves elephants.
fn elephants(text: &mut Text, snapshot: &Snapshot) {
    let each = each(snapshot);
    let all: Vec<(&str, &str, &ElephantCounters)> = each
        .iter()
        .flat_map(|(label, direction)| {
            let classes = direction.elephants.iter();
            classes.map(move |(class, flows)| (label.as_str(), class.as_str(), flows))
        })
        .collect();
    if all.is_empty() {
        return;
    }
    text.family(
        "slicewise_elephant_flows",
        "counter",
        "Flows of a class that were found to be elephants, moved to their queue, and moved back.",
    );
    for (direction, class, flows) in &all {
        let events = [
            ("tagged", flows.tagged),
            ("moved", flows.moved),
            ("moved_back", flows.moved_back),
        ];
        for (event, count) in events {
            let labels = [
                ("direction", *direction),
                ("class", *class),
                ("event", event),
            ];
            text.sample("slicewise_elephant_flows_total", &labels, count);
        }
    }
    text.family(
        "slicewise_elephant_unfollowed_frames",
        "counter",
        "Frames of flows for which there was no counter, so that they cannot be found.",
    );
    for (direction, class, flows) in &all {
        let labels = [("direction", *direction), ("class", *class)];
        let name = "slicewise_elephant_unfollowed_frames_total";
        text.sample(name, &labels, flows.unfollowed_frames);
    }
}

fn histograms(text: &mut Text, snapshot: &Snapshot) {
    let each = each(snapshot);
    let name = "slicewise_departure_lateness_seconds";
    text.family(
        name,
        "histogram",
        "How much later than the link clock said frames left.",
    );
    for (label, direction) in &each {
        text.histogram(name, &[("direction", label)], &direction.lateness);
    }
    let name = "slicewise_queueing_delay_seconds";
    text.family(name, "histogram", "From arrival to departure, all classes.");
    for (label, direction) in &each {
        text.histogram(name, &[("direction", label)], &direction.delay);
    }
    let name = "slicewise_class_queueing_delay_seconds";
    text.family(name, "summary", "From arrival to departure, of a class.");
    for (label, direction) in &each {
        for class in &direction.classes {
            let label = [
                ("direction", label.as_str()),
                ("class", class.counters.class.as_str()),
            ];
            for (quantile, thousandths) in [("0.5", 500), ("0.99", 990), ("1", 1000)] {
                let labels = [label[0], label[1], ("quantile", quantile)];
                let value = class.delay.quantile(thousandths);
                text.sample(name, &labels, seconds(value));
            }
            text.sample(&format!("{name}_count"), &label, class.delay.count());
            text.sample(&format!("{name}_sum"), &label, seconds(class.delay.sum()));
        }
    }
}

/// Exactly, without a float.
fn seconds(duration: Duration) -> String {
    let nanos = duration.nanos();
    let (whole, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let text = format!("{whole}.{fraction:09}");
    let short = text.trim_end_matches('0');
    match short.strip_suffix('.') {
        Some(_) => format!("{short}0"),
        None => short.to_owned(),
    }
}

fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_exactly() {
        assert_eq!(seconds(Duration::from_micros(350)), "0.00035");
        assert_eq!(seconds(Duration::from_secs(2)), "2.0");
        assert_eq!(seconds(Duration::from_nanos(1_000_000_001)), "1.000000001");
    }
}
