//! Loss episodes: for how long a slice loses frames without a break, and how many.
//!
//! An episode is a longest sequence of bins of a run's time series in which frames were sent that never arrived. Its
//! length is known to one bin.

use crate::record::Series;

/// Bins in a row in which frames were sent that never arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossEpisode {
    /// Begin of the first bin, ns from the start of the run.
    pub begins_ns: u64,
    /// Length of all of them, ns.
    pub length_ns: u64,
    /// Frames sent in them.
    pub sent_frames: u64,
    /// Those that never arrived.
    pub lost_frames: u64,
}

/// The episodes of a series with bins of `bin_ns`, in order of time.
#[must_use]
pub fn loss_episodes(series: &Series, bin_ns: u64) -> Vec<LossEpisode> {
    let mut episodes: Vec<LossEpisode> = Vec::new();
    let mut is_within = false;
    let bins = series.sent_frames.iter().zip(&series.lost_frames);
    for (bin, (sent, lost)) in (0u64..).zip(bins) {
        let continues = std::mem::replace(&mut is_within, *lost > 0);
        if *lost == 0 {
            continue;
        }
        if !continues {
            episodes.push(LossEpisode {
                begins_ns: bin.saturating_mul(bin_ns),
                length_ns: 0,
                sent_frames: 0,
                lost_frames: 0,
            });
        }
        if let Some(episode) = episodes.last_mut() {
            episode.length_ns = episode.length_ns.saturating_add(bin_ns);
            episode.sent_frames = episode.sent_frames.saturating_add((*sent).into());
            episode.lost_frames = episode.lost_frames.saturating_add((*lost).into());
        }
    }
    episodes
}

/// All episodes of a run together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossEpisodes {
    /// How many.
    pub count: u64,
    /// Their lengths added, ns.
    pub length_ns: u64,
    /// Frames sent in them.
    pub sent_frames: u64,
    /// Those that never arrived.
    pub lost_frames: u64,
}

impl LossEpisodes {
    /// Of a series with bins of `bin_ns`.
    #[must_use]
    pub fn of(series: &Series, bin_ns: u64) -> Self {
        let episodes = loss_episodes(series, bin_ns);
        let mut all = Self::default();
        for episode in episodes {
            all.count += 1;
            all.length_ns = all.length_ns.saturating_add(episode.length_ns);
            all.sent_frames = all.sent_frames.saturating_add(episode.sent_frames);
            all.lost_frames = all.lost_frames.saturating_add(episode.lost_frames);
        }
        all
    }

    /// Their mean length, ns; `None` where there is none.
    #[must_use]
    pub fn mean_length_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.length_ns as f64 / self.count as f64)
    }

    /// Frames lost in an episode, on average; `None` where there is none.
    #[must_use]
    pub fn mean_lost_frames(&self) -> Option<f64> {
        (self.count > 0).then(|| self.lost_frames as f64 / self.count as f64)
    }

    /// Lost frames / sent frames in them; `None` where there is none.
    #[must_use]
    pub fn loss_ratio(&self) -> Option<f64> {
        (self.sent_frames > 0).then(|| self.lost_frames as f64 / self.sent_frames as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(bins: &[(u32, u32)]) -> Series {
        Series {
            sent_frames: bins.iter().map(|bin| bin.0).collect(),
            lost_frames: bins.iter().map(|bin| bin.1).collect(),
            ..Series::default()
        }
    }

    #[test]
    fn an_episode_ends_with_the_first_bin_without_loss() {
        let series = series(&[(5, 0), (5, 1), (7, 2), (5, 0), (5, 5)]);
        let episodes = loss_episodes(&series, 10);
        let of = |begins_ns, length_ns, sent_frames, lost_frames| LossEpisode {
            begins_ns,
            length_ns,
            sent_frames,
            lost_frames,
        };
        assert_eq!(episodes, [of(10, 20, 12, 3), of(40, 10, 5, 5)]);
        let all = LossEpisodes::of(&series, 10);
        assert_eq!(all.mean_length_ns(), Some(15.0));
        assert_eq!(all.mean_lost_frames(), Some(4.0));
        assert_eq!(all.loss_ratio(), Some(8.0 / 17.0));
    }

    #[test]
    fn without_loss_there_is_no_mean() {
        let all = LossEpisodes::of(&series(&[(5, 0)]), 10);
        let means = [
            all.mean_length_ns(),
            all.mean_lost_frames(),
            all.loss_ratio(),
        ];
        assert_eq!(means, [None; 3]);
    }

    proptest! {
        #[test]
        fn every_lost_frame_is_of_one_episode(bins in prop::collection::vec((1u32..9, 0u32..2), 0..60)) {
            let series = series(&bins);
            let episodes = loss_episodes(&series, 10);
            let lost: u64 = bins.iter().map(|bin| u64::from(bin.1)).sum();
            prop_assert_eq!(episodes.iter().map(|of| of.lost_frames).sum::<u64>(), lost);
            for pair in episodes.windows(2) {
                prop_assert!(pair[0].begins_ns + pair[0].length_ns < pair[1].begins_ns);
            }
        }
    }
}
