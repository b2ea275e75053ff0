//! Waiting until queues are empty after a run.

use crate::error::AttemptError;
use std::thread;
use std::time::Duration;

/// A device that has sent nothing for this long is empty: a frame of 1514 B takes less from 20 kbit/s on.
const QUIET: Duration = Duration::from_millis(600);
/// Longest wait for queues to drain: later packets count as lost.
const LONGEST: Duration = Duration::from_secs(10);

/// Wait until nothing arrives in an interval, by a counter of what `arrived`.
pub(crate) fn drain(
    mut arrived: impl FnMut() -> Result<u64, AttemptError>,
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
        if now == before {
            break;
        }
        before = now;
    }
    Ok(())
}
