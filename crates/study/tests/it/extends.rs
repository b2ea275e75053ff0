//! One study file on top of another.

use crate::support::{self, STUDY, told};
use slicewise_study::{MemoryFiles, Study};
use slicewise_units::BitRate;

fn files() -> MemoryFiles {
    support::files().with("base.yaml", STUDY)
}

fn parse(text: &str) -> Result<Study, String> {
    Study::parse(text, "study.yaml", &files()).map_err(|mistakes| told(&mistakes))
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    names.map(String::as_str).collect()
}

#[test]
fn a_file_that_says_nothing_is_the_one_it_extends() {
    let study = parse("extends: base.yaml\n").unwrap();
    let base = support::parse(STUDY).unwrap();
    assert_eq!(study.policies, base.policies);
    assert_eq!(study.scenarios, base.scenarios);
    assert_ne!(study.digest(), base.digest());
}

#[test]
fn settings_are_merged_key_by_key() {
    let study = parse("extends: base.yaml\ndut: {processing_delay: 5 us}\n").unwrap();
    assert_eq!(study.dut.processing_delay.nanos(), 5_000);
    assert_eq!(study.dut.port_rate.rate, BitRate::new(10_000_000));
}

#[test]
fn a_table_gets_further_entries() {
    let study = parse("extends: base.yaml\npolicies: {more: {none: true}}\n").unwrap();
    assert_eq!(
        names(study.policies.iter().map(|p| &p.name)),
        ["nothing", "weighted", "router", "more"]
    );
}

#[test]
fn a_list_replaces_the_other() {
    let text = "extends: base.yaml
policies:
  weighted:
    classes:
      - {name: gold, slice: gold, minimum: 10 %}
";
    let study = parse(text).unwrap();
    assert_eq!(
        names(study.policies[1].spec.classes.iter().map(|c| &c.name)),
        ["gold"]
    );
}

#[test]
fn what_is_not_wanted_is_left_out() {
    let text = "extends: {file: base.yaml, without: [policies.router, policies.nothing]}\n";
    assert_eq!(
        names(parse(text).unwrap().policies.iter().map(|p| &p.name)),
        ["weighted"]
    );
}

#[test]
fn leaving_out_what_is_not_there_is_a_mistake() {
    let text = "extends: {file: base.yaml, without: [policies.routr]}\n";
    insta::assert_snapshot!(parse(text).unwrap_err(), @"study.yaml:1:38 `policies.routr`: `routr` cannot be left out: it does not exist; help: did you mean `router`?");
}

#[test]
fn a_mistake_in_the_other_file_is_told_there() {
    let files = support::files().with("base.yaml", STUDY.replace("60 %", "60"));
    let message = Study::parse("extends: base.yaml\n", "study.yaml", &files).unwrap_err();
    let places: Vec<(String, usize)> = message
        .iter()
        .map(|mistake| (mistake.file.clone(), mistake.line))
        .collect();
    assert_eq!(
        places,
        [("base.yaml".to_owned(), 9), ("base.yaml".to_owned(), 28)]
    );
}

#[test]
fn the_other_file_must_be_there() {
    insta::assert_snapshot!(parse("extends: bsae.yaml\n").unwrap_err(), @"study.yaml:1:10 `bsae.yaml`: cannot read `bsae.yaml`: no such file");
}

#[test]
fn a_file_does_not_extend_itself() {
    insta::assert_snapshot!(parse("extends: study.yaml\n").unwrap_err(), @"study.yaml:1:10 `study.yaml`: `study.yaml` cannot be extended here: it extends this file in turn, or more than 8 files extend one another");
}

#[test]
fn a_circle_ends() {
    let files = MemoryFiles::new()
        .with("a.yaml", "extends: b.yaml\n")
        .with("b.yaml", "extends: ./a.yaml\n")
        .with("./a.yaml", "extends: ./../b.yaml\n");
    assert!(Study::parse("extends: a.yaml\n", "study.yaml", &files).is_err());
}

#[test]
fn a_chain_has_eight_files_at_most() {
    let chain = |length: usize| {
        let mut files = support::files().with("0.yaml", STUDY);
        for n in 1..length {
            files = files.with(&format!("{n}.yaml"), format!("extends: {}.yaml\n", n - 1));
        }
        Study::parse(
            &format!("extends: {}.yaml\n", length - 1),
            "study.yaml",
            &files,
        )
    };
    assert!(chain(7).is_ok());
    assert!(chain(8).is_err());
}

#[test]
fn the_digest_covers_every_file_that_is_named() {
    let digest = |files: &MemoryFiles| {
        Study::parse("extends: base.yaml\n", "study.yaml", files)
            .unwrap()
            .digest()
            .to_owned()
    };
    let base = files().with("base.yaml", format!("{STUDY}# more\n"));
    let router = files().with("router.cfg", format!("{}! more\n", support::ROUTER));
    assert_eq!(digest(&files()), digest(&files()));
    assert_ne!(digest(&files()), digest(&base));
    assert_ne!(digest(&files()), digest(&router));
}

#[test]
fn a_scenario_does_without_a_source() {
    let text = support::changed(
        "    reference: true\n",
        "    reference: true\n    without: [steady]\n",
    )
    .replace("guaranteed: true", "guaranteed: false");
    let study = support::parse(&text).unwrap();
    assert_eq!(
        names(study.scenarios[0].sources.iter().map(|s| &s.name)),
        ["other"]
    );
    assert_eq!(
        names(study.scenarios[1].sources.iter().map(|s| &s.name)),
        ["steady", "other"]
    );
}

#[test]
fn a_scenario_changes_a_source() {
    let text = support::changed(
        "sources: {other: {slice: rest, pattern: poisson, rate: 20",
        "sources: {steady: {rate: 10 %}, other: {slice: rest, pattern: poisson, rate: 20",
    );
    let study = support::parse(&text).unwrap();
    let rates: Vec<u64> = study
        .scenarios
        .iter()
        .map(|s| s.sources[0].rate.bits_per_second())
        .collect();
    assert_eq!(rates, [5_000_000, 1_000_000]);
    assert_eq!(study.scenarios[1].sources[0].largest.payload_bytes, 1000);
}
