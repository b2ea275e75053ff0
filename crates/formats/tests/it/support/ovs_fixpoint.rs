//! Properties of every text of Open vSwitch commands, used by the fuzz target and by the tests.

use slicewise_formats::{ERRORS_MAX, Span, ovs};
use slicewise_model::Rate;
use slicewise_units::BitRate;

/// Reading ends without a panic; errors and notes have a place; a policy that fits in a link is written, and what was
/// written reads the same.
pub fn check(text: &str) {
    let lines = text.split('\n').count();
    let has_place = |span: Span| {
        assert!((1..=lines).contains(&span.line), "{span:?}");
        assert!(span.column > 0 && span.length > 0, "{span:?}");
    };
    let link = BitRate::new(1_000_000_000);
    let policy = match ovs::read(text, link, &[]) {
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
    let Ok(params) = policy.spec.resolve(link) else {
        return;
    };
    let Ok(written) = ovs::write(&params, Rate::l2(link), "eth1") else {
        return;
    };
    let written = written.to_string();
    let again = match ovs::read(&written, link, &[]) {
        Ok(again) => again.spec.resolve(link),
        Err(errors) => panic!("{errors:?}\n{written}"),
    };
    assert_eq!(again.as_ref(), Ok(&params), "{written}");
}
