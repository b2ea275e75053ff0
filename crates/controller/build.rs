//! Makes a table of the files in `assets/`, so that whatever is there is served.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder =
        Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("assets");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut table = String::from("&[\n");
    for name in names {
        let path = folder.join(&name);
        // Writing to a string cannot fail.
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?}) as &[u8]),");
    }
    table.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("assets.rs"), table)
}
