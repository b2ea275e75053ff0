//! A small study, and what is said of changes to it.

#![allow(dead_code, reason = "not every test file uses all of it")]

pub mod hostile;
pub mod markdown;
pub mod outside;

use slicewise_study::{Diagnostics, MemoryFiles, Study};

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
    Study::parse(text, "study.yaml", &files()).map_err(|mistakes| told(&mistakes))
}

/// A line for each diagnostic: place, what is underlined there, message and help.
pub fn told(diagnostics: &Diagnostics) -> String {
    let line = |it: &slicewise_study::Diagnostic| {
        let drawn = it.to_string();
        let lines: Vec<&str> = drawn.lines().collect();
        let carets = lines.iter().position(|line| line.ends_with('^'));
        let meant = carets.map(|carets| {
            let start = lines[carets].find('^').unwrap();
            let count = lines[carets].len() - start;
            let meant = lines[carets - 1].chars().skip(start).take(count);
            meant.collect::<String>()
        });
        let kind = if it.is_warning { "warning: " } else { "" };
        let help = it.help.as_ref();
        let help = help.map_or_else(String::new, |help| format!("; help: {help}"));
        let place = format!("{}:{}:{}", it.file, it.line, it.column);
        let meant = meant.unwrap_or_default();
        format!("{place} `{meant}`: {kind}{}{help}", it.message)
    };
    let mut lines: Vec<String> = diagnostics.iter().map(line).collect();
    match diagnostics.count() - lines.len() {
        0 => {}
        more => lines.push(format!("… and {more} more")),
    }
    lines.join("\n")
}

/// [`STUDY`] with `old` replaced by `new`.
pub fn changed(old: &str, new: &str) -> String {
    assert!(STUDY.contains(old), "`{old}` is not in the study");
    STUDY.replacen(old, new, 1)
}

/// Messages about [`STUDY`] with `old` replaced by `new`.
pub fn mistakes(old: &str, new: &str) -> String {
    parse(&changed(old, new)).expect_err("this should be refused")
}

/// [`STUDY`] with one source more in every scenario, `app` in the slice `rest`.
pub fn with_application(source: &str) -> String {
    let source = format!("  app: {{slice: rest, {source}}}\nscenarios:\n");
    changed("scenarios:\n", &source)
}
