//! Properties of every text of slice requests, used by the fuzz target and by the tests.

use slicewise_formats::ERRORS_MAX;
use slicewise_formats::p4_tins::{self, DataPlane};
use slicewise_model::{PortParams, Rate};
use slicewise_units::{Accounting, BitRate};

/// Reading ends without a panic; errors have a place; a policy that fits in a link is written, and what was
/// written reads the same.
pub fn check(text: &str) {
    let lines = text.split('\n').count();
    let requests = match p4_tins::parse(text) {
        Ok(requests) => requests,
        Err(errors) => {
            assert!((1..=ERRORS_MAX).contains(&errors.len()));
            for error in errors {
                assert!((1..=lines).contains(&error.line), "{error}");
                assert!(error.column > 0 && error.length > 0, "{error}");
                assert!(error.to_string().len() < 2_000, "{error}");
            }
            return;
        }
    };
    let port = PortParams::from(Rate {
        rate: BitRate::new(1_000_000_000_000),
        accounting: Accounting::L1,
    });
    for plane in DataPlane::ALL {
        let Ok(policy) = requests.policy(plane).spec.resolve_for(port) else {
            continue;
        };
        let written = p4_tins::write(&policy, port).expect("what was read can be written");
        let again = p4_tins::parse(&written).expect("what is written can be read");
        let again = again.policy(plane).spec.resolve_for(port);
        assert_eq!(again.as_ref(), Ok(&policy), "{written}");
    }
}
