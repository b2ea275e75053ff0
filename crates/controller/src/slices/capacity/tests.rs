//! Tests of what links can hold.

use super::*;
use serde_json::json;

#[test]
fn sums_below_what_a_slice_has_are_an_error() {
    let direction = json!({"rate_bps": 100_000_000, "largest_frame_bytes": 1_522,
        "shortest_delay_ns": 10_000, "longest_delay_ns": 100_000_000});
    let link = json!({"name": "uplink", "forward": direction, "backward": direction});
    let link: LinkAnnouncement = serde_json::from_value(link).unwrap();
    let slice = json!({"name": "gold", "path": ["uplink"], "matches": [{"vlan": 1}],
        "forward": {"guarantee": {"rate_bps": 1_000_000, "burst_bytes": 3_000, "delay_ns": 50_000_000}}});
    let slice: Slice = serde_json::from_value(slice).unwrap();
    let mut capacity = Capacity::default();
    capacity.insert(&link, "gw").unwrap();
    let delays = capacity.try_admit(&[&slice]).unwrap();
    let hops = [Hop {
        slice: "gold".to_owned(),
        link: "uplink".to_owned(),
        gateway: "gw".to_owned(),
        delays: delays[0][0],
        acknowledged: true,
        problem: None,
    }];
    capacity.release(&slice, &hops).unwrap();
    let wrong = capacity.release(&slice, &hops).unwrap_err();
    assert!(
        wrong.to_string().contains("the sums of link `uplink`"),
        "{wrong}"
    );
}
