//! The device of a lab: how it gets a policy.

use super::ssh;
use crate::error::AttemptError;
use crate::process::Process;
use crate::suitability::UnsupportedSetting;
use slicewise_live::sys::terminal;
use slicewise_stats::shell;
use slicewise_study::{ConfiguredBy, Lab, Study, StudyPolicy};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

/// Checks that a policy can be put in force on the device of a lab.
///
/// # Errors
/// All that the device, or the language of its configurations, cannot do.
pub fn supports(
    lab: &Lab,
    policy: &StudyPolicy,
    study: &Study,
) -> Result<(), Vec<UnsupportedSetting>> {
    let unsupported = |setting, why| {
        vec![UnsupportedSetting {
            class: None,
            setting,
            why,
        }]
    };
    if policy.reallocation.is_some() {
        let why =
            "`reallocate`: a loop over rates is carried out by the gateway of this program alone";
        return Err(unsupported("reallocate", why.to_owned()));
    }
    if !study.phases.is_empty() {
        let why =
            "the study has a timeline, and the device of a lab keeps a policy for a whole run";
        return Err(unsupported("classes", why.to_owned()));
    }
    let exported = exported(lab, policy, study);
    exported
        .map(drop)
        .map_err(|why| unsupported("classes", why))
}

/// The configuration of a policy in the language of the device; empty if there is none.
fn exported(lab: &Lab, policy: &StudyPolicy, study: &Study) -> Result<String, String> {
    let interface = lab.device.interface.as_deref();
    lab.device.export.map_or_else(
        || Ok(String::new()),
        |language| language.write(study, policy, interface),
    )
}

/// Put a policy in force. The configuration is written into `folder`.
pub(super) fn put_in_force(
    lab: &Lab,
    (study, policy): (&Study, &StudyPolicy),
    folder: &Path,
    say: &dyn Fn(&str),
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), AttemptError> {
    let text = exported(lab, policy, study).map_err(AttemptError::Unsupported)?;
    let file = folder.join("policy");
    fs::write(&file, text).map_err(AttemptError::failed("the configuration of a policy"))?;
    match &lab.device.configured_by {
        ConfiguredBy::Operator(words) => {
            say(&format!("policy {}: {words}", policy.name));
            if lab.device.export.is_some() {
                say(&format!("its configuration is in {}", file.display()));
            }
            wait_for_enter(is_interrupted)
        }
        ConfiguredBy::Command { line, ssh } => {
            let line = filled(line, &policy.name, &file);
            let (command, place) = match ssh {
                Some(host) => (ssh::command(lab, host, &line), format!(" on {host}")),
                None => {
                    let mut command = Command::new("sh");
                    command.args(["-c", &line]);
                    (command, String::new())
                }
            };
            let name = format!(
                "the command that puts policy {} in force{place}",
                policy.name
            );
            let input = File::open(&file).map_err(AttemptError::failed("the configuration"))?;
            let mut process = Process::start_reading(name, command, Stdio::from(input))?;
            process.finish(is_interrupted).map_err(|error| match error {
                // It would fail again.
                AttemptError::Retryable(why) => AttemptError::Failed(why),
                other => other,
            })
        }
    }
}

/// A command line with its placeholders filled in.
fn filled(line: &str, policy: &str, file: &Path) -> String {
    let file = shell::word(&file.display().to_string());
    // One after the other, a policy's name could have the other placeholder in it.
    let parts = line.split("{policy}");
    let parts: Vec<String> = parts.map(|part| part.replace("{file}", &file)).collect();
    parts.join(&shell::word(policy))
}

fn wait_for_enter(is_interrupted: &dyn Fn() -> bool) -> Result<(), AttemptError> {
    // Enter that was pressed before the question is no answer to it.
    let _ = terminal::discard_typed();
    let (sender, answers) = channel();
    // It waits on, should the user interrupt the study instead.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0));
    });
    loop {
        match answers.recv_timeout(POLL) {
            Ok(true) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if is_interrupted() => {
                return Err(AttemptError::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(false) | Err(RecvTimeoutError::Disconnected) => {
                return Err(AttemptError::Failed(
                    "a person configures the device of this lab, and standard input has ended: run it in a terminal"
                        .to_owned(),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_in_as_words_of_a_shell() {
        let line = filled(
            "./apply.sh {policy} <{file}; echo {policy}",
            "it's {file}",
            Path::new("/tmp/a b"),
        );
        assert_eq!(
            line,
            r"./apply.sh 'it'\''s {file}' <'/tmp/a b'; echo 'it'\''s {file}'"
        );
    }
}
