//! What must hold for every text, used by the fuzz target and by the tests.

use slicewise_formats::ios::{self, ERRORS_MAX};

/// Policies of one text that are checked: each can be large.
const POLICIES_MAX: usize = 8;
/// Below this, what is written stays below the limit of what is read.
const TEXT_BYTES: usize = 64 << 10;

/// Reading ends without a panic; errors have a place; what was read is written, and what was
/// written reads the same.
pub fn check(text: &str) {
    let config = match ios::parse(text) {
        Ok(config) => config,
        Err(errors) => {
            assert!((1..=ERRORS_MAX).contains(&errors.len()));
            let lines = text.lines().count().max(1);
            for error in &errors {
                assert!((1..=lines).contains(&error.line), "{error}");
                assert!(error.column > 0 && error.length > 0, "{error}");
                assert!(error.to_string().len() < 2_000, "{error}");
            }
            return;
        }
    };
    for name in config.policy_names().take(POLICIES_MAX) {
        let policy = config
            .policy(Some(name))
            .expect("it is one of its policies");
        let written = match ios::write(&policy) {
            Ok(written) => written,
            Err(error) => {
                assert!(text.len() > TEXT_BYTES, "read but not written: {error}");
                continue;
            }
        };
        let again = ios::parse(&written).expect("what is written can be read");
        let again = again.policy(Some(name)).expect("the policy keeps its name");
        assert_eq!(again, policy, "{written}");
        assert_eq!(ios::write(&again).as_deref(), Ok(written.as_str()));
    }
}
