//! The hierarchical scheduler against `librte_sched` of DPDK 22.11: the same packets at the same times. Who leaves when, in
//! which order, and who is dropped must be the same. `docs/mechanisms/hqos.md` says how the library's clock is set.
//!
//! Skipped with a message where the library is not installed, and failed with one where `SLICEWISE_REQUIRE=dpdk`. `HQOS_CASES=1000 cargo test -p slicewise-dataplane
//! --test it librte_sched` tries as many cases.
#![allow(clippy::cast_possible_truncation, clippy::print_stderr)]

mod case;
mod library;

use case::Case;
use library::Library;

const CASES: u64 = 60;

#[test]
fn departures_and_drops_are_those_of_the_library() {
    let cases = std::env::var("HQOS_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    let cases: Vec<Case> = (0..cases.unwrap_or(CASES)).map(Case::new).collect();
    let script: String = cases.iter().map(Case::script).collect();
    let Some(library) = Library::build() else {
        return;
    };
    let answers = library.answers(script);
    let answers: Vec<&[String]> = answers.split_inclusive(|line| line == "end").collect();
    assert_eq!(answers.len(), cases.len(), "an answer for each case");
    let (mut sent, mut dropped) = (0, 0);
    for (number, (case, expected)) in cases.iter().zip(answers).enumerate() {
        let ours = case.answers();
        let difference = ours
            .iter()
            .zip(expected)
            .position(|(ours, its)| ours != its);
        if let Some(line) = difference {
            let (ours, its) = (&ours[line], &expected[line]);
            panic!("case {number}, answer {line}: ours `{ours}`, the library's `{its}`");
        }
        assert_eq!(ours.len(), expected.len(), "case {number}");
        sent += ours
            .iter()
            .map(|line| line.matches(' ').count())
            .sum::<usize>();
        dropped += ours.iter().filter(|line| line.starts_with('d')).count();
    }
    eprintln!(
        "{} cases: {} frames left, {dropped} were dropped",
        cases.len(),
        sent - dropped
    );
    assert!(sent > dropped, "frames leave");
}
