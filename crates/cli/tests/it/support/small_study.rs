//! A study for tests of the command.

/// A study small enough to run in a moment: one cell of each policy takes milliseconds.
pub const STUDY: &str = "
name: small
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices:
  critical: {match: {vlan: 10}, share: 50 %, guaranteed: true}
  rest: {match: {vlan: 20}, share: 50 %}
sources:
  critical: {slice: critical, headers: {vlan: 10, source: 10.0.10.2, destination: 10.0.10.3}, pattern: cbr, payload: 1000 B, rate: 40 %}
  rest: {slice: rest, headers: {vlan: 20, source: 10.0.20.2, destination: 10.0.20.3}, pattern: poisson, payload: 1000 B}
scenarios:
  calm: {reference: true, sources: {rest: {rate: 40 %}}}
  crowded: {sources: {rest: {rate: 90 %}}}
policies:
  shared: {none: true}
  first:
    classes:
      - {name: critical, slice: critical, priority: {rate: 5 Mbit/s}}
repetitions: 3
margins: {rare_runs: 66 %}
duration: 4 s
seed: 7
measure: {bin: 50 ms}
";
