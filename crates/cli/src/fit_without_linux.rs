//! Stands in for `fit` where neither gateway nor testbed is part of the build.

use crate::Failure;
use crate::arguments::BackendName;
use slicewise_study::{Diagnostics, GatewayConfig, StudyFile};
use std::path::Path;

pub fn load_study_file(path: &Path, _: &BackendName) -> Result<StudyFile, Diagnostics> {
    StudyFile::load(path)
}

pub fn load_gateway(path: &Path) -> Result<GatewayConfig, Failure> {
    let config = GatewayConfig::load_for(path, &|_| Vec::new());
    config.map_err(|found| Failure::mistakes(found, path))
}
