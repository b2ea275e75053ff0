//! How far a study is: a bar in a terminal, a line every tenth of the way elsewhere.

use crate::output::{self, Verbosity, escaped};
use crate::{errln, noteln};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};

/// Progress over a known number of runs, on standard error.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    total: u64,
    tenths_told: u64,
    state_told: String,
}

impl Progress {
    /// Progress over `total` runs.
    pub fn new(total: u64) -> Self {
        let plain = !stderr().is_terminal();
        let target = if plain || output::verbosity() == Verbosity::Quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(
            "{bar:30.cyan/dim} {pos:>4}/{len} runs  {elapsed} elapsed, {eta} to go  {wide_msg:.dim}",
        ) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self {
            bar,
            plain,
            total,
            tenths_told: 0,
            state_told: String::new(),
        }
    }

    /// One more run is done.
    pub fn on_run(&mut self, policy: &str, scenario: &str) {
        let message = format!("{policy} / {scenario}");
        self.bar.set_message(escaped(&message).into_owned());
        self.bar.inc(1);
        let tenths = (self.bar.position() * 10)
            .checked_div(self.total)
            .unwrap_or(10);
        if self.plain && tenths > self.tenths_told {
            self.tenths_told = tenths;
            noteln!("{}/{} runs", self.bar.position(), self.total);
        }
    }

    /// Shows how many runs are done, and the state of the others; outside a terminal, each state is a line.
    pub fn show(&mut self, done: u64, state: &str) {
        self.bar.set_message(escaped(state).into_owned());
        self.bar.set_position(done);
        if self.plain && state != self.state_told {
            self.state_told = state.to_owned();
            noteln!("{done}/{} runs: {state}", self.total);
        }
    }

    /// Print a line without tearing the bar.
    pub fn warn(&self, line: &str) {
        self.bar.suspend(|| errln!("{line}"));
    }

    /// Print a note without tearing the bar.
    pub fn note(&self, line: &str) {
        self.bar.suspend(|| noteln!("{line}"));
    }

    /// Prints lines without tearing the bar, from any thread.
    #[cfg(feature = "linux")]
    pub fn printer(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let bar = self.bar.clone();
        move |line| bar.suspend(|| noteln!("{line}"))
    }

    /// Print a line about a run, where each has one.
    pub fn detail(&self, line: &str) {
        if output::verbosity() == Verbosity::Verbose {
            self.warn(line);
        }
    }

    /// Take the bar away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
