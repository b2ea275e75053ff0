//! Results of the clients of a video.

use super::{Video, VideoClient};
use slicewise_stats::application::VideoFigures;
use slicewise_units::{Duration, Instant};

/// Sums over the segments that a client got in a span.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    segments: u64,
    quality: f64,
    bit_rate: f64,
    switches: u64,
}

impl Video {
    /// Over [`from`, `to`). Clients play until the source stops.
    pub(super) fn video_figures(&self, from: Instant, to: Instant) -> VideoFigures {
        let end = to.min(self.stop);
        let sums: Vec<Sums> = self
            .clients
            .iter()
            .map(|c| self.sums(c, from, to))
            .collect();
        let segments: u64 = sums.iter().map(|sum| sum.segments).sum();
        let mean = |of: fn(&Sums) -> f64| ratio(sums.iter().map(of).sum(), segments as f64);
        let each = sums.iter().filter(|sum| sum.segments > 0);
        let least = each.map(|sum| sum.quality / sum.segments as f64);
        let present = self.clients.iter().filter_map(|c| c.first_asked);
        let present: f64 = present
            .map(|asked| end.saturating_since(asked.max(from)).as_secs_f64() / 60.0)
            .sum();
        let switches: u64 = sums.iter().map(|sum| sum.switches).sum();
        let (stalls, stalled_ratio) = self.stalls(from, end);
        VideoFigures {
            clients: self.clients.len() as u64,
            segments,
            quality_mean: mean(|sum| sum.quality),
            quality_least: least.reduce(f64::min),
            bit_rate_mean: mean(|sum| sum.bit_rate),
            switches_per_minute: ratio(switches as f64, present),
            start_up_mean_ns: self.start_up_mean_ns(from, to),
            stalls,
            stalled_ratio,
        }
    }

    fn sums(&self, client: &VideoClient, from: Instant, to: Instant) -> Sums {
        let mut sums = Sums::default();
        let mut before = None;
        for segment in &client.segments {
            if (from..to).contains(&segment.arrived) {
                sums.segments += 1;
                sums.quality += segment.quality as f64;
                sums.bit_rate += self.terms.ladder.bit_rate(segment.quality);
                sums.switches += u64::from(before.is_some_and(|q| q != segment.quality));
            }
            before = Some(segment.quality);
        }
        sums
    }

    fn start_up_mean_ns(&self, from: Instant, to: Instant) -> Option<f64> {
        let begun = self.clients.iter().filter_map(|client| {
            let began = client.player.began?;
            let took = began.saturating_since(client.first_asked?);
            (from..to).contains(&began).then(|| took.nanos() as f64)
        });
        let (sum, count) = begun.fold((0.0, 0.0), |(sum, count), ns| (sum + ns, count + 1.0));
        ratio(sum, count)
    }

    fn stalls(&self, from: Instant, end: Instant) -> (u64, Option<f64>) {
        let players = || self.clients.iter().map(|client| &client.player);
        let stalls = players().map(|player| player.stalls(from, end)).sum();
        let spans = players().map(|player| player.stalled(from, end));
        let none = (Duration::ZERO, Duration::ZERO);
        let (stalled, played) = spans.fold(none, |sum, span| (sum.0 + span.0, sum.1 + span.1));
        (stalls, ratio(stalled.as_secs_f64(), played.as_secs_f64()))
    }
}

/// `None` where there is nothing to divide by.
fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}
