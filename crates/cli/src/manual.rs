//! `slicewise completions` and `slicewise man`: both made from the definition of the command line.

use crate::Failure;
use crate::arguments::{Arguments, CompletionsOptions, ManOptions};
use crate::exit::Exit;
use crate::{outln, output};
use clap::CommandFactory;
use std::fs;

pub fn completions(options: &CompletionsOptions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        options.shell,
        &mut Arguments::command(),
        "slicewise",
        &mut script,
    );
    Ok(print(&script))
}

pub fn man(options: &ManOptions) -> Result<Exit, Failure> {
    let Some(folder) = &options.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command())
            .render(&mut page)
            .map_err(|error| Failure::system(format!("cannot make the manual page: {error}")))?;
        return Ok(print(&page));
    };
    let failed = |error| {
        Failure::system(format!(
            "cannot write manual pages into `{}`: {error}",
            folder.display()
        ))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    outln!("Manual pages: {}", folder.display());
    Ok(Exit::Success)
}

fn print(text: &[u8]) -> Exit {
    output::styled(&String::from_utf8_lossy(text));
    Exit::Success
}
