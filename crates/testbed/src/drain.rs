//! Waiting until queues are empty after a run.

use crate::error::AttemptError;
use std::thread;
use std::time::Duration;

/// A device that has sent nothing for this long is empty.
const QUIET: Duration = Duration::from_millis(300);
/// Longest wait for queues to drain: later packets count as lost.
const LONGEST: Duration = Duration::from_secs(10);

/// Wait until no more than `stray` frames, which may be of others, such as ARP, arrive in an interval, by a counter of frames that
/// `arrived`.
pub(crate) fn drain(
    mut arrived: impl FnMut() -> Result<u64, AttemptError>,
    stray: u64,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), AttemptError> {
    let mut before = arrived()?;
    let mut waited = Duration::ZERO;
    while waited < LONGEST {
        thread::sleep(QUIET);
        waited += QUIET;
        if is_interrupted() {
            return Err(AttemptError::Interrupted);
        }
        let now = arrived()?;
        if now.saturating_sub(before) <= stray {
            break;
        }
        before = now;
    }
    Ok(())
}
