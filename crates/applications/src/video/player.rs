//! The playing of a stream: what there is to play, and when playing stopped for want of it.

use slicewise_units::{Duration, Instant};

/// Plays from the first segment on, and stops where there is nothing to play until the next segment.
#[derive(Debug, Clone, Default)]
pub struct Player {
    /// When playing began.
    pub began: Option<Instant>,
    /// When it went on last,
    resumed: Instant,
    /// and how much there was to play then, with what arrived since.
    ahead: Duration,
    /// Times without anything to play, that ended.
    stalls: Vec<(Instant, Instant)>,
}

impl Player {
    /// When there is nothing to play any more, if nothing arrives.
    fn dry(&self) -> Instant {
        self.resumed + self.ahead
    }

    /// Time to play.
    pub fn level(&self, now: Instant) -> Duration {
        self.dry().saturating_since(now)
    }

    /// When there is no more than `level` to play, if nothing arrives.
    pub fn down_to(&self, level: Duration) -> Instant {
        self.resumed + Duration::from_nanos(self.ahead.nanos().saturating_sub(level.nanos()))
    }

    /// A segment of this length arrived.
    pub fn on_segment(&mut self, length: Duration, now: Instant) {
        let dry = self.dry();
        if self.began.is_none() {
            self.began = Some(now);
            self.resumed = now;
        } else if dry < now {
            self.stalls.push((dry, now));
            self.resumed = now;
            self.ahead = Duration::ZERO;
        }
        self.ahead = self.ahead + length;
    }

    /// Stalls in order, with that which has not ended, if any.
    fn all_stalls(&self) -> impl Iterator<Item = (Instant, Instant)> + '_ {
        let last = self.began.map(|_| (self.dry(), Instant::MAX));
        self.stalls.iter().copied().chain(last)
    }

    /// Stalls that began in [`from`, `to`).
    pub fn stalls(&self, from: Instant, to: Instant) -> u64 {
        let begun = self.all_stalls();
        begun
            .filter(|(begin, _)| (from..to).contains(begin))
            .count() as u64
    }

    /// Time in [`from`, `to`) without anything to play since playing began, and time since then.
    pub fn stalled(&self, from: Instant, to: Instant) -> (Duration, Duration) {
        let Some(began) = self.began else {
            return (Duration::ZERO, Duration::ZERO);
        };
        let within =
            |(begin, end): (Instant, Instant)| end.min(to).saturating_since(begin.max(from));
        let stalled = self.all_stalls().map(within);
        (
            stalled.fold(Duration::ZERO, |sum, stall| sum + stall),
            within((began, Instant::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Segments of 4 s at 2 s, 3 s and 14 s: dry from 10 s to 14 s, and from 18 s on.
    fn played() -> Player {
        let mut player = Player::default();
        for arrival in [2, 3, 14] {
            player.on_segment(seconds(4), at(arrival));
        }
        player
    }

    #[test]
    fn what_arrives_is_played_from_the_first_segment_on() {
        let mut player = Player::default();
        assert_eq!(player.level(at(1)), Duration::ZERO);
        player.on_segment(seconds(4), at(2));
        assert_eq!(player.began, Some(at(2)));
        assert_eq!(player.level(at(3)), seconds(3));
        player.on_segment(seconds(4), at(3));
        assert_eq!(player.level(at(3)), seconds(7));
        assert_eq!(player.down_to(seconds(5)), at(5));
        assert_eq!(player.down_to(Duration::ZERO), at(10));
    }

    #[test]
    fn a_stall_is_from_the_last_frame_to_the_next_segment() {
        let player = played();
        assert_eq!(player.stalls(at(0), at(18)), 1);
        assert_eq!(player.stalls(at(11), at(18)), 0, "it began before");
        assert_eq!(player.stalls(at(0), at(19)), 2, "the second has not ended");
        assert_eq!(player.stalled(at(0), at(20)), (seconds(6), seconds(18)));
        assert_eq!(player.stalled(at(12), at(13)), (seconds(1), seconds(1)));
        assert_eq!(player.level(at(15)), seconds(3));
    }

    #[test]
    fn before_the_first_segment_playing_is_not_stopped() {
        let player = Player::default();
        assert_eq!(player.stalls(at(0), at(9)), 0);
        assert_eq!(player.stalled(at(0), at(9)), (seconds(0), seconds(0)));
    }

    #[test]
    fn a_segment_at_the_last_moment_prevents_the_stall() {
        let mut player = Player::default();
        player.on_segment(seconds(4), at(0));
        player.on_segment(seconds(4), at(4));
        assert_eq!(player.stalls(at(0), at(8)), 0);
    }
}
