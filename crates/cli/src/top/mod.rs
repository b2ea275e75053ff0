//! `slicewise top`: what a running gateway does, in the terminal.

mod full_screen;
mod screen;

use crate::Failure;
use crate::arguments::TopOptions;
use crate::exit::Exit;
use crate::output::{self, colours};
use full_screen::{Event, FullScreen};
use screen::View;
use slicewise_live::metrics::{self, Samples};
use std::time::{Duration, Instant};

pub fn top(options: &TopOptions) -> Result<Exit, Failure> {
    let mut gateway = Gateway::new(options)?;
    if options.once || !FullScreen::is_possible() {
        return print(&mut gateway, options.once);
    }
    let mut screen = FullScreen::enter().map_err(Failure::system)?;
    let view = |(columns, rows)| View {
        columns,
        rows: Some(rows),
        colours: colours(),
    };
    screen.draw(&screen::waiting(gateway.interval, &view(screen.size())));
    loop {
        match screen.wait(gateway.next) {
            Event::Quit => return Ok(Exit::Success),
            Event::Resized => {}
            Event::Due => gateway.look()?,
        }
        screen.draw(&gateway.shown(&view(screen.size())));
    }
}

/// A table each interval, one below the other.
fn print(gateway: &mut Gateway, once: bool) -> Result<Exit, Failure> {
    loop {
        std::thread::sleep(gateway.next.saturating_duration_since(Instant::now()));
        gateway.look()?;
        let lines = gateway.shown(&View {
            columns: output::columns(),
            rows: None,
            colours: colours(),
        });
        output::coloured_line(&lines.join("\n"));
        if once || output::is_lost() {
            return Ok(Exit::Success);
        }
    }
}

/// A gateway at the two last looks.
struct Gateway {
    port: u16,
    interval: Duration,
    before: Look,
    now: Look,
    /// When to look again.
    next: Instant,
}

#[derive(Clone)]
struct Look {
    samples: Samples,
    at: Instant,
}

impl Gateway {
    fn new(options: &TopOptions) -> Result<Self, Failure> {
        let interval = Duration::from_secs(options.interval);
        let first = Look::at(options.port)?;
        Ok(Self {
            port: options.port,
            interval,
            before: first.clone(),
            next: first.at + interval,
            now: first,
        })
    }

    fn look(&mut self) -> Result<(), Failure> {
        let now = Look::at(self.port)?;
        self.next = now.at + self.interval;
        self.before = std::mem::replace(&mut self.now, now);
        Ok(())
    }

    fn shown(&self, view: &View) -> Vec<String> {
        let seconds = (self.now.at - self.before.at).as_secs_f64();
        if seconds > 0.0 {
            screen::lines(&self.before.samples, &self.now.samples, seconds, view)
        } else {
            screen::waiting(self.interval, view)
        }
    }
}

impl Look {
    fn at(port: u16) -> Result<Self, Failure> {
        let samples = metrics::read(port).map_err(Failure::mistake)?;
        Ok(Self {
            samples,
            at: Instant::now(),
        })
    }
}
