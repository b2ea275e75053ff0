// What holds for the body of any request. The fuzz target `controller_request` includes this file, too.

use serde::Serialize;
use serde::de::DeserializeOwned;
use slicewise_api::{
    Acknowledgement, Batch, Change, CounterReport, GatewayAnnouncement, NewToken, Slice, Tenant,
    class_map,
};

/// No text is read with a panic; what is read is written so that it reads the same; what is valid is so for the model, too.
pub fn check(text: &str) {
    if let Some(slice) = read::<Slice>(text) {
        check_slice(&slice);
    }
    if let Some(batch) = read::<Batch>(text) {
        for change in &batch.changes {
            if let Change::Put(slice) = change {
                check_slice(slice);
            }
        }
    }
    if let Some(announcement) = read::<GatewayAnnouncement>(text) {
        let is_valid = announcement.check().is_ok();
        for link in &announcement.links {
            assert!(
                !is_valid || link.forward.admission().is_ok() && link.backward.admission().is_ok()
            );
        }
    }
    if let Some(said) = read::<Acknowledgement>(text) {
        let _ = said.check();
    }
    if let Some(tenant) = read::<Tenant>(text) {
        let _ = tenant.check();
    }
    read::<CounterReport>(text);
    read::<NewToken>(text);
}

fn read<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(text: &str) -> Option<T> {
    let read: T = serde_json::from_str(text).ok()?;
    let written = serde_json::to_string(&read).expect("it is JSON");
    let again: T = serde_json::from_str(&written).expect("what was written is read");
    assert_eq!(again, read);
    Some(read)
}

fn check_slice(slice: &Slice) {
    if slice.check().is_err() {
        return;
    }
    let forward = class_map(&slice.name, &slice.matches).expect("it was validated");
    let mirrored: Vec<_> = slice
        .matches
        .iter()
        .map(slicewise_api::Match::mirrored)
        .collect();
    let backward = class_map(&slice.name, &mirrored).expect("its mirror image is valid, too");
    assert_eq!(forward.conditions.len(), backward.conditions.len());
    for terms in [&slice.forward, &slice.backward].into_iter().flatten() {
        let request = terms.request(slice.path.len());
        assert_eq!(request.is_some(), terms.guarantee.is_some());
    }
}
