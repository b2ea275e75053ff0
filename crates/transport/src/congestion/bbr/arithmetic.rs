//! Rates in bytes a second, amounts in bytes, and parts of them in percent.

use slicewise_units::Duration;

/// No bound.
pub(super) const UNBOUNDED: u64 = u64::MAX;
/// `percent` percent of `bytes`; an infinite amount stays so.
pub(super) fn percent_of(bytes: u64, percent: u64) -> u64 {
    if bytes == UNBOUNDED {
        return UNBOUNDED;
    }
    let part = u128::from(bytes) * u128::from(percent) / 100;
    u64::try_from(part).unwrap_or(UNBOUNDED)
}

/// Bytes at `rate` bytes a second in `time`.
pub(super) fn product(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate) * u128::from(time.nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(UNBOUNDED)
}

/// Bytes a second if `bytes` take `time`.
pub(super) fn rate_of(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(time.nanos().max(1));
    u64::try_from(rate).unwrap_or(UNBOUNDED)
}
