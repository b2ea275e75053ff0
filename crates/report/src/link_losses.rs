//! Frames that impaired links lost, in all runs.

use slicewise_stats::record::RunRecord;
use slicewise_stats::words::percent;
use std::collections::BTreeMap;

/// Frames that impaired links lost, apart from what policies dropped, and of how many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkLosses {
    sent_frames: u64,
    /// By link, then reason.
    lost: BTreeMap<(String, String), u64>,
}

impl LinkLosses {
    pub(crate) fn on_run(&mut self, record: &RunRecord) {
        let sent = record.slices.iter().map(|slice| slice.whole.sent_frames);
        self.sent_frames = sent.fold(self.sent_frames, u64::saturating_add);
        for loss in &record.link_losses {
            let key = (loss.link.clone(), loss.reason.clone());
            let frames = self.lost.entry(key).or_default();
            *frames = frames.saturating_add(loss.frames);
        }
    }

    /// Summarises the losses in a line; `None` where links lost nothing.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        if self.lost.is_empty() {
            return None;
        }
        let share = |frames: u64| percent(frames as f64 / self.sent_frames.max(1) as f64);
        let parts = self.lost.iter().map(|((link, reason), frames)| {
            let reason = reason.replace('_', " ");
            format!("{link} {} ({reason})", share(*frames))
        });
        let parts: Vec<String> = parts.collect();
        Some(format!(
            "Lost on impaired links, apart from what policies dropped: {} of all frames sent",
            parts.join(", ")
        ))
    }
}
