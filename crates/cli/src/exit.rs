use std::process::ExitCode;

/// How a command ended, as a process exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done: 0.
    Success,
    /// Something failed that is not the user's doing, or some runs failed: 1.
    Failure,
    /// The user's mistake, in the arguments, the study or the folder named: 2.
    Mistake,
    /// A verdict that `--fail-on` names: 3.
    Verdict,
    /// Stopped by Ctrl-C; what was finished is on disk: 130.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Mistake => 2,
            Exit::Verdict => 3,
            Exit::Interrupted => 130,
        })
    }
}
