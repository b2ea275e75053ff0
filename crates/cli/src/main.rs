//! `slicewise`: partition a shared link into slices that hold, and prove that they hold.

#![forbid(unsafe_code)]
// A closed pipe must not end the command in a panic: `output` prints.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod analyse;
mod arguments;
mod backend_name;
mod captures;
mod check;
mod collect;
mod compare;
#[cfg(feature = "controller")]
mod controller;
#[cfg(feature = "linux")]
mod doctor;
mod execution;
mod executor;
mod exit;
mod export;
#[cfg(feature = "linux")]
mod fit;
#[cfg(not(feature = "linux"))]
#[path = "fit_without_linux.rs"]
mod fit;
#[cfg(feature = "linux")]
mod gateway;
mod init;
mod judgement;
#[cfg(feature = "linux")]
mod lab;
mod load;
mod manual;
mod output;
mod plan;
mod progress;
mod remote;
mod report;
mod results;
mod run;
mod seeds;
mod series;
mod shard;
mod slice;
mod submit;
mod tenant;
#[cfg(feature = "linux")]
mod testbed_run;
#[cfg(feature = "linux")]
mod top;
mod transactions;

use arguments::{Arguments, Command};
#[cfg(not(feature = "linux"))]
use arguments::{BackendName, CheckOptions, RunOptions};
use clap::Parser;
use exit::Exit;
use slicewise_stats::words;
use slicewise_study::Diagnostics;
use std::path::Path;
use std::process::ExitCode;

/// No thread waits until pieces of memory are joined that others have freed, so a gateway forwards meanwhile.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return output::of_arguments(&error),
    };
    output::set_verbosity(arguments.verbosity());
    let mut command = arguments.command;
    let result = remote::with_copies(&mut command, carry_out);
    output::conclude(result.unwrap_or_else(|failure| {
        failure.print();
        failure.exit
    }))
}

fn carry_out(command: &Command) -> Result<Exit, Failure> {
    match command {
        #[cfg(not(feature = "linux"))]
        Command::Run(RunOptions { on, .. }) | Command::Check(CheckOptions { on, .. })
            if *on != BackendName::Sim =>
        {
            Err(Failure::left_out("linux"))
        }
        Command::Run(options) => series::run(options),
        Command::Check(options) => check::check(options),
        Command::Plan(options) => plan::plan(options),
        Command::Analyse(options) => analyse::analyse(options),
        Command::Schema(options) => check::schema(options),
        Command::Collect(options) => collect::collect(options),
        Command::Report(options) => series::report(options),
        Command::Submit(options) => submit::submit(options),
        Command::Compare(options) => compare::compare(options),
        Command::Export(options) => export::export(options),
        #[cfg(feature = "linux")]
        Command::Gateway(options) => gateway::gateway(options),
        Command::Slice(options) => slice::slice(options),
        Command::Tenant(options) => tenant::tenant(options),
        #[cfg(feature = "controller")]
        Command::Controller(options) => controller::controller(options),
        #[cfg(feature = "linux")]
        Command::Top(options) => top::top(options),
        #[cfg(feature = "linux")]
        Command::Doctor(options) => doctor::doctor(options),
        #[cfg(feature = "linux")]
        Command::LabHost => lab::host(),
        Command::Init(options) => init::init(options),
        Command::Completions(options) => manual::completions(options),
        Command::Man(options) => manual::man(options),
        #[cfg(not(feature = "controller"))]
        Command::Controller(_) => Err(Failure::left_out("controller")),
        #[cfg(not(feature = "linux"))]
        Command::Gateway(_) | Command::Top(_) | Command::Doctor(_) | Command::LabHost => {
            Err(Failure::left_out("linux"))
        }
    }
}

/// A command that could not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    what: What,
    exit: Exit,
}

#[derive(Debug)]
enum What {
    Message(String),
    /// Everything that is wrong with a file, and its path.
    Mistakes(Diagnostics, String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.what {
            What::Message(message) => f.write_str(message.trim_end()),
            What::Mistakes(found, path) => {
                write!(f, "{found}\n\nerror: {}", count_of(found, path))
            }
        }
    }
}

impl Failure {
    /// The user can fix it: exit code 2.
    pub fn mistake(message: impl ToString) -> Self {
        Self {
            what: What::Message(message.to_string()),
            exit: Exit::Mistake,
        }
    }

    /// This build has no such part: exit code 2.
    #[cfg(not(all(feature = "controller", feature = "linux", feature = "s3")))]
    fn left_out(feature: &str) -> Self {
        Self::mistake(format!(
            "this `slicewise` was built without its feature `{feature}`; to install it with that: \
             cargo install --path crates/cli --features {feature}"
        ))
    }

    /// Everything that is wrong with the file at `path`.
    pub fn mistakes(found: Diagnostics, path: &Path) -> Self {
        Self {
            what: What::Mistakes(found, path.display().to_string()),
            exit: Exit::Mistake,
        }
    }

    /// The system or a run failed: exit code 1.
    pub fn system(message: impl ToString) -> Self {
        Self {
            what: What::Message(message.to_string()),
            exit: Exit::Failure,
        }
    }

    /// The same, with what the command line offers against it.
    fn with_advice(mut self, advice: &str) -> Self {
        if let What::Message(message) = &mut self.what {
            *message = format!("{message} {advice}");
        }
        self
    }

    fn print(&self) {
        match &self.what {
            What::Message(message) => errln!("error: {}", message.trim_end()),
            // These come with their own `error:` lines and colours, and are escaped.
            What::Mistakes(found, path) => {
                output::styled_error(&found.render(output::error_colours()));
                errln!("\n\nerror: {}", count_of(found, path));
            }
        }
    }
}

/// "2 mistakes in study.yaml".
fn count_of(found: &Diagnostics, path: &str) -> String {
    let number = words::count(found.count() as u64, "mistake");
    let mut files = found.iter().map(|diagnostic| diagnostic.file.as_str());
    let first = files.next().unwrap_or(path);
    if files.any(|file| file != first) {
        format!("{number} in {path} and the files it names")
    } else {
        format!("{number} in {first}")
    }
}
