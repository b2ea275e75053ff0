//! Figures of a slice from a moment of its run to the end, for two runs whose transients differ.

pub use crate::record::DelayFrom;
use crate::record::{DelayFigures, Figures, SliceRecord};

/// Figures from a moment on: rate received, loss ratio and median delay; all else is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// The moment, from the start of the run, ns.
    pub from_ns: u64,
    /// The figures.
    pub figures: Figures,
}

/// Figures from each moment of which a record has the median delay.
pub(crate) fn of_slice(record: &SliceRecord, bin_ns: u64) -> Vec<Tail> {
    let tail = |delay: &DelayFrom| {
        let from = usize::try_from(delay.from_ns / bin_ns.max(1)).unwrap_or(usize::MAX);
        let series = &record.series;
        let bins = series.received_bytes.len().saturating_sub(from) as u64;
        let received: u64 = series.received_bytes.iter().skip(from).sum();
        let frames = |of: &[u32]| of.iter().skip(from).map(|&n| u64::from(n)).sum::<u64>();
        let (sent, lost) = (frames(&series.sent_frames), frames(&series.lost_frames));
        let ratio = |sent: u64| lost as f64 / sent as f64;
        Tail {
            from_ns: delay.from_ns,
            figures: Figures {
                sent_frames: sent,
                throughput_bits_per_second: received as f64 * 8e9 / (bins * bin_ns).max(1) as f64,
                loss_ratio: if sent > 0 { ratio(sent) } else { 0.0 },
                delay: DelayFigures {
                    samples: u64::from(delay.p50_ns.is_some()),
                    p50_ns: delay.p50_ns.unwrap_or(0),
                    ..DelayFigures::default()
                },
                ..Figures::default()
            },
        }
    };
    record.delay_from.iter().map(tail).collect()
}
