//! The alternate screen of a terminal, with single keys. It is left when it is dropped, and before a panic is reported.

use crate::output;
use console::Term;
use crossterm::Command;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, IsTerminal as _, Read as _};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a signal or a new size of the terminal may wait.
const PATIENCE: Duration = Duration::from_millis(100);
/// Ctrl-C, as a terminal that interprets no keys sends it.
const CTRL_C: u8 = 3;

/// True while the alternate screen is shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// End of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `q`, Ctrl-C, a signal that ends the process, or a terminal that is gone.
    Quit,
    /// The terminal has another size.
    Resized,
    /// It is time.
    Due,
}

/// The alternate screen, as long as this exists.
#[derive(Debug)]
pub struct FullScreen {
    keys: Receiver<u8>,
    is_ended: Arc<AtomicBool>,
    size: (u16, u16),
}

impl FullScreen {
    /// Returns true if keys and screen are a terminal's.
    pub fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        io::stdin().is_terminal() && Term::stdout().is_term() && !is_dumb
    }

    /// # Errors
    /// Where keys cannot be read one by one, or signals not be handled.
    pub fn enter() -> io::Result<Self> {
        let is_ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&is_ended))?;
        }
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            report(panic);
        }));
        enable_raw_mode()?;
        IS_SHOWN.store(true, Ordering::SeqCst);
        output::styled(
            &[
                ansi(EnterAlternateScreen),
                ansi(Hide),
                ansi(DisableLineWrap),
            ]
            .concat(),
        );
        Ok(Self {
            keys: keys(),
            is_ended,
            size: size(),
        })
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Show these lines, one for each row, in place of the last ones; they may have the colours of our tables.
    pub fn draw(&self, lines: &[String]) {
        let clear = ansi(Clear(ClearType::UntilNewLine));
        let lines: Vec<String> = (lines.iter().take(self.size.1.into()))
            .map(|line| clear.clone() + &output::coloured(line))
            .collect();
        let frame = [
            ansi(BeginSynchronizedUpdate),
            ansi(MoveTo(0, 0)),
            lines.join("\r\n"),
            ansi(EndSynchronizedUpdate),
        ];
        output::styled(&frame.concat());
    }

    /// Wait for something to happen, until `due`.
    pub fn wait(&mut self, due: Instant) -> Event {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            match self.keys.recv_timeout(left.min(PATIENCE)) {
                Ok(b'q' | b'Q' | CTRL_C) => return Event::Quit,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                // The terminal is gone.
                Err(RecvTimeoutError::Disconnected) => return Event::Quit,
            }
            if self.is_ended.load(Ordering::Relaxed) || output::is_lost() {
                return Event::Quit;
            }
            if self.size != size() {
                self.size = size();
                return Event::Resized;
            }
            if Instant::now() >= due {
                return Event::Due;
            }
        }
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave();
    }
}

/// Show again what was there before.
fn leave() {
    if IS_SHOWN.swap(false, Ordering::SeqCst) {
        output::styled(&[ansi(EnableLineWrap), ansi(Show), ansi(LeaveAlternateScreen)].concat());
        // There is nothing else to be done where it fails.
        let _ = disable_raw_mode();
    }
}

/// Bytes that keys send, until there is no terminal any more.
fn keys() -> Receiver<u8> {
    let (sender, keys) = mpsc::channel();
    std::thread::spawn(move || {
        let mut pressed = [0; 64];
        while let Ok(count @ 1..) = io::stdin().read(&mut pressed) {
            let keys = pressed.iter().take(count);
            if keys.copied().any(|key| sender.send(key).is_err()) {
                return;
            }
        }
    });
    keys
}

fn size() -> (u16, u16) {
    let (rows, columns) = Term::stdout().size();
    (columns, rows)
}

fn ansi(command: impl Command) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = command.write_ansi(&mut text);
    text
}
