//! A background program in a network namespace, or in that of this process.

use crate::error::AttemptError;
use slicewise_live::sys::namespace;
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Lines of output kept.
const LINES_KEPT: usize = 200;
/// Longest wait for the last output of an ended process.
const LAST_WORDS: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// Killed when it is dropped, or when the thread that started it ends.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Start `command` in `namespace`, without a name in that of this process; messages call it `name`.
    pub(crate) fn start(
        name: impl Into<String>,
        mut command: Command,
        namespace: Option<&str>,
    ) -> Result<Self, AttemptError> {
        command.stdin(Stdio::null());
        Self::spawn(name, command, namespace)
    }

    /// The same, of a program that is [told](Self::tell) what to do.
    pub(crate) fn start_with_input(
        name: impl Into<String>,
        mut command: Command,
        namespace: Option<&str>,
    ) -> Result<Self, AttemptError> {
        command.stdin(Stdio::piped());
        Self::spawn(name, command, namespace)
    }

    /// Start `command` here with this standard input.
    pub(crate) fn start_reading(
        name: impl Into<String>,
        mut command: Command,
        input: Stdio,
    ) -> Result<Self, AttemptError> {
        command.stdin(input);
        Self::spawn(name, command, None)
    }

    /// Start `command` here, and return what is exchanged with it besides: its standard input and output. Only its
    /// standard error is kept as lines.
    pub(crate) fn start_dialogue(
        name: impl Into<String>,
        mut command: Command,
    ) -> Result<(Self, ChildStdin, ChildStdout), AttemptError> {
        command.stdin(Stdio::piped());
        let mut process = Self::spawned(name, command, None)?;
        process.keep_stderr();
        let ends = process.input.take().zip(process.child.stdout.take());
        let (input, output) = ends.ok_or_else(|| {
            AttemptError::Failed(format!(
                "{}: it has no standard input or output",
                process.name
            ))
        })?;
        Ok((process, input, output))
    }

    fn spawn(
        name: impl Into<String>,
        command: Command,
        namespace: Option<&str>,
    ) -> Result<Self, AttemptError> {
        let mut process = Self::spawned(name, command, namespace)?;
        let stdout = process.child.stdout.take();
        let reader = stdout.map(|from| keep_lines(from, &process.lines));
        process.readers.extend(reader);
        process.keep_stderr();
        Ok(process)
    }

    fn keep_stderr(&mut self) {
        let stderr = self.child.stderr.take();
        let reader = stderr.map(|from| keep_lines(from, &self.lines));
        self.readers.extend(reader);
    }

    /// Started, and nothing reads its output yet.
    fn spawned(
        name: impl Into<String>,
        mut command: Command,
        namespace: Option<&str>,
    ) -> Result<Self, AttemptError> {
        let name = name.into();
        let program = command.get_program().to_string_lossy().into_owned();
        let failed =
            |error| AttemptError::Failed(format!("{name}: cannot start {program}: {error}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        namespace::enter_before_exec(&mut command, namespace).map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        Ok(Self {
            name,
            input: child.stdin.take(),
            child,
            lines: Arc::default(),
            readers: Vec::new(),
        })
    }

    /// Wait for a line of output that contains `words`.
    pub(crate) fn wait_for(
        &mut self,
        words: &str,
        patience: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        self.wait_until(patience, is_interrupted, |lines| {
            lines.iter().any(|line| line.contains(words)).then_some(())
        })
    }

    /// Wait until `found` finds something in its output.
    pub(crate) fn wait_until<T>(
        &mut self,
        patience: Duration,
        is_interrupted: &dyn Fn() -> bool,
        found: impl Fn(&[String]) -> Option<T>,
    ) -> Result<T, AttemptError> {
        let start = Instant::now();
        loop {
            if let Some(found) = found(&self.lines()) {
                return Ok(found);
            }
            self.check()?;
            if is_interrupted() {
                return Err(AttemptError::Interrupted);
            }
            if start.elapsed() > patience {
                let last_words = self.last_words();
                return Err(AttemptError::Retryable(format!(
                    "{} was not ready within {} s{last_words}",
                    self.name,
                    patience.as_secs()
                )));
            }
            thread::sleep(POLL);
        }
    }

    /// An error if it ends within a moment.
    pub(crate) fn check_soon(&mut self) -> Result<(), AttemptError> {
        let start = Instant::now();
        while start.elapsed() < LAST_WORDS {
            self.check()?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// An error if it has ended unexpectedly.
    pub(crate) fn check(&mut self) -> Result<(), AttemptError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(AttemptError::Failed(format!("{}: {error}", self.name))),
        }
    }

    /// With which it has ended by itself, if it has.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().ok().flatten()?.code()
    }

    /// Wait until it has ended by itself; an error unless it succeeded.
    pub(crate) fn finish(&mut self, is_interrupted: &dyn Fn() -> bool) -> Result<(), AttemptError> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.ended(status)),
                Ok(None) if is_interrupted() => return Err(AttemptError::Interrupted),
                Ok(None) => thread::sleep(POLL),
                Err(error) => return Err(AttemptError::Failed(format!("{}: {error}", self.name))),
            }
        }
    }

    /// Wait until it is idle.
    pub(crate) fn wait_until_asleep(
        &mut self,
        patience: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        let path = format!("/proc/{}/stat", self.child.id());
        let start = Instant::now();
        while start.elapsed() < patience {
            self.check()?;
            let stat = fs::read_to_string(&path).map_err(AttemptError::failed(&path))?;
            if is_asleep(&stat) {
                return Ok(());
            }
            if is_interrupted() {
                return Err(AttemptError::Interrupted);
            }
            thread::sleep(POLL);
        }
        Err(AttemptError::Retryable(format!(
            "{} was still busy after {} s",
            self.name,
            patience.as_secs()
        )))
    }

    /// It has ended, but its last output may not have been read yet. Its own child processes may hold
    /// the output open, so the wait is limited.
    fn hear_out(&mut self) {
        let start = Instant::now();
        while start.elapsed() < LAST_WORDS && !self.readers.iter().all(JoinHandle::is_finished) {
            thread::sleep(POLL);
        }
    }

    fn ended(&mut self, status: ExitStatus) -> AttemptError {
        self.hear_out();
        AttemptError::Retryable(format!(
            "{} ended ({status}){}",
            self.name,
            self.last_words()
        ))
    }

    /// Returns its last lines of output, behind a colon; empty if there are none.
    pub(crate) fn last_words(&self) -> String {
        let lines = self.lines();
        let last: Vec<&str> = lines.iter().rev().take(3).map(String::as_str).collect();
        if last.is_empty() {
            return String::new();
        }
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!(": {}", last.join(" / "))
    }

    /// Its output so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// Write a line to its standard input.
    pub(crate) fn tell(&mut self, line: &str) -> Result<(), AttemptError> {
        self.check()?;
        let written = self
            .input
            .as_mut()
            .map_or(Ok(()), |input| writeln!(input, "{line}"));
        written.map_err(|error| {
            AttemptError::Retryable(format!("{} does not listen: {error}", self.name))
        })
    }

    /// Ask it to read its configuration again (SIGHUP).
    pub(crate) fn reload(&mut self) -> Result<(), AttemptError> {
        self.check()?;
        slicewise_live::sys::signals::reload(self.child.id())
            .map_err(AttemptError::failed(&self.name))
    }

    /// Ask it to end (SIGINT), and wait until it has.
    pub(crate) fn interrupt(&mut self, patience: Duration) -> Result<(), AttemptError> {
        self.check()?;
        slicewise_live::sys::signals::interrupt(self.child.id())
            .map_err(AttemptError::failed(&self.name))?;
        let start = Instant::now();
        while start.elapsed() < patience {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(POLL),
                Ok(Some(_)) => {
                    self.hear_out();
                    return Ok(());
                }
                Err(error) => return Err(AttemptError::Failed(format!("{}: {error}", self.name))),
            }
        }
        Err(AttemptError::Retryable(format!(
            "{} did not end within {} s",
            self.name,
            patience.as_secs()
        )))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From its line in `/proc`, where the state follows the name in parentheses, which may contain
/// anything.
fn is_asleep(stat: &str) -> bool {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.trim_start().starts_with('S')
}

fn keep_lines(
    from: impl Read + Send + 'static,
    lines: &Arc<Mutex<VecDeque<String>>>,
) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES_KEPT {
                lines.pop_front();
            }
            lines.push_back(line);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_processes_are_recognised_whatever_their_name() {
        assert!(is_asleep("17 (tcpdump) S 1 17 17 0 -1"));
        assert!(!is_asleep("17 (tcpdump) R 1 17 17 0 -1"));
        assert!(!is_asleep("17 (a) S) R 1 17 17 0 -1"));
        assert!(!is_asleep(""));
    }
}
