//! Whatever can keep a run from being built is found when its study is read, with its place.
//!
//! The lists below have every error of the constructors that a run uses. Each `match` has no wildcard: a new error is put
//! beside the others, with the study that would lead to it.

use slicewise_dataplane::guaranteed::SliceError;
use slicewise_dataplane::{BuildError, Pipeline};
use slicewise_sim::{Node, Simulator, Topology, TopologyError};
use slicewise_stats::collect::CollectorError;
use slicewise_study::{Backend, MemoryFiles, RunFilter, Study};
use slicewise_traffic::{ReplayError, SourceError};
use slicewise_units::Duration;
use std::fmt::Write;
use std::io;

/// What keeps a study from an error.
enum Kept {
    /// It is refused: the study, and what is said of it.
    Refused(String, &'static str),
    /// As far as files can go is not far enough: such a study runs.
    Runs(String),
    /// It is about what the program builds, not what a study says: why.
    Never(&'static str),
}

/// A study of one source, with these settings of its policy, its source, and itself.
fn study(policy: &str, source: &str, more: &str) -> String {
    format!(
        "\
name: built
link: {{rate: 100 Mbit/s}}
dut: {{model: port}}
slices: {{all: {{match: {{}}, share: 100 %}}}}
sources: {{s: {{slice: all, {source}}}}}
scenarios: {{one: {{reference: true}}}}
policies: {{p: {{{policy}}}}}
repetitions: 1
{more}"
    )
}

const SOURCE: &str = "pattern: cbr, rate: 1 Mbit/s, payload: 160 B";
const SHORT: &str = "duration: 100 ms\nmeasure: {bin: 10 ms}\n";

/// A policy with a class for each of these settings, and these before the classes.
fn classes(before: &str, settings: impl Iterator<Item = String>) -> String {
    let mut text = format!("{before}classes: [");
    for (index, own) in settings.enumerate() {
        let dscp = index % 64;
        write!(text, "{{name: c{index}, match: {{dscp: {dscp}}}, {own}}}, ").unwrap();
    }
    text + "{name: class-default}]"
}

fn levels(count: u32) -> String {
    let levels = (1..=count).map(|level| format!("priority: {{level: {level}}}"));
    study(&classes("", levels), SOURCE, SHORT)
}

fn delays(count: u32) -> String {
    let delays = (0..count).map(|n| {
        let micros = 1_000 + 250 * n;
        format!("guarantee: {{rate: 10 kbit/s, burst: 1522 B, delay: {micros} us}}")
    });
    study(&classes("discipline: guaranteed, ", delays), SOURCE, SHORT)
}

fn tenants(count: u32) -> String {
    let tenants = (0..count).map(|n| format!("t{n}: 1"));
    let tenants: Vec<String> = tenants.collect();
    let common = format!(
        "discipline: guaranteed, guaranteed: {{tenants: {{{}}}}}, ",
        tenants.join(", ")
    );
    study(&classes(&common, std::iter::empty()), SOURCE, SHORT)
}

/// So many slices in each of two populations.
fn population(count: u32) -> String {
    format!(
        "\
name: many
link: {{rate: 1 Gbit/s}}
dut: {{model: port}}
slices: {{one: {{match: {{vlan: 1}}, share: 1 %}}, two: {{match: {{vlan: 2}}, share: 1 %}}}}
populations: {{one: {{sends: backlog, frame: 1514 B}}, two: {{sends: bursts, frame: 100 B, burst: 1 kB, every: 1 ms}}}}
scenarios: {{one: {{reference: true, populations: {{one: {count}, two: {count}}}}}}}
policies: {{p: {{discipline: deficit_round_robin, classes: [{{name: one, slice: one}}, {{name: two, slice: two}}]}}}}
repetitions: 1
duration: 10 ms
measure: {{bin: 5 ms}}
"
    )
}

fn kept_of_pipeline(error: &BuildError) -> Kept {
    match error {
        BuildError::TooManyLevels { .. } => Kept::Refused(
            levels(64),
            "class `c63`, priority: is the 64th level of this policy: at most 63 are possible",
        ),
        BuildError::NotGuaranteed { .. } => {
            Kept::Never("a policy of that discipline is resolved with what its slices share")
        }
        BuildError::NotKept { .. } => Kept::Never("a controller adds slices, and a study has none"),
        BuildError::Slice { error, .. } => match error {
            SliceError::Unknown(_) => Kept::Never("a slice that is added is a new one"),
            SliceError::TooManyDelays => Kept::Runs(delays(300)),
            SliceError::UnknownTenant(_) => Kept::Refused(
                study(
                    &classes(
                        "discipline: guaranteed, ",
                        std::iter::once("tenant: nobody".to_owned()),
                    ),
                    SOURCE,
                    SHORT,
                ),
                "unknown tenant `nobody`",
            ),
            SliceError::TooManyTenants(_) => {
                Kept::Refused(tenants(4_097), "there are more than 4096 tenants")
            }
            // Each has a frame waiting at least.
            SliceError::TooMany(_) => Kept::Refused(
                population(1 << 24),
                "frames may wait, more than the 134217728 there is room for",
            ),
        },
    }
}

#[test]
fn no_study_that_is_read_has_a_pipeline_that_cannot_be_built() {
    let name = String::new;
    let slice = |error| BuildError::Slice {
        class: name(),
        error,
    };
    let errors = [
        BuildError::TooManyLevels {
            policy: name(),
            levels: 64,
        },
        BuildError::NotGuaranteed { policy: name() },
        BuildError::NotKept {
            slice: name(),
            problem: name(),
        },
        slice(SliceError::Unknown(0)),
        slice(SliceError::TooManyDelays),
        slice(SliceError::UnknownTenant(0)),
        slice(SliceError::TooManyTenants(0)),
        slice(SliceError::TooMany(0)),
    ];
    errors
        .iter()
        .for_each(|error| hold(kept_of_pipeline(error)));
    hold(Kept::Runs(levels(63)));
}

fn kept_of_topology(error: TopologyError) -> Kept {
    const BUILT: &str = "the program lays links between hosts and devices, in one direction";
    match error {
        TopologyError::NoSuchNode(_)
        | TopologyError::NoSuchPort(_)
        | TopologyError::TwoLinks(_)
        | TopologyError::Dangling { .. }
        | TopologyError::Loop(_)
        | TopologyError::NoWay(_)
        | TopologyError::NoPath { .. }
        | TopologyError::NoPolicy { .. } => Kept::Never(BUILT),
        TopologyError::RateZero(_) => Kept::Refused(
            study(&classes("", std::iter::empty()), SOURCE, SHORT)
                .replace("rate: 100 Mbit/s", "rate: 0 Mbit/s"),
            "a rate of zero",
        ),
        TopologyError::TooLarge => Kept::Refused(
            study(
                &classes("", std::iter::empty()),
                "application: {kind: bulk, flows: 33000}",
                SHORT,
            ),
            "have more than 16000 connections",
        ),
    }
}

#[test]
fn no_study_that_is_read_has_a_network_that_cannot_be_built() {
    let node = Node::Endpoint(0);
    let port = Topology::<Pipeline>::default().port(node);
    let errors = [
        TopologyError::NoSuchNode(node),
        TopologyError::NoSuchPort(port),
        TopologyError::RateZero(port),
        TopologyError::TwoLinks(port),
        TopologyError::Dangling { port, node },
        TopologyError::Loop(node),
        TopologyError::NoWay(node),
        TopologyError::NoPath {
            from: node,
            to: node,
        },
        TopologyError::NoPolicy { node, port },
        TopologyError::TooLarge,
    ];
    errors
        .into_iter()
        .for_each(|error| hold(kept_of_topology(error)));
}

/// A replayed capture: see [`files`].
fn replay(file: &str) -> String {
    let source = format!("pattern: replay, pcap: {file}");
    study(&classes("", std::iter::empty()), &source, SHORT)
}

fn kept_of_source(error: &SourceError) -> Kept {
    let with = |source: &str| study(&classes("", std::iter::empty()), source, SHORT);
    match error {
        SourceError::RateZero(_) => Kept::Refused(
            with("pattern: cbr, rate: 0 Mbit/s, payload: 160 B"),
            "a rate of zero: nothing would be sent",
        ),
        SourceError::NeverOn(_) => Kept::Refused(
            with(&format!("{SOURCE}, on_off: {{on_for: 0 s, off_for: 1 ms}}")),
            "this must be longer than zero",
        ),
        SourceError::NoSize(_) => Kept::Refused(
            with("pattern: cbr, rate: 1 Mbit/s, payload: {160 B: 0}"),
            "",
        ),
        SourceError::Unopened { .. } => {
            Kept::Refused(replay("none.pcap"), "cannot read `none.pcap`: no such file")
        }
        SourceError::Replay { error, .. } => match error {
            ReplayError::Unreadable { .. } => Kept::Refused(replay("text.pcap"), "`text.pcap`: "),
            ReplayError::Incomplete { .. } => {
                Kept::Refused(replay("cut.pcap"), "it must be whole to be replayed")
            }
            ReplayError::WithoutTime(_) => Kept::Refused(
                replay("simple.pcapng"),
                "holds 1 packets without a time (simple packet blocks)",
            ),
            ReplayError::TooShort(_) => Kept::Refused(
                replay("one.pcap"),
                "holds 1 packets: at least two are needed",
            ),
            ReplayError::AboveMtu { .. } => Kept::Refused(
                replay("large.pcap"),
                "holds an IP packet of 1986 B, above the link's MTU of 1500 B",
            ),
            ReplayError::TooLong => {
                Kept::Never("a test would need a capture of gigabytes: it is read by the same code")
            }
        },
    }
}

#[test]
fn no_study_that_is_read_has_a_source_that_cannot_be_made() {
    let name = String::new;
    let replay = |error| SourceError::Replay {
        path: "p".into(),
        error,
    };
    let errors = [
        SourceError::RateZero(name()),
        SourceError::NeverOn(name()),
        SourceError::NoSize(name()),
        SourceError::Unopened {
            path: "p".into(),
            error: io::Error::from(io::ErrorKind::NotFound),
        },
        replay(ReplayError::Unreadable {
            offset: None,
            why: name(),
        }),
        replay(ReplayError::Incomplete {
            offset: 0,
            why: name(),
        }),
        replay(ReplayError::WithoutTime(1)),
        replay(ReplayError::TooShort(1)),
        replay(ReplayError::AboveMtu { longest: 0, mtu: 0 }),
        replay(ReplayError::TooLong),
    ];
    errors.iter().for_each(|error| hold(kept_of_source(error)));
}

fn kept_of_collector(error: &CollectorError) -> Kept {
    let with = |more: &str| study(&classes("", std::iter::empty()), SOURCE, more);
    match error {
        CollectorError::NoSlices => Kept::Refused(
            with(SHORT).replace("{all: {match: {}, share: 100 %}}", "{}"),
            "`slices` is missing",
        ),
        CollectorError::ZeroBin => {
            Kept::Refused(with("duration: 100 ms\nmeasure: {bin: 0 s}\n"), "zero")
        }
        CollectorError::NotAMultiple { .. } => Kept::Refused(
            with("duration: 100 ms\nmeasure: {bin: 30 ms}\n"),
            "is not a whole number of bins",
        ),
        CollectorError::Phase(_) => Kept::Refused(
            with(&format!(
                "{SHORT}timeline: {{settle: 0 s, changes: {{later: {{at: 55 ms, sources: {{s: {{rate: 2 Mbit/s}}}}}}}}}}\n"
            )),
            "is not at the edge of a bin",
        ),
        CollectorError::TooManyBins { .. } => Kept::Refused(
            with("duration: 20 s\nmeasure: {bin: 10 us}\n"),
            "more than 1048576 in all",
        ),
    }
}

#[test]
fn no_study_that_is_read_has_a_series_that_cannot_be_measured() {
    let (duration, bin) = (Duration::ZERO, Duration::ZERO);
    let errors = [
        CollectorError::NoSlices,
        CollectorError::ZeroBin,
        CollectorError::NotAMultiple { duration, bin },
        CollectorError::Phase(String::new()),
        CollectorError::TooManyBins { bins: 0 },
    ];
    errors
        .iter()
        .for_each(|error| hold(kept_of_collector(error)));
}

/// pcap of nanoseconds, with IPv4 packets of these lengths, all of whose bytes but the headers were cut off.
fn pcap(lengths: &[u16]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, length) in (0u32..).zip(lengths) {
        let mut frame = vec![0; 34];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame[23] = 17;
        for word in [number, 0, 34, u32::from(*length) + 14] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// pcapng with a simple packet block, which has no time.
fn simple_packet() -> Vec<u8> {
    let section = [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    let interface = [1, 20, 1, 0, 20];
    let packet = [3, 20, 4, 0, 20];
    let words = section.into_iter().chain(interface).chain(packet);
    words.flat_map(u32::to_le_bytes).collect()
}

fn files() -> MemoryFiles {
    let mut cut = pcap(&[100, 100, 100]);
    cut.truncate(cut.len() - 8);
    MemoryFiles::new()
        .with("text.pcap", "no capture at all")
        .with("cut.pcap", cut)
        .with("simple.pcapng", simple_packet())
        .with("one.pcap", pcap(&[100]))
        .with("large.pcap", pcap(&[100, 1_986]))
}

fn hold(kept: Kept) {
    match kept {
        Kept::Refused(text, message) => {
            let found = Study::parse(&text, "study.yaml", &files()).unwrap_err();
            let said = found.iter().find(|it| it.message.contains(message));
            let said = said.unwrap_or_else(|| panic!("`{message}` is not said: {found}"));
            assert!(said.line > 0 && said.column > 0, "{found}");
        }
        Kept::Runs(text) => {
            let study = Study::parse(&text, "study.yaml", &files());
            let study = study.unwrap_or_else(|found| panic!("{found}"));
            for run in study.runs(&RunFilter::default()).unwrap() {
                Simulator::default().run(&study, &run).unwrap();
            }
        }
        Kept::Never(why) => assert!(!why.is_empty()),
    }
}
