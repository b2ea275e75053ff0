//! Profiles of DPDK's scheduler: what they are read as, what is said of mistakes, and what is written.

use crate::support::dpdk_fixpoint;
use insta::assert_snapshot;
use proptest::prelude::*;
use slicewise_formats::dpdk::{self, DpdkPolicy};
use slicewise_formats::{ios, ovs, p4_tins, tc};
use slicewise_model::hqos::{
    HqosPipeProfile, HqosPipeRange, HqosRates, HqosRed, HqosRedCurve, HqosSection, HqosSubport,
};
use slicewise_model::{ClassSpec, HqosSpec, PolicySpec, Rate};
use slicewise_units::BitRate;
use std::fs;

const PORT: BitRate = BitRate::new(10_000_000_000);
const NAMES: [&str; 4] = [
    "equal-pipes",
    "oversubscribed",
    "early-detection",
    "two-subports",
];

fn golden(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/dpdk/");
    fs::read_to_string(format!("{folder}{name}.cfg")).unwrap()
}

fn read(text: &str) -> DpdkPolicy {
    dpdk::read(text, PORT).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn scheduler(text: &str) -> HqosSpec {
    let [class] = read(text).spec.classes.try_into().unwrap();
    *class.hqos.unwrap()
}

/// Messages about a golden file with these changes.
fn mistakes(name: &str, changes: &[(&str, &str)]) -> String {
    let mut text = golden(name);
    for (old, new) in changes {
        assert!(text.contains(old), "`{old}` is not in the text");
        text = text.replacen(old, new, 1);
    }
    let errors = dpdk::read(&text, PORT).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn a_profile_is_the_scheduler_of_class_default() {
    let policy = read(&golden("equal-pipes"));
    assert_eq!(policy.notes, []);
    let hqos = scheduler(&golden("equal-pipes"));
    assert_eq!((hqos.frame_overhead, hqos.mtu), (24, 1522));
    let [subport] = hqos.subports.as_slice() else {
        panic!("{hqos:?}");
    };
    assert_eq!((subport.pipes, subport.queue_sizes), (4096, [64; 13]));
    let all = HqosPipeRange {
        first: 0,
        last: 4095,
        profile: 0,
    };
    assert_eq!(subport.assigned, [all]);
    assert_eq!(hqos.subport_profiles[0].tb_rate, 1_250_000_000);
    assert_eq!(hqos.pipe_profiles[0].rates.tc_rates, [305_175; 13]);
    assert_eq!(hqos.pipe_profiles[0].rates.tc_period, 40);
    assert!(policy.spec.resolve(PORT).is_ok());
    let place = |section, key: &str| {
        let found = policy
            .places
            .iter()
            .find(|it| it.section == section && it.key == key);
        found.map(|it| (it.span.line, it.span.column))
    };
    assert_eq!(place(HqosSection::Subport(0), "pipe 0-4095"), Some((10, 1)));
    assert_eq!(
        place(HqosSection::PipeProfile(0), "tb rate"),
        Some((31, 11))
    );
}

#[test]
fn subports_pipes_and_colours_have_what_is_written_for_them() {
    let hqos = scheduler(&golden("two-subports"));
    let profiles: Vec<u32> = hqos
        .subports
        .iter()
        .map(|subport| subport.profile)
        .collect();
    assert_eq!(profiles, [1, 0]);
    assert_eq!(hqos.subports[1].queue_sizes[10..], [64, 64, 1024]);
    let curves = hqos.red.unwrap();
    assert!(curves[..12].iter().flatten().all(Option::is_none));
    let red = HqosRedCurve {
        min_packets: 32,
        max_packets: 64,
        inverse_probability: 5,
        weight: 9,
    };
    assert_eq!((curves[12][0], curves[12][2]), (None, Some(red)));
    let hqos = scheduler(&golden("oversubscribed"));
    assert_eq!(hqos.pipe_profiles[1].oversubscription_weight, 4);
    assert_eq!(hqos.pipe_profiles[1].wrr_weights, [1, 2, 4, 8]);
    assert_eq!(hqos.subports[0].assigned.len(), 3);
}

/// What subport 0 and profile 0 leave out has the values of the sample application (`init.c`).
#[test]
fn what_is_left_out_is_as_in_the_sample_application() {
    let short = golden("equal-pipes")
        .replace("frame overhead = 24\nnumber of subports per port = 1\n", "")
        .replace("number of pipes per subport = 4096\n", "")
        .replace("queue sizes = 64 64 64 64 64 64 64 64 64 64 64 64 64\n", "")
        .replace(
            "tc 12 oversubscription weight = 1\ntc 12 wrr weights = 1 1 1 1\n",
            "",
        );
    assert_eq!(scheduler(&short), scheduler(&golden("equal-pipes")));
    assert_snapshot!(mistakes("oversubscribed", &[("tc 12 oversubscription weight = 4\n", "")]),
        @"52:2: `[pipe profile 1]` has no `tc 12 oversubscription weight`: expected `tc 12 oversubscription weight = …` below it");
    assert_snapshot!(mistakes("two-subports", &[("number of pipes per subport = 4\n", "")]), @"12:2: `[subport 1]` has no `number of pipes per subport`: expected `number of pipes per subport = …` below it");
}

#[test]
fn what_the_application_reads_otherwise_is_noted() {
    let notes = |name: &str| {
        let notes = read(&golden(name)).notes;
        let lines = notes
            .iter()
            .map(|it| format!("{}:{}: {}", it.span.line, it.span.column, it.message));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(notes("early-detection"), @"51:1: the sample application of DPDK 22.11 reads `tc N red …` instead, and leaves early detection off; here it is on");
    assert_snapshot!(notes("two-subports"), @"4:13: the sample application of DPDK 22.11 does not read this and gives every subport the profile 0; here it has the one that is written");
}

#[test]
fn sections_and_keys_that_are_not_read_are_named_with_what_was_meant() {
    assert_snapshot!(mistakes("equal-pipes", &[
        ("[port]", "speed = 3\n[ports]"),
        ("frame overhead", "frame_overhead"),
        ("[subport 0]", "[subport zero]"),
        ("[subport profile 0]", "[subport profile 9]"),
        ("tb rate", "tb rates"),
    ]), @"
    1:1: there is no `[subport profile 0]`: expected 1 to 8 sections `[subport profile N]`
    3:1: `speed` is in no section: expected a section before it, such as `[port]`
    4:2: `ports` is not a section of a profile file: expected `[port]`, `[subport N]`, `[subport profile N]`, `[pipe profile N]`, `[red]`; did you mean `[port]`?
    8:2: `subport zero` is not a section of a profile file: expected `[port]`, `[subport N]`, `[subport profile N]`, `[pipe profile N]`, `[red]`; did you mean `[subport N]`?
    13:2: `subport profile 9` is beyond what the application has: expected a number from 0 to 7
    ");
    assert_snapshot!(mistakes("equal-pipes", &[
        ("tb size", "tb  size"),
        ("tc 3 rate", "tc 13 rate"),
        ("queue sizes", "queue size"),
        ("tc 12 wrr weights", "wrr weights"),
        ("[pipe profile 0]", "[pie]\ntc 0 qdelay ref = 15\n[pipe profile 0]"),
    ]), @"
    9:1: `queue size` is not read here: expected `number of pipes per subport`, `queue sizes`, `pipe FIRST-LAST`; did you mean `queue sizes`?
    12:2: `[subport profile 0]` has no `tb size`: expected `tb size = …` below it
    12:2: `[subport profile 0]` has no `tc 3 rate`: expected `tc 3 rate = …` below it
    14:1: `tb  size` is not read here: expected one space between words; DPDK compares keys letter by letter: write `tb size`
    18:1: `tc 13 rate` is of no traffic class: expected classes 0 to 12: there are 13
    30:2: `pie` is not modelled: expected `[red]`, or no early dropping
    50:1: `wrr weights` is not read here: expected `tb rate`, `tb size`, `tc 12 oversubscription weight`, `tc 12 wrr weights`, `tc 0 rate` to `tc 12 rate`
    ");
    assert_snapshot!(mistakes("early-detection", &[("tc 4 wred inv prob", "tc 4 wred invprob")]), @"
    71:1: `tc 4 wred min` is there, and `tc 4 wred inv prob` is not: expected all four of a class
    73:1: `tc 4 wred invprob` is not read here: expected `tc N red min`, `max`, `inv prob` or `weight`; did you mean `tc 4 wred inv prob`?
    ");
}

#[test]
fn values_that_cannot_be_read_are_named_with_what_was_expected() {
    assert_snapshot!(mistakes("equal-pipes", &[
        ("frame overhead = 24", "frame overhead = 24 B"),
        ("= 64 64", "= 64 64 64"),
        ("pipe 0-4095 = 0", "pipe 0 - 4095 = 0\npipe 7-3 = 0\npipe 5 ="),
        ("tb rate = 1250000000", "tb rate = 10 Gbit/s"),
        ("tb size = 1000000", "tb size = 010"),
        ("tc 0 rate = 1250000000", "tc 0 rate = 99999999999999999999"),
        ("wrr weights = 1 1 1 1", "wrr weights = 1 1 1"),
        ("oversubscription weight = 1", "oversubscription weight = 256"),
        ("[port]", "[port\nnothing\n= 3"),
    ]), @"
    3:1: `[port` has no closing bracket: expected `[NAME]`
    4:1: `nothing` is neither a section nor a setting: expected `[NAME]` or `KEY = VALUE`
    5:1: the key is missing: expected `KEY = VALUE`
    6:18: `24 B` is not a whole number: expected digits alone, with no leading zero and no unit
    11:54: `queue sizes` has 14 values: expected 13, one for each traffic class
    12:1: `pipe 0 - 4095` has no range of numbers: expected `FIRST-LAST` or one number, without spaces around the dash
    13:1: the range 7-3 has nothing in it: expected the smaller number first
    14:9: the value is missing: expected `KEY = VALUE`
    17:11: `10 Gbit/s` is not a whole number: expected digits alone, with no leading zero and no unit
    18:11: `010` is not a whole number: expected digits alone, with no leading zero and no unit
    19:13: `99999999999999999999` is too large: expected at most 18446744073709551615
    51:33: `256` is too large: expected at most 255
    ");
}

#[test]
fn what_is_missing_or_there_twice_is_named() {
    assert_snapshot!(mistakes("equal-pipes", &[
        ("tb rate = 1250000000\n", ""),
        ("tc 5 rate = 305175\n", ""),
        ("tc period = 40", "tc 4 rate = 1\ntc period = 40"),
        ("pipe 0-4095 = 0", "pipe 0-4095 = 1"),
    ]), @"
    10:15: there is no `[pipe profile 1]`: expected 0, the only profile
    12:2: `[subport profile 0]` has no `tb rate`: expected `tb rate = …` below it
    29:2: `[pipe profile 0]` has no `tc 5 rate`: expected `tc 5 rate = …` below it
    44:1: `tc 4 rate` is there twice: expected each key once
    ");
    assert_snapshot!(mistakes("oversubscribed", &[
        ("[pipe profile 1]", "[pipe profile 2]"),
        ("[subport profile 0]", "[subport 0]"),
    ]), @"
    1:1: there is no `[subport profile 0]`: expected 1 to 8 sections `[subport profile N]`
    14:2: `subport 0` is there twice: expected each section once: DPDK reads the first alone
    52:2: there is no `[pipe profile 1]` before this: expected profiles numbered from 0 on without gaps
    ");
    assert_snapshot!(mistakes("two-subports", &[
        ("[subport 1]", "[subport 2]"),
        ("subport 1 = 0", "subport 0-1 = 4"),
    ]), @"
    2:2: there is no `[subport 1]`: expected a section for each subport
    5:1: subport 0 already has a profile: expected one profile for each subport
    5:15: there is no `[subport profile 4]`: expected a profile from 0 to 1
    12:2: `[subport 2]` is of no subport: there are 2: expected a larger `number of subports per port`, or no such section
    ");
    assert_snapshot!(mistakes("two-subports", &[("tc 12 red max", "tc 11 red max")]), @"
    72:1: `tc 12 red min` is there, and `tc 12 red max` is not: expected all four of a class
    73:1: `tc 11 red max` is there, and `tc 11 red min` is not: expected all four of a class
    73:1: `tc 11 red max` is there, and `tc 11 red inv prob` is not: expected all four of a class
    73:1: `tc 11 red max` is there, and `tc 11 red weight` is not: expected all four of a class
    ");
    let errors = dpdk::read("", PORT).unwrap_err();
    assert_eq!(errors.len(), 2);
}

#[test]
fn a_section_with_a_bad_line_is_still_the_section_of_what_is_below_it() {
    let bad = |line| mistakes("equal-pipes", &[("[subport profile 0]", line)]);
    assert_snapshot!(bad("[subport profile 0"), @"12:1: `[subport profile 0` has no closing bracket: expected `[NAME]`");
    assert_snapshot!(bad("[subport profile 0] x"), @"12:21: `x` follows the name of a section: expected the end of the line");
}

#[test]
fn lines_that_end_with_cr_alone_are_one_mistake_and_cr_and_lf_none() {
    let text = golden("equal-pipes");
    let errors = dpdk::read(&text.replace('\n', "\r"), PORT).unwrap_err();
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    assert_snapshot!(error, @"1:91: lines end with CR alone: expected a text that is saved with LF, or CR and LF");
    assert_eq!(read(&text.replace('\n', "\r\n")).spec, read(&text).spec);
}

#[test]
fn what_the_library_refuses_is_named_where_it_is_written() {
    let refused = |name, old, new| mistakes(name, &[(old, new)]);
    assert_snapshot!(refused("equal-pipes", "tb rate = 1250000000", "tb rate = 1250000001"), @"13:11: `tb rate` is 1250000001 byte/s: must be 1 to 1250000000, the rate of the port (10 Gbit/s, which the link or its device has, and not the profile)");
    assert_snapshot!(refused("oversubscribed", "pipe 16-30", "pipe 15-30"), @"11:1: pipe 15 is in `pipe 0-15` (line 10) already: expected each pipe in one range");
    assert_snapshot!(refused("equal-pipes", "sizes = 64 64", "sizes = 64 100"), @"9:18: `queue sizes` has 100 packets for traffic class 1: must be a power of two, or 0");
    assert_snapshot!(refused("equal-pipes", "weights = 1 1 1 1", "weights = 1 1 0 1"), @"48:25: `tc 12 wrr weights` have a 0: each weight must be 1 to 255");
    assert_snapshot!(refused("equal-pipes", "tc 7 rate = 305175", "tc 7 rate = 305176"), @"40:13: `tc 7 rate` is 305176 byte/s, more than the token bucket's 305175");
    assert_snapshot!(refused("equal-pipes", "subport = 4096", "subport = 4000"), @"8:31: `number of pipes per subport` is 4000: must be a power of two, at most 4096");
    assert_snapshot!(refused("equal-pipes", "pipe 0-4095", "pipe 0-4096"), @"10:1: `pipe 0-4096` must be a range of pipes from 0 to 4095");
    assert_snapshot!(refused("early-detection", "tc 2 wred min = 48 40 32", "tc 2 wred min = 48 64 32"), @"62:20: `tc 2 red max` is 64: must be more than `tc 2 red min`, which is 64, and at most 1023");
    assert_snapshot!(refused("two-subports", "subports per port = 2", "subports per port = 3"), @"
    2:2: there is no `[subport 2]`: expected a section for each subport
    3:31: `3` is no power of two: expected 1, 2, 4 or 8 subports
    ");
    assert_snapshot!(refused("equal-pipes", "tc period = 40", "tc period = 0"), @"46:13: `tc period` is 0 ms: must be 1 to 60000");
    assert_snapshot!(refused("equal-pipes", "subports per port = 1", "subports per port = 0"), @"5:31: `0` is no power of two: expected 1, 2, 4 or 8 subports");
}

#[test]
fn golden_profiles_are_written_so_that_they_read_the_same() {
    for name in NAMES {
        dpdk_fixpoint::check(&golden(name));
    }
    assert_snapshot!(dpdk::write(&read(&golden("two-subports")).spec).unwrap());
}

#[test]
fn every_profile_of_the_corpus_reads_the_same_after_writing() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/dpdk_profile"
    );
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(files.len() >= 5, "the corpus is gone");
    for file in files {
        dpdk_fixpoint::check(&fs::read_to_string(file.unwrap().path()).unwrap());
    }
}

#[test]
fn other_languages_have_no_such_scheduler() {
    let spec = read(&golden("equal-pipes")).spec;
    let params = spec.resolve(PORT).unwrap();
    let link = Rate::l2(PORT);
    let refusals = [
        ios::write(&spec).unwrap_err().to_string(),
        tc::write(&params, link, "eth0").unwrap_err().to_string(),
        ovs::write(&params, link, "eth0").unwrap_err().to_string(),
        p4_tins::write(&params, link.into())
            .unwrap_err()
            .to_string(),
    ];
    assert_snapshot!(refusals.join("\n"), @"
    policy `dpdk`, class `class-default`: IOS cannot express this: the hierarchical scheduler of DPDK
    policy `dpdk`: Linux traffic control cannot express this:
      class `class-default`: hqos: the kernel has no discipline like the hierarchical scheduler of DPDK; export it `--to dpdk`, or run it `--on dpdk`
    policy `dpdk`: Open vSwitch cannot express this:
      class `class-default`: hqos: queues are not divided
    policy `dpdk`: a request of P4-TINS cannot express this:
      classes: no class has a two-rate meter, so there is no slice to request
    ");
}

#[test]
fn only_a_profile_is_written_as_one() {
    let fails = |change: fn(&mut PolicySpec)| {
        let mut spec = read(&golden("equal-pipes")).spec;
        change(&mut spec);
        dpdk::write(&spec).unwrap_err().to_string()
    };
    assert_snapshot!(fails(|spec| spec.classes[0].hqos = None), @"
    policy `dpdk`: a profile of DPDK's scheduler cannot express this:
      class `class-default`: hqos: only policies that were written as a profile (`dpdk`) are one
    ");
    assert_snapshot!(fails(|spec| spec.classes[0].set_dscp = Some(3)), @"
    policy `dpdk`: a profile of DPDK's scheduler cannot express this:
      class `class-default`: classes: a profile has nothing beside the scheduler: no other setting, and no match
    ");
    assert_snapshot!(fails(|spec| spec.classes.push(ClassSpec::class_default())), @"
    policy `dpdk`: a profile of DPDK's scheduler cannot express this:
      classes: a profile has no classes: VLANs choose the pipe, and the destination address its queue
    ");
}

fn rates(port: u64) -> impl Strategy<Value = HqosRates> {
    (
        // A class gets a byte in a period at least.
        100_000..port,
        1u64..10_000_000,
        prop::array::uniform13(0.01f64..1.0),
        1u64..100,
    )
        .prop_map(|(tb_rate, tb_size, shares, tc_period)| HqosRates {
            tb_rate,
            tb_size,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "any rate below"
            )]
            tc_rates: shares.map(|share| (share * tb_rate as f64) as u64),
            tc_period,
        })
}

fn curve() -> impl Strategy<Value = Option<HqosRedCurve>> {
    let curve = (0u16..500, 1u16..500, 1u16..=255, 1u16..=12);
    prop::option::of(
        curve.prop_map(|(min, more, inverse_probability, weight)| HqosRedCurve {
            min_packets: min,
            max_packets: min + more,
            inverse_probability,
            weight,
        }),
    )
}

fn any_profile() -> impl Strategy<Value = HqosSpec> {
    let subport =
        (0u32..2, 0u32..8, prop::array::uniform13(0u32..12)).prop_map(|(profile, pipes, sizes)| {
            let pipes = 1 << pipes;
            let halves = [(0, (pipes / 2).max(1) - 1, 0), (pipes / 2, pipes - 1, 1)];
            let ranges = halves.iter().skip(usize::from(pipes == 1));
            HqosSubport {
                profile,
                pipes,
                queue_sizes: sizes.map(|size| 1 << size),
                assigned: ranges
                    .map(|&(first, last, profile)| HqosPipeRange {
                        first,
                        last,
                        profile,
                    })
                    .collect(),
            }
        });
    let pipe = (rates(1_250_000_000), 1u8.., prop::array::uniform4(1u8..)).prop_map(
        |(rates, oversubscription_weight, wrr_weights)| HqosPipeProfile {
            rates,
            oversubscription_weight,
            wrr_weights,
        },
    );
    let red = prop::option::of(prop::array::uniform13(prop::array::uniform3(curve())));
    (
        0u32..100,
        prop::sample::select(vec![1usize, 2, 4, 8]),
        prop::collection::vec(subport, 8),
        prop::collection::vec(rates(1_250_000_000), 2),
        prop::collection::vec(pipe, 2),
        red,
    )
        .prop_map(
            |(frame_overhead, count, mut subports, subport_profiles, pipe_profiles, red)| {
                subports.truncate(count);
                HqosSpec {
                    frame_overhead,
                    subports,
                    subport_profiles,
                    pipe_profiles,
                    red: red.map(|curves| HqosRed::from(Box::new(curves))),
                    ..HqosSpec::default()
                }
            },
        )
}

proptest! {
    #[test]
    fn whatever_is_written_reads_the_same(hqos in any_profile()) {
        prop_assume!(hqos.resolve(PORT).is_ok());
        let mut policy = read(&golden("equal-pipes")).spec;
        policy.classes[0].hqos = Some(Box::new(hqos));
        let written = dpdk::write(&policy).unwrap().to_string();
        prop_assert_eq!(&read(&written).spec, &policy);
        dpdk_fixpoint::check(&written);
    }

    /// Lines dropped, repeated or cut, and characters replaced.
    #[test]
    fn a_damaged_profile_is_read_or_refused_with_places(
        name in prop::sample::select(NAMES.to_vec()),
        line in 0usize..60,
        at in 0usize..40,
        with in prop::sample::select(vec!["", "=", "[", "]", ";", "\u{e9}", "0", "-", "\t", "99999999999"]),
        cut in any::<bool>(),
    ) {
        let text = golden(name);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let line = line % lines.len();
        let at = at.min(lines[line].len());
        if cut {
            lines[line].truncate(at);
        }
        lines[line].insert_str(at, with);
        dpdk_fixpoint::check(&lines.join("\n"));
    }

    #[test]
    fn any_text_is_read_or_refused_with_places(text in "[\\[\\]=; a-z0-9\n-]{0,200}") {
        dpdk_fixpoint::check(&text);
    }
}
