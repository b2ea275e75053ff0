//! A patch between two interfaces of a namespace in the middle. Needs root; says so and passes where it
//! cannot.

use crate::support::{Testbed, udp};
use slicewise_live::patch;
use slicewise_live::sys::namespace::within;
use std::time::Duration;

#[test]
fn frames_go_on_with_their_tags_both_ways() {
    let Some(testbed) = Testbed::new("patch", 1_500) else {
        return;
    };
    within(&testbed.namespace("gateway"), || {
        patch::join("left", "right")
    })
    .unwrap()
    .unwrap();
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    let tag = [0x81, 0x00, 0x00, 0x0a];
    let frames: Vec<Vec<u8>> = [vec![], vec![tag], vec![tag, [0x81, 0x00, 0x00, 0x14]]]
        .iter()
        .zip(0..)
        .map(|(tags, number)| udp(tags, 9, 600, number))
        .collect();
    source.send(&frames);
    assert_eq!(sink.receive(3, Duration::from_secs(5)), frames);
    sink.send(&frames);
    assert_eq!(source.receive(3, Duration::from_secs(5)), frames);
}
