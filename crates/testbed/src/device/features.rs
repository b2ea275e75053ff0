//! Traffic-control features of this kernel, found by trying them in a temporary namespace.

use crate::command::{self, Tool};
use crate::lease::Lease;
use crate::scratch::{SCRATCH, Scratch};
use slicewise_formats::tc::Feature;

/// Returns those of these features that this kernel lacks.
///
/// # Errors
/// A message, if nothing can be tried.
pub fn missing_features(lease: &Lease, features: &[Feature]) -> Result<Vec<Feature>, String> {
    if features.is_empty() {
        return Ok(Vec::new());
    }
    let scratch = Scratch::new(lease)?;
    let missing = features
        .iter()
        .filter(|&&feature| try_feature(&scratch, feature).is_err());
    Ok(missing.copied().collect())
}

/// Use a feature once; the error of `tc` if that failed.
pub(crate) fn try_feature(scratch: &Scratch, feature: Feature) -> Result<(), String> {
    for arguments in feature.probe_commands(SCRATCH) {
        let mut all = vec!["-n", scratch.name()];
        all.extend(arguments.iter().map(String::as_str));
        command::output(Tool::Tc, &all)?;
    }
    Ok(())
}
