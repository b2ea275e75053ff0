//! Properties of every profile of DPDK's scheduler, used by the fuzz target and by the tests.

use slicewise_formats::{ERRORS_MAX, Span, dpdk};
use slicewise_units::BitRate;

/// Reading ends without a panic; errors and notes have a place; a policy is written, and what was written reads the same
/// and is written the same.
pub fn check(text: &str) {
    let lines = text.split('\n').count();
    let has_place = |span: Span| {
        assert!((1..=lines).contains(&span.line), "{span:?}");
        assert!(span.column > 0 && span.length > 0, "{span:?}");
    };
    let port = BitRate::new(10_000_000_000);
    let policy = match dpdk::read(text, port) {
        Ok(policy) => policy,
        Err(errors) => {
            assert!((1..=ERRORS_MAX).contains(&errors.len()));
            for error in errors {
                has_place(error.span());
                assert!(error.to_string().len() < 2_000, "{error}");
            }
            return;
        }
    };
    policy.notes.iter().for_each(|note| has_place(note.span));
    policy.places.iter().for_each(|place| has_place(place.span));
    assert!(policy.spec.resolve(port).is_ok(), "{text}");
    let written = dpdk::write(&policy.spec).map(|config| config.to_string());
    let written = written.unwrap_or_else(|error| panic!("{error}"));
    let again = match dpdk::read(&written, port) {
        Ok(again) => again.spec,
        Err(errors) => panic!("{errors:?}\n{written}"),
    };
    assert_eq!(again, policy.spec, "{written}");
    let twice = dpdk::write(&again).map(|config| config.to_string());
    assert_eq!(twice.as_ref(), Ok(&written));
}
