//! Which features of traffic control this kernel has: found by trying, in a namespace made for that.

use crate::command::{self, Tool};
use crate::lease::{Lease, delete_namespace};
use slicewise_formats::tc::Feature;

/// Of these features, those that this kernel does not have.
///
/// # Errors
/// In words, where nothing can be tried.
pub fn missing_features(lease: &Lease, features: &[Feature]) -> Result<Vec<Feature>, String> {
    let scratch = Scratch::new(lease)?;
    let mut missing = Vec::new();
    for &feature in features {
        for arguments in feature.probe_commands(SCRATCH) {
            let mut all = vec!["-n", scratch.0.as_str()];
            all.extend(arguments.iter().map(String::as_str));
            if command::output(Tool::Tc, &all).is_err() {
                missing.push(feature);
                break;
            }
        }
    }
    Ok(missing)
}

/// An interface to try things on.
const SCRATCH: &str = "scratch";

/// A namespace, deleted when this is dropped.
struct Scratch(String);

impl Scratch {
    fn new(lease: &Lease) -> Result<Self, String> {
        let name = format!("slicewise-{}-probe", std::process::id());
        lease
            .owns(std::slice::from_ref(&name))
            .map_err(|error| error.to_string())?;
        command::output(Tool::Ip, &["netns", "add", &name])?;
        let scratch = Self(name);
        let name = &scratch.0;
        let batch = format!(
            "link add {SCRATCH} type veth peer name {SCRATCH}-peer\nlink set {SCRATCH} up\n"
        );
        command::run(Tool::Ip, &["-n", name, "-batch", "-"], &batch)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = delete_namespace(&self.0);
    }
}
