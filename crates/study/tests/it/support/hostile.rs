//! Anything at all as a study file: it is read or refused, and what is read can be used.
//!
//! Shared by the tests and by the fuzz target `study_file`.

use slicewise_study::{Files, MemoryFiles, RunFilter, Study};

/// A base to extend and a configuration to name, so that an input can reach them.
fn files() -> impl Files {
    MemoryFiles::new()
        .with(
            "base.yaml",
            include_str!("../../../../../studies/router-mechanisms.yaml"),
        )
        .with("router-mechanisms/priority.cfg", PRIORITY)
        .with("router.cfg", PRIORITY)
}

const PRIORITY: &str = include_str!("../../../../../studies/router-mechanisms/priority.cfg");

/// Read `text` as a study; panics where a promise is broken.
pub fn check(text: &str) {
    match Study::parse(text, "study.yaml", &files()) {
        Ok(study) => {
            assert!(!study.policies.is_empty() && !study.scenarios.is_empty());
            assert!(
                study
                    .scenarios
                    .iter()
                    .all(|scenario| scenario.slices().next().is_some())
            );
            let filter = RunFilter {
                repetitions: Some(1),
                ..RunFilter::default()
            };
            let runs = study.runs(&filter).expect("no name is asked for");
            assert!(runs.iter().all(|run| run.key(&study).is_some()));
            let _ = study.description("fuzz");
        }
        Err(mistakes) => {
            assert!(mistakes.count() > 0, "refused, and nothing said");
            for mistake in mistakes.iter() {
                assert!(!mistake.message.is_empty());
                assert_eq!(mistake.line == 0, mistake.column == 0);
            }
            assert!(!mistakes.to_string().is_empty() && !mistakes.render(true).is_empty());
        }
    }
}
