//! How long a client waits before it opens a connection again that failed.

use slicewise_units::Duration;

/// Doubles with each failure from [`FIRST`] to [`LONGEST`], and starts anew once something worked.
#[derive(Debug, Clone, Copy, Default)]
pub struct BackOff {
    failures: u32,
}

/// Wait after the first failure.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
const LONGEST: Duration = Duration::from_secs(64);

impl BackOff {
    /// The connection failed once more: how long to wait.
    pub fn on_failure(&mut self) -> Duration {
        let wait = FIRST * (1u64 << self.failures.min(32));
        self.failures = self.failures.saturating_add(1);
        wait.min(LONGEST)
    }

    /// The connection did what it is for.
    pub fn on_success(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_anew_after_a_success() {
        let mut back_off = BackOff::default();
        let waits: Vec<u64> = (0..9)
            .map(|_| back_off.on_failure().nanos() / 1_000_000_000)
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        back_off.on_success();
        assert_eq!(back_off.on_failure(), Duration::from_secs(1));
    }
}
