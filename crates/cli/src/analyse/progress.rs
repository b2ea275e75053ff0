//! How far the captures are read: a bar in a terminal, a line now and then elsewhere.

use crate::noteln;
use crate::output::{self, Verbosity, escaped};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use slicewise_analysis::Watch;
use std::cell::Cell;
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Progress in bytes, on standard error.
pub struct Bytes<'a> {
    bar: ProgressBar,
    plain: bool,
    interrupt: &'a AtomicBool,
    printed: Cell<Instant>,
}

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

impl<'a> Bytes<'a> {
    pub fn new(interrupt: &'a AtomicBool, label: Option<&str>) -> Self {
        let plain = !stderr().is_terminal();
        let target = if plain || output::verbosity() == Verbosity::Quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        };
        let bar = ProgressBar::with_draw_target(None, target);
        // Within 80 columns; what is analysed stands above.
        let template = "{wide_bar:.cyan/dim} {decimal_bytes}/{decimal_total_bytes}  \
                        {decimal_bytes_per_sec}  {eta} to go";
        let labelled = format!("{{msg}}\n{template}");
        let template = label.map_or(template, |_| &labelled);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_message(escaped(label.unwrap_or_default()).into_owned());
        Self {
            bar,
            plain,
            interrupt,
            printed: Cell::new(Instant::now()),
        }
    }

    /// Take the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Bytes<'_> {
    fn on_progress(&self, read_bytes: u64, total_bytes: u64) {
        if total_bytes > 0 && self.bar.length() != Some(total_bytes) {
            self.bar.set_length(total_bytes);
        }
        self.bar.set_position(read_bytes);
        if self.plain && self.printed.get().elapsed() >= EVERY {
            self.printed.set(Instant::now());
            noteln!(
                "{} of {} MB read",
                read_bytes / 1_000_000,
                total_bytes / 1_000_000
            );
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
