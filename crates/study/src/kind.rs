//! Which kind of file one is.

use crate::check::{GatewaySpec, LabSpec, MeasuredSpec, PlanSpec, StudySpec, entry_as_meant};
use crate::file::{Node, Value, document};
use serde_json::{Value as Json, json};

/// A kind of file that people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A study that can be run.
    Study,
    /// Slices that ask for guarantees on one link.
    Plan,
    /// A study whose runs have been captured, or slices alone.
    Measured,
    /// A configuration of the gateway.
    Gateway,
    /// Hosts and a device on which a study runs.
    Lab,
}

impl FileKind {
    /// Returns the kind of a file by the settings it has.
    pub(crate) fn of_root(root: &Node) -> Self {
        let has = |key: &str| entry_as_meant(root, key).is_some();
        let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
        let dut = entry_as_meant(root, "dut").map(|(_, dut)| &dut.value);
        if has("interfaces") {
            Self::Gateway
        } else if has("sender") || has("receiver") {
            Self::Lab
        } else if has("captures") || matches!(dut, Some(Value::Scalar(_))) {
            Self::Measured
        } else if has_any(&[
            "dut",
            "path",
            "policies",
            "scenarios",
            "sources",
            "populations",
            "cases",
            "sweep",
        ]) {
            Self::Study
        } else if has_any(&["buffer", "largest_frame", "counts", "delays", "tenants"]) {
            Self::Plan
        } else {
            Self::of_slices(root)
        }
    }

    /// Slices alone: by what is said of them.
    fn of_slices(root: &Node) -> Self {
        let slices = entry_as_meant(root, "slices").map(|(_, slices)| slices);
        let Some(slices) = slices.filter(|slices| slices.is_mapping()) else {
            return Self::Study;
        };
        let has_matches = slices
            .entries()
            .iter()
            .any(|(_, slice)| slice.entry("match").is_some());
        match (has_matches, entry_as_meant(root, "link").is_some()) {
            (true, _) => Self::Measured,
            (false, true) => Self::Plan,
            (false, false) => Self::Study,
        }
    }
}

/// The JSON Schema (draft 2020-12) of a kind of file: names, units, and which keys exist, shown
/// while writing. What needs the whole file, such as sums of rates, only a check tells.
#[must_use]
pub fn json_schema(kind: FileKind) -> Json {
    let required = |keys: &[&str]| ("required", json!(keys));
    match kind {
        FileKind::Study => {
            let complete = |network: &[&str]| {
                let rest = ["slices", "policies", "scenarios", "repetitions", "duration"];
                let keys = [&["name", "link"], network, &rest[..]].concat();
                json!({ "required": keys })
            };
            let extending = json!({ "required": ["extends"] });
            let of_cases = json!({ "required": ["name", "cases"] });
            let either = json!([
                extending,
                of_cases,
                complete(&["dut"]),
                complete(&["path", "devices"])
            ]);
            document::<StudySpec>("Slicewise study", ("anyOf", either))
        }
        FileKind::Plan => {
            let keys = required(&["link", "slices"]);
            document::<PlanSpec>("Slicewise plan", keys)
        }
        FileKind::Measured => {
            // With slices alone it says how to tell them.
            let keys = required(&["slices"]);
            document::<MeasuredSpec>("Slicewise measured study", keys)
        }
        FileKind::Gateway => {
            let keys = required(&["interfaces", "link", "policy"]);
            document::<GatewaySpec>("Slicewise gateway", keys)
        }
        FileKind::Lab => {
            let keys = required(&["sender", "receiver", "device"]);
            document::<LabSpec>("Slicewise lab", keys)
        }
    }
}
