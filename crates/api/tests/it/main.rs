//! Tests of the API's types.

#[path = "support/request_fixpoint.rs"]
mod request_fixpoint;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_of_requests_is_read_without_a_panic_and_written_the_same() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/controller_request");
    let mut count = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        request_fixpoint::check(&text);
        // Cut off, and with each byte gone.
        for (at, _) in text.char_indices() {
            request_fixpoint::check(&text[..at]);
            let without: String = text
                .char_indices()
                .filter(|(index, _)| *index != at)
                .map(|(_, c)| c)
                .collect();
            request_fixpoint::check(&without);
        }
        count += 1;
    }
    assert!(count >= 5);
}
