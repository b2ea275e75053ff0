//! `slicewise init --libreqos`: a study of what a shaper of LibreQoS does.

use crate::Failure;
use slicewise_formats::TextError;
use slicewise_formats::libreqos::{self, Shaping};
use slicewise_stats::words::count;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The study of the files in `folder`, and what it holds.
pub fn study(folder: &Path) -> Result<(String, String), Failure> {
    let devices = folder.join("ShapedDevices.csv");
    let circuits = libreqos::circuits(&read(&devices)?).map_err(|found| wrong(&devices, &found))?;
    let tree = folder.join("network.json");
    let network = match fs::exists(&tree) {
        // Without one, all circuits are on the link itself.
        Ok(false) => Vec::new(),
        _ => libreqos::network(&read(&tree)?).map_err(|found| wrong(&tree, &found))?,
    };
    let holds = format!("{}, two policies", count(circuits.len() as u64, "circuit"));
    let text = libreqos::study(&Shaping { circuits, network });
    Ok((text, holds))
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path);
    text.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::mistake(format!(
            "there is no `{}`: name the folder that holds it, and `network.json`, if there is one",
            path.display()
        )),
        _ => Failure::system(format!("cannot read `{}`: {error}", path.display())),
    })
}

fn wrong(path: &Path, found: &[TextError]) -> Failure {
    let lines: Vec<String> = found
        .iter()
        .map(|error| format!("{}:{error}", path.display()))
        .collect();
    Failure::mistake(lines.join("\n"))
}
