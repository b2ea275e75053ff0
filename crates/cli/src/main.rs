//! `slicewise`: partition a shared link into slices that hold, and prove that they hold.

#![forbid(unsafe_code)]

mod analyse;
mod arguments;
mod check;
mod doctor;
mod executor;
mod exit;
mod export;
mod gateway;
mod init;
mod judgement;
mod live_run;
mod manual;
mod plan;
mod progress;
mod report;
mod results;
mod run;
mod seeds;
mod top;

use arguments::{Arguments, Command};
use clap::Parser;
use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Clap prints help, version and usage errors itself; a usage error exits with 2.
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Run(options) => run::run(options),
        Command::Check(options) => check::check(options),
        Command::Plan(options) => plan::plan(options),
        Command::Analyse(options) => analyse::analyse(options),
        Command::Schema(options) => check::schema(options),
        Command::Report(options) => report::report(options),
        Command::Export(options) => export::export(options),
        Command::Gateway(options) => gateway::gateway(options),
        Command::Top(options) => top::top(options),
        Command::Doctor(options) => doctor::doctor(options),
        Command::Init(options) => init::init(options),
        Command::Completions(options) => manual::completions(options),
        Command::Man(options) => manual::man(options),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.print();
            failure.exit.into()
        }
    }
}

/// A command that could not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    message: String,
    exit: Exit,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.trim_end())
    }
}

impl Failure {
    /// The user can mend it: exit code 2.
    pub fn mistake(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            exit: Exit::Mistake,
        }
    }

    /// The system or a run failed: exit code 1.
    pub fn system(message: impl ToString) -> Self {
        Self {
            message: message.to_string(),
            exit: Exit::Failure,
        }
    }

    /// The same, with how the command line offers to mend it.
    fn with_advice(mut self, advice: &str) -> Self {
        self.message = format!("{} {advice}", self.message);
        self
    }

    fn print(&self) {
        // Diagnostics of a study come with their own `error:` lines and snippets.
        if self.message.starts_with("error") {
            eprintln!("{}", self.message.trim_end());
        } else {
            eprintln!("error: {}", self.message.trim_end());
        }
    }
}
