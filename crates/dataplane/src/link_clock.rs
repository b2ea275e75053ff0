//! When a link is free again, without drift.

use slicewise_units::{BitRate, ByteCount, Duration, Instant, NANOS_PER_SECOND};

/// Serialization on a link: each frame occupies it for bits / rate, and the fraction of a
/// nanosecond left over is carried to the next frame while the link stays busy. A billion
/// 64-byte frames at 400 Gbit/s last 1.28 s, not 2 s.
#[derive(Debug, Clone, Copy)]
pub struct LinkClock {
    rate: BitRate,
    /// The first whole nanosecond at which the link is free.
    free_at: Instant,
    /// Nanobits that it could send between the moment when it is really free and `free_at`: less than `rate`.
    spare: u64,
    /// Duration of the last frame: consecutive frames often have the same size.
    last: Lasting,
}

/// Duration of a frame of one size: `nanos + part / rate` nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Lasting {
    size: ByteCount,
    nanos: u64,
    part: u64,
}

impl Lasting {
    #[cold]
    fn new(size: ByteCount, rate: BitRate) -> Self {
        let work = u128::from(size.bytes()) * 8 * u128::from(NANOS_PER_SECOND);
        let rate = u128::from(rate.bits_per_second().max(1));
        Self {
            size,
            nanos: u64::try_from(work / rate).unwrap_or(u64::MAX),
            part: u64::try_from(work % rate).unwrap_or(0),
        }
    }
}

impl LinkClock {
    /// An idle link. `rate` must not be zero.
    #[must_use]
    pub fn new(rate: BitRate) -> Self {
        debug_assert!(rate > BitRate::ZERO, "a link needs a rate");
        Self {
            rate,
            free_at: Instant::ZERO,
            spare: 0,
            last: Lasting::new(ByteCount::ZERO, rate),
        }
    }

    /// Sets the rate; must not be zero. What has to be sent still at `now` takes as long as on the faster of both links, so that
    /// no frame waits longer for the current one than it would on either.
    pub fn set_rate(&mut self, rate: BitRate, now: Instant) {
        let free_at = self.free_at;
        let before = u128::from(self.rate.bits_per_second());
        let left = u128::from(free_at.saturating_since(now).nanos());
        let left = (left * before).div_ceil(u128::from(rate.bits_per_second().max(1)));
        let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
        *self = Self::new(rate);
        self.free_at = free_at.min(now.saturating_add(left));
    }

    /// The first whole nanosecond at which the link is free.
    #[inline]
    #[must_use]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Send `size` as soon as the link is free, not before `now`; returns when the last bit has
    /// left, rounded up to a nanosecond.
    ///
    /// Sending the next frame at the returned time loses nothing: it starts where the last one exactly
    /// ended, less than a nanosecond before. Only a link that was free earlier starts at `now`.
    #[inline]
    pub fn send(&mut self, size: ByteCount, now: Instant) -> Instant {
        if size != self.last.size {
            self.last = Lasting::new(size, self.rate);
        }
        self.send_another(now)
    }

    /// [`send`](Self::send) another frame of the same size.
    #[inline]
    pub fn send_another(&mut self, now: Instant) -> Instant {
        if self.free_at < now {
            self.free_at = now;
            self.spare = 0;
        }
        let Lasting {
            mut nanos, part, ..
        } = self.last;
        if part <= self.spare {
            self.spare -= part;
        } else {
            self.spare += self.rate.bits_per_second() - part;
            nanos = nanos.saturating_add(1);
        }
        self.free_at = self.free_at.saturating_add(Duration::from_nanos(nanos));
        self.free_at
    }
}

#[cfg(test)]
mod tests;
