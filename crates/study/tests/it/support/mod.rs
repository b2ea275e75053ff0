//! A small study, and what is said of changes to it.

#![allow(dead_code, reason = "not every test file uses all of it")]

pub mod hostile;
pub mod markdown;
pub mod outside;

use slicewise_study::{MemoryFiles, Study};

/// A complete study: two slices on one port, a policy in each form.
pub const STUDY: &str = "\
name: small
link: {rate: 1 Gbit/s}
dut:
  model: port
  port_rate: 10 Mbit/s
slices:
  gold:
    match: {vlan: 10}
    share: 60 %
    guaranteed: true
    headers: {vlan: 10}
  rest:
    match: {vlan: 20}
    share: 4 Mbit/s
    headers: {vlan: 20}
sources:
  steady: {slice: gold, pattern: cbr, rate: 50 %, payload: 1000 B}
scenarios:
  calm:
    reference: true
    sources: {other: {slice: rest, pattern: poisson, rate: 2 Mbit/s, payload: 500 B}}
  storm:
    sources: {other: {slice: rest, pattern: poisson, rate: 20 Mbit/s, payload: 500 B}}
policies:
  nothing: {none: true}
  weighted:
    classes:
      - {name: gold, slice: gold, minimum: 60 %}
      - {name: rest, match: {vlan: 20}, queue_limit: 64 packets}
  router:
    ios: router.cfg
repetitions: 2
duration: 5 s
";

/// The file that [`STUDY`] names.
pub const ROUTER: &str = "\
class-map match-any gold
 match vlan 10
policy-map router
 class gold
  bandwidth 6000
";

pub fn files() -> MemoryFiles {
    MemoryFiles::new().with("router.cfg", ROUTER)
}

pub fn parse(text: &str) -> Result<Study, String> {
    Study::parse(text, "study.yaml", &files()).map_err(|mistakes| mistakes.to_string())
}

/// [`STUDY`] with `old` replaced by `new`.
pub fn changed(old: &str, new: &str) -> String {
    assert!(STUDY.contains(old), "`{old}` is not in the study");
    STUDY.replacen(old, new, 1)
}

/// What is said of [`STUDY`] with `old` replaced by `new`.
pub fn mistakes(old: &str, new: &str) -> String {
    parse(&changed(old, new)).expect_err("this should be refused")
}

/// [`STUDY`] with one source more in every scenario, `app` in the slice `rest`.
pub fn with_application(source: &str) -> String {
    let source = format!("  app: {{slice: rest, {source}}}\nscenarios:\n");
    changed("scenarios:\n", &source)
}
