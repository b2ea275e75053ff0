//! A host of a lab, as the machine sees it that carries out the study.

use super::protocol::{self, Answer, Line, Order, SILENCE};
use super::ssh;
use crate::error::AttemptError;
use crate::process::Process;
use slicewise_study::{Lab, LabHost};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for an answer: a host may have to wait until its last run has noticed that its connection ended.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
/// Answers that may wait.
const MAX_WAITING: usize = 4;

type Input = BufWriter<ChildStdin>;

/// A connection to this program on a host, which ends with the connection.
pub(super) struct Remote {
    process: Process,
    /// Signs of life are written, too, until it is dropped.
    input: Arc<Mutex<Input>>,
    answers: Receiver<(Answer, Vec<u8>)>,
    /// Role and destination, for messages.
    name: String,
}

impl Remote {
    /// Start the program of `host`, which has this role, in the same version as this one.
    pub(super) fn connect(
        (lab, role, host): (&Lab, &str, &LabHost),
        version: &str,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, AttemptError> {
        let name = format!("{role} {}", host.ssh);
        let line = format!("{} lab-host", host.program);
        let command = ssh::command(lab, &host.ssh, &line);
        let (process, input, output) = Process::start_dialogue(name.as_str(), command)?;
        let input = Arc::new(Mutex::new(BufWriter::new(input)));
        keep_alive(&input);
        let mut remote = Self {
            process,
            input,
            answers: read_answers(output),
            name,
        };
        let (ready, _) = remote
            .answer(is_interrupted)
            .map_err(|error| remote.unreachable(host, version, error))?;
        match ready {
            Answer::Ready { version: theirs } if theirs == version => Ok(remote),
            Answer::Ready { version: theirs } => Err(AttemptError::Failed(format!(
                "{} has slicewise {theirs}, and this is {version}: {}",
                remote.name,
                copy(host)
            ))),
            other => Err(remote.unexpected(&other)),
        }
    }

    /// Why it could not be started.
    fn unreachable(&mut self, host: &LabHost, version: &str, error: AttemptError) -> AttemptError {
        if matches!(error, AttemptError::Interrupted) {
            return error;
        }
        let (name, said) = (&self.name, self.process.last_words());
        let program = &host.program;
        AttemptError::Failed(match self.process.exit_code() {
            Some(ssh::CONNECTION_FAILED) => {
                format!("{name} cannot be reached over SSH{said}")
            }
            Some(ssh::NOT_FOUND) => {
                format!("{name} has no `{program}`{said}; {}", copy(host))
            }
            Some(code) => format!(
                "`{program}` on {name} ended with exit code {code}{said}; expected slicewise {version}: {}",
                copy(host)
            ),
            None => error.to_string(),
        })
    }

    /// Have it carry out an order; returns the answer.
    pub(super) fn ask(
        &mut self,
        order: &Order,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Answer, AttemptError> {
        self.exchange(order, &[], is_interrupted)
            .map(|(answer, _)| answer)
    }

    /// Have it carry out an order that has no result.
    pub(super) fn tell(
        &mut self,
        order: &Order,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        self.tell_with(order, &[], is_interrupted)
    }

    /// The same, with data.
    pub(super) fn tell_with(
        &mut self,
        order: &Order,
        data: &[u8],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        match self.exchange(order, data, is_interrupted)? {
            (Answer::Done, _) => Ok(()),
            (other, _) => Err(self.unexpected(&other)),
        }
    }

    /// Copy its capture into a new file.
    pub(super) fn fetch_capture(
        &mut self,
        file: &Path,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), AttemptError> {
        let shown = file.display().to_string();
        let failed = AttemptError::failed(&shown);
        let mut copy = BufWriter::new(File::create_new(file).map_err(&failed)?);
        loop {
            match self.exchange(&Order::ReadCapture, &[], is_interrupted)? {
                (Answer::Piece, piece) if piece.is_empty() => return copy.flush().map_err(&failed),
                (Answer::Piece, piece) => copy.write_all(&piece).map_err(&failed)?,
                (other, _) => return Err(self.unexpected(&other)),
            }
        }
    }

    /// An error if the connection has ended.
    pub(super) fn check(&mut self) -> Result<(), AttemptError> {
        self.process.check()
    }

    /// Error for an answer that belongs to another order.
    pub(super) fn unexpected(&self, answer: &Answer) -> AttemptError {
        AttemptError::Failed(format!(
            "{} gave an unexpected answer: {answer:?}",
            self.name
        ))
    }

    fn exchange(
        &mut self,
        order: &Order,
        data: &[u8],
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(Answer, Vec<u8>), AttemptError> {
        let written = {
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            protocol::write(&mut *input, order, data)
        };
        if let Err(error) = written {
            // Usually because it has ended.
            self.process.check_soon()?;
            return Err(AttemptError::Retryable(format!("{}: {error}", self.name)));
        }
        match self.answer(is_interrupted)? {
            (Answer::Refused { why, is_permanent }, _) => {
                let why = format!("{}: {why}", self.name);
                Err(match is_permanent {
                    true => AttemptError::Failed(why),
                    false => AttemptError::Retryable(why),
                })
            }
            answer => Ok(answer),
        }
    }

    fn answer(
        &mut self,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(Answer, Vec<u8>), AttemptError> {
        let start = Instant::now();
        loop {
            match self.answers.recv_timeout(POLL) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.process.check_soon()?;
                    let why = format!("{} sends no answers any more", self.name);
                    return Err(AttemptError::Retryable(why));
                }
            }
            if is_interrupted() {
                return Err(AttemptError::Interrupted);
            }
            if start.elapsed() > PATIENCE {
                return Err(AttemptError::Retryable(format!(
                    "{} gave no answer within {} s",
                    self.name,
                    PATIENCE.as_secs()
                )));
            }
        }
    }
}

/// Sends signs of life until the connection ends.
fn keep_alive(input: &Arc<Mutex<Input>>) {
    let input = Arc::downgrade(input);
    thread::spawn(move || {
        loop {
            thread::sleep(SILENCE / 6);
            let Some(input) = input.upgrade() else {
                return;
            };
            let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
            if protocol::write_sign_of_life(&mut *input).is_err() {
                return;
            }
        }
    });
}

/// Advice to copy this program to a host.
fn copy(host: &LabHost) -> String {
    let program = std::env::current_exe().map_or_else(
        |_| "the program `slicewise`".to_owned(),
        |path| path.display().to_string(),
    );
    format!(
        "copy this program there (`scp {program} {}:`), and say where it is with `program`, unless it is on the PATH",
        host.ssh
    )
}

/// Reads answers until the connection ends; other lines, such as greetings of a shell, are skipped.
fn read_answers(output: ChildStdout) -> Receiver<(Answer, Vec<u8>)> {
    let (sender, answers) = sync_channel(MAX_WAITING);
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            match protocol::read(&mut output) {
                Ok(Line::Message(answer, data)) => {
                    if sender.send((answer, data)).is_err() {
                        return;
                    }
                }
                Ok(Line::Other(_)) => {}
                Ok(Line::End) | Err(_) => return,
            }
        }
    });
    answers
}
