//! `slicewise init`: a study to start from.

use crate::Failure;
use crate::arguments::InitOptions;
use crate::exit::Exit;
use crate::{outln, output};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

const STARTER: &str = include_str!("init/starter.yaml");

pub fn init(options: &InitOptions) -> Result<Exit, Failure> {
    let file = &options.file;
    if file == Path::new("-") {
        output::styled(STARTER);
        return Ok(Exit::Success);
    }
    // `create_new` follows no link and overwrites nothing.
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let mut created = created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::mistake(format!(
            "`{}` exists: name another file (`slicewise init FILE`)",
            file.display()
        )),
        _ => Failure::system(format!("cannot create `{}`: {error}", file.display())),
    })?;
    created
        .write_all(STARTER.as_bytes())
        .map_err(|error| Failure::system(format!("cannot write `{}`: {error}", file.display())))?;
    outln!(
        "{0}: two slices, three policies, two loads. Run it: `slicewise run {0}`",
        file.display()
    );
    Ok(Exit::Success)
}
