//! Credits of subports and pipes: token buckets, and a limit of each traffic class per period.

use slicewise_model::hqos::{BEST_EFFORT, HqosCredits, TRAFFIC_CLASSES};

/// Token bucket and traffic classes of a subport or a pipe.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Credits {
    tb_time: u64,
    tb_credits: u64,
    /// When the credits of the classes are renewed, at the next visit.
    tc_time: u64,
    /// By [`position`].
    tc_credits: [u64; TRAFFIC_CLASSES],
}

/// Best effort is first, next to the token bucket, and then the others by priority.
const fn position(class: usize) -> usize {
    if class == BEST_EFFORT { 0 } else { class + 1 }
}

/// Credits of a period by [`position`].
const fn in_period(params: &HqosCredits) -> [u64; TRAFFIC_CLASSES] {
    let mut credits = params.tc_credits_per_period;
    credits.rotate_right(1);
    credits
}

impl Credits {
    /// A bucket that is half full, and a period that begins at time 0.
    pub(super) const fn new(params: &HqosCredits) -> Self {
        Self {
            tb_time: 0,
            tb_credits: params.tb_size / 2,
            tc_time: params.tc_period,
            tc_credits: in_period(params),
        }
    }

    /// No credits, and a period that has ended: a pipe without a profile.
    pub(super) const fn none() -> Self {
        Self {
            tb_time: 0,
            tb_credits: 0,
            tc_time: 0,
            tc_credits: [0; TRAFFIC_CLASSES],
        }
    }

    /// Keep the credits of `old`, whose scheduler this one replaces: its time was `then`, and here it is `now`.
    pub(super) fn resume_from(&mut self, old: &Self, params: &HqosCredits, then: u64, now: u64) {
        self.tb_time = now;
        self.tb_credits = old.tb_credits.min(params.tb_size);
        let left = old.tc_time.saturating_sub(then).min(params.tc_period);
        self.tc_time = now.saturating_add(left);
        let most = in_period(params).into_iter().zip(old.tc_credits);
        for (credits, (most, old)) in self.tc_credits.iter_mut().zip(most) {
            *credits = old.min(most);
        }
    }

    /// The token bucket earns what it has missed, in whole periods.
    #[inline]
    pub(super) fn earn(&mut self, params: &HqosCredits, time: u64) {
        let passed = time.saturating_sub(self.tb_time);
        if passed < params.tb_period {
            return;
        }
        let periods = passed / params.tb_period;
        let earned = periods.saturating_mul(params.tb_credits_per_period);
        self.tb_credits = self.tb_credits.saturating_add(earned).min(params.tb_size);
        self.tb_time += periods * params.tb_period;
    }

    #[inline]
    pub(super) const fn is_period_over(&self, time: u64) -> bool {
        time >= self.tc_time
    }

    /// A new period of the traffic classes.
    pub(super) const fn renew(&mut self, params: &HqosCredits, time: u64) {
        self.tc_credits = in_period(params);
        self.tc_time = time + params.tc_period;
    }

    /// Returns true if a frame of `bytes` in class `class` may leave.
    #[inline]
    pub(super) fn suffice(&self, class: usize, bytes: u64) -> bool {
        bytes <= self.tb_credits && bytes <= self.tc_credits[position(class)]
    }

    #[inline]
    pub(super) fn spend(&mut self, class: usize, bytes: u64) {
        self.tb_credits -= bytes;
        self.tc_credits[position(class)] -= bytes;
    }

    /// The end of the period of the traffic classes.
    pub(super) const fn period_end(&self) -> u64 {
        self.tc_time
    }

    /// When [`suffice`](Self::suffice) answers yes, if nothing is spent until then.
    pub(super) fn suffice_at(&self, params: &HqosCredits, class: usize, bytes: u64) -> u64 {
        let missing = bytes.saturating_sub(self.tb_credits);
        let periods = missing.div_ceil(params.tb_credits_per_period.max(1));
        let bucket = match periods {
            0 => 0,
            _ => self
                .tb_time
                .saturating_add(periods.saturating_mul(params.tb_period)),
        };
        let renewed = if bytes <= self.tc_credits[position(class)] {
            0
        } else {
            self.tc_time
        };
        bucket.max(renewed)
    }

    /// Credits of a period that have been spent. In a period that began with others, modulo 2^64 as in the library.
    pub(super) fn spent(&self, params: &HqosCredits, class: usize) -> u64 {
        params.tc_credits_per_period[class].wrapping_sub(self.tc_credits[position(class)])
    }
}

/// How best effort is shared where pipes may send more of it together than their subport: each may send `watermark`
/// times its weight per period of the subport, and the watermark follows what was sent.
#[derive(Debug)]
pub(super) struct Oversubscription {
    watermark: u64,
    min: u64,
    max: u64,
    /// Pipes may send more than their subport.
    is_on: bool,
    /// Periods of the subport, modulo 256.
    period: u8,
}

impl Oversubscription {
    pub(super) const fn new(min: u64, max: u64, is_on: bool) -> Self {
        Self {
            watermark: max,
            min,
            max,
            is_on,
            period: 0,
        }
    }

    /// Keep the watermark of `old`.
    pub(super) fn resume_from(&mut self, old: &Self) {
        self.watermark = old.watermark.max(self.min).min(self.max);
        self.period = old.period;
    }

    pub(super) const fn period(&self) -> u8 {
        self.period
    }

    /// Credits of a pipe for a period.
    #[inline]
    pub(super) fn credits(&self, weight: u8) -> u64 {
        self.watermark.saturating_mul(u64::from(weight))
    }

    /// The most that [`credits`](Self::credits) can be.
    pub(super) fn most_credits(&self, weight: u8) -> u64 {
        let most = if self.is_on {
            self.max.max(self.min)
        } else {
            self.max
        };
        most.saturating_mul(u64::from(weight))
    }

    /// A period of the subport ends: the watermark falls by 1/128 if best effort took all but one largest frame of
    /// what the other classes left, else it rises as much. Arithmetic is modulo 2^64, as in the library.
    pub(super) fn next_period(&mut self, subport: &Credits, params: &HqosCredits) {
        self.period = self.period.wrapping_add(1);
        if !self.is_on {
            self.watermark = self.max;
            return;
        }
        let others = (0..BEST_EFFORT).map(|class| subport.spent(params, class));
        let others = others.fold(0, u64::wrapping_add);
        let left = params.tc_credits_per_period[BEST_EFFORT].wrapping_sub(others);
        let step = self.watermark >> 7;
        self.watermark = if subport.spent(params, BEST_EFFORT) > left.wrapping_sub(self.min) {
            (self.watermark - step).max(self.min)
        } else {
            (self.watermark + step + 1).min(self.max)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{BEST_EFFORT, Credits, HqosCredits, Oversubscription, TRAFFIC_CLASSES};

    const SUBPORT: HqosCredits = HqosCredits {
        tb_period: 1,
        tb_credits_per_period: 1,
        tb_size: 1_000_000,
        tc_period: 10_000,
        tc_credits_per_period: [10_000; TRAFFIC_CLASSES],
    };

    /// The watermark after a period in which a class with strict priority and best effort spent so much.
    fn next(share: &mut Oversubscription, strict: u64, best_effort: u64) -> u64 {
        let mut credits = Credits::new(&SUBPORT);
        credits.spend(3, strict);
        credits.spend(BEST_EFFORT, best_effort);
        share.next_period(&credits, &SUBPORT);
        share.credits(1)
    }

    #[test]
    fn the_watermark_falls_while_best_effort_takes_what_is_left_and_else_rises() {
        let mut share = Oversubscription::new(1_500, 12_800, true);
        assert_eq!(next(&mut share, 4_000, 4_501), 12_700);
        assert_eq!(next(&mut share, 4_000, 4_500), 12_700 + 99 + 1);
        assert_eq!(
            next(&mut share, 0, 8_500),
            12_800,
            "never above the largest"
        );
        assert_eq!(share.credits(3), 3 * 12_800);
        for _ in 0..1_000 {
            next(&mut share, 1_000, 9_000);
        }
        assert_eq!(share.credits(1), 1_500, "never below the smallest");
        assert_eq!(share.period(), 235, "modulo 256");
        let mut off = Oversubscription::new(1_500, 12_800, false);
        assert_eq!(next(&mut off, 1_000, 9_000), 12_800);
    }

    #[test]
    fn a_bucket_earns_in_whole_periods_and_is_never_above_its_size() {
        let params = HqosCredits {
            tb_period: 100,
            tb_credits_per_period: 30,
            tb_size: 1_000,
            ..SUBPORT
        };
        let mut credits = Credits::new(&params);
        assert_eq!(credits.suffice_at(&params, 0, 500), 0);
        assert_eq!(credits.suffice_at(&params, 0, 501), 100);
        credits.earn(&params, 99);
        assert!(!credits.suffice(0, 501));
        credits.earn(&params, 250);
        assert!(credits.suffice(0, 560) && !credits.suffice(0, 561));
        assert_eq!(
            credits.suffice_at(&params, 0, 590),
            300,
            "what was left counts"
        );
        credits.earn(&params, 1_000_000);
        assert!(credits.suffice(0, 1_000) && !credits.suffice(0, 1_001));
    }
}
