//! Scalars of one run: what summaries, verdicts and published figures need of it.

use crate::application::{ApplicationRecord, SliceApplications};
use crate::availability::Intervals;
use crate::growth::DelayGrowth;
use crate::loss_episodes::LossEpisodes;
use crate::projection::Projection;
use crate::queues::QueueRecord;
use crate::record::{Figures, IatFigures, SchedulerFigures, SentDelay, Transient};
use crate::tail::Tail;

/// The scalars of one slice in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceObservation {
    /// After the transient.
    pub steady: Figures,
    /// Over the whole run.
    pub whole: Figures,
    /// Rate at which the slice is served after the transient: received, counted by receive time less the smallest
    /// delay, bit/s.
    pub served_bits_per_second: f64,
    /// The percentile of delay that an objective names, of all frames sent; `None` where there is no such
    /// objective, no delay is known, or nothing was sent.
    pub delay_of_sent: Option<SentDelay>,
    /// After the transient: frames of a slice with a delay limit that were received later than that; `None` where there is no
    /// limit, or no delay is known.
    pub late_frames: Option<u64>,
    /// Of a capture, what it says of the time after it: of packets lost, and of packets lost or late.
    pub projected: [Option<Projection>; 2],
    /// How its delay changes in the course of the run; `None` where it is not known.
    pub delay_growth: Option<DelayGrowth>,
    /// The run is long enough for a steady state of the slice to be told, and it has none, as all slices together have none.
    pub is_unsettled: bool,
    /// True if its offered traffic depends on what it gets: a TCP flow was seen in the slice, or it was held back.
    pub reacts: bool,
    /// Paused hosts did not send all that was due.
    pub is_held_back: bool,
    /// Results of its applications; `None` where it has none.
    pub applications: Option<SliceApplications>,
    /// The percentile of the completion time of flows that an objective names, of all its sources together, ns.
    pub completion_time_ns: Option<u64>,
    /// The same of the latency of requests.
    pub request_latency_ns: Option<u64>,
    /// Intervals after the transient, and those in which all objectives of the slice are met; `None` where it states no
    /// availability, or sent nothing in any.
    pub intervals: Option<Intervals>,
    /// When it lost frames, over the whole run.
    pub loss_episodes: LossEpisodes,
    /// Each value of the distributions that declared figures draw, with the figure's place in the study.
    pub distributed: Vec<(usize, Vec<f64>)>,
    /// Inter-arrival times of the first source as sent; without their distribution where no figure needs it.
    pub iat: IatFigures,
    /// The same as received, where the run has them.
    pub received_iat: Option<IatFigures>,
    /// Figures from several moments on, where the run has them.
    pub tails: Vec<Tail>,
    /// Time in the device's scheduler, where the run has it.
    pub scheduler: Option<SchedulerFigures>,
}

/// The scalars of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunObservation {
    /// Repetition, from 0.
    pub repetition: u32,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The transient.
    pub transient: Transient,
    /// In the order of the study.
    pub slices: Vec<SliceObservation>,
    /// Results of sources with an application, without series.
    pub applications: Vec<ApplicationRecord>,
    /// Results of all sources of a slice together, of slices with several.
    pub pooled_applications: Vec<ApplicationRecord>,
    /// Lengths of queues.
    pub queues: Vec<QueueRecord>,
    /// All slices together, after the transient.
    pub aggregate: Figures,
    /// Reallocation opportunities and results.
    pub opportunity: Opportunity,
    /// It was captured with two clocks that disagree, and its delays are unknown.
    pub has_no_delays: bool,
    /// 99th percentile of the delay through the idle device before the run, ns: the resolution of a run
    /// on real packets. `None` if not measured.
    pub idle_delay_p99_ns: Option<u64>,
}

impl RunObservation {
    /// Results of all applications of a slice together; `None` where it has none.
    pub(crate) fn applications_of(&self, slice: &str) -> Option<&ApplicationRecord> {
        let mut all = self.pooled_applications.iter().chain(&self.applications);
        all.find(|of| of.slice == slice)
    }
}

/// Sums over the windows of one run in which there was something to reallocate.
///
/// A window is one whole load cycle. Within a cycle, a queue or the burst of a policer moves a
/// slice's own unused share from one phase to the next; that looks like more than its share for a
/// while, but it is not another slice's capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Opportunity {
    /// Windows in which best effort wanted more than its share and guaranteed slices left spare
    /// capacity.
    pub windows: u32,
    /// Their length, s.
    pub seconds: f64,
    /// Σ min(what guaranteed slices left, what best effort wanted beyond its share, what an ideal link
    /// would have carried of that, what the capacity has room for beyond it in best effort's frames),
    /// bytes of L2.
    pub available_bytes: f64,
    /// Σ what best effort received beyond its share, at most what was available in each window,
    /// bytes; 0 where it received less than its share over the run.
    pub taken_bytes: f64,
}

impl Opportunity {
    /// Both runs' windows together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            windows: self.windows.saturating_add(other.windows),
            seconds: self.seconds + other.seconds,
            available_bytes: self.available_bytes + other.available_bytes,
            taken_bytes: self.taken_bytes + other.taken_bytes,
        }
    }

    /// The reallocated fraction; `None` if there was nothing to reallocate.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        (self.available_bytes > 0.0).then(|| self.taken_bytes / self.available_bytes)
    }
}
