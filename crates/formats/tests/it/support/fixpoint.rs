//! Properties of every text, used by the fuzz target and by the tests.

use slicewise_formats::ios::{self, IosPolicyError};
use slicewise_formats::{ERRORS_MAX, TextError};

/// Policies of one text that are checked: each can be large.
const POLICIES_MAX: usize = 8;
/// Below this, what is written stays below the limit of what is read.
const TEXT_BYTES: usize = 64 << 10;

/// Reading ends without a panic; errors and notes have a place; what was read is written, and what was
/// written reads the same.
pub fn check(text: &str) {
    let lines = text.lines().count().max(1);
    let has_place = |line: usize, column: usize, length: usize| {
        assert!((1..=lines).contains(&line), "line {line} of {lines}");
        assert!(column > 0 && length > 0, "column {column}, length {length}");
    };
    let check_errors = |errors: &[TextError]| {
        assert!(errors.len() <= ERRORS_MAX);
        for error in errors {
            has_place(error.line, error.column, error.length);
            assert!(error.to_string().len() < 2_000, "{error}");
        }
    };
    let config = match ios::parse(text) {
        Ok(config) => config,
        Err(error) => return check_errors(&[error]),
    };
    let all = config.errors();
    check_errors(&all);
    if let Err(error) = config.policy(None) {
        assert!(error.to_string().len() < 2_000 * ERRORS_MAX);
    }
    for name in config.policy_names().take(POLICIES_MAX) {
        let policy = match config.policy(Some(name)) {
            Ok(policy) => policy,
            Err(IosPolicyError::Text(errors)) => {
                assert!(!errors.is_empty() && !all.is_empty(), "{errors:?}");
                check_errors(&errors);
                continue;
            }
            Err(IosPolicyError::Choice(error)) => panic!("it is one of its policies: {error}"),
        };
        for note in &policy.notes {
            has_place(note.span.line, note.span.column, note.span.length);
        }
        assert!(policy.lines.is_sorted() && policy.lines.iter().all(|line| *line <= lines));
        let policy = policy.spec;
        let written = match ios::write(&policy) {
            Ok(written) => written,
            Err(error) => {
                assert!(text.len() > TEXT_BYTES, "read but not written: {error}");
                continue;
            }
        };
        let again = ios::parse(&written).expect("what is written can be read");
        let again = again.policy(Some(name)).expect("the policy keeps its name");
        assert_eq!(again.spec, policy, "{written}");
        assert_eq!(ios::write(&again.spec).as_deref(), Ok(written.as_str()));
    }
}
