//! Congestion control: how the window of a sender grows and what it becomes when the path is congested. One file for each.

pub(crate) mod bbr;
mod cubic;
mod dctcp;
mod hystart;
mod new_reno;
mod prague;

use crate::behaviour::Behaviour;
use bbr::Bbr;
use cubic::Cubic;
use dctcp::Dctcp;
use prague::Prague;
use slicewise_traffic::transport::CongestionControl;
use slicewise_units::{Duration, Instant};

/// The congestion window, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) bytes: u64,
    /// Below it, slow start.
    pub(crate) ssthresh: u64,
    pub(crate) mss: u64,
}

impl Window {
    pub(crate) const fn is_slow_start(&self) -> bool {
        self.bytes < self.ssthresh
    }
}

/// Input of congestion control from an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Acknowledged {
    /// Bytes newly acknowledged.
    pub(crate) bytes: u64,
    /// The first position not acknowledged.
    pub(crate) una: u64,
    /// The next position to send.
    pub(crate) next: u64,
    /// Round trip of the last byte acknowledged, if it was measured.
    pub(crate) rtt: Option<Duration>,
    pub(crate) smoothed: Duration,
    /// The receiver has echoed congestion (ECE).
    pub(crate) is_marked: bool,
    /// The window is what limits the sender.
    pub(crate) is_limited: bool,
    pub(crate) now: Instant,
}

/// Why a window is reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Segments were lost.
    Loss,
    /// Queues mark (ECN).
    Mark,
}

/// The algorithm of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Congestion {
    NewReno(new_reno::NewReno),
    Cubic(Box<Cubic>),
    Dctcp(Dctcp),
    Bbr(Box<Bbr>),
    Prague(Prague),
}

impl Congestion {
    pub(crate) fn new(behaviour: &Behaviour) -> Self {
        match behaviour.congestion {
            CongestionControl::NewReno => Self::NewReno(new_reno::NewReno::default()),
            CongestionControl::Cubic => Self::Cubic(Box::new(Cubic::new(behaviour))),
            CongestionControl::Dctcp => Self::Dctcp(Dctcp::default()),
            CongestionControl::Bbr => {
                let (mss, window) = (behaviour.mss_bytes.into(), behaviour.initial_window_bytes);
                Self::Bbr(Box::new(Bbr::new(mss, window)))
            }
            CongestionControl::Prague => Self::Prague(Prague::default()),
        }
    }

    /// Data was acknowledged, and the sender is not recovering from loss: the window may grow.
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Acknowledged) {
        match self {
            Self::NewReno(reno) => reno.on_ack(window, ack),
            Self::Cubic(cubic) => cubic.on_ack(window, ack),
            Self::Dctcp(dctcp) => dctcp.on_ack(window, ack),
            Self::Bbr(_) => {}
            Self::Prague(prague) => prague.on_ack(window, ack),
        }
    }

    /// The model of the path, where the window follows from one and not from what is acknowledged.
    pub(crate) fn model(&mut self) -> Option<&mut Bbr> {
        match self {
            Self::Bbr(bbr) => Some(bbr),
            Self::NewReno(_) | Self::Cubic(_) | Self::Dctcp(_) | Self::Prague(_) => None,
        }
    }

    pub(crate) const fn has_model(&self) -> bool {
        matches!(self, Self::Bbr(_))
    }

    /// Bytes a second at which data is to be paced, where the algorithm says so.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        match self {
            Self::Bbr(bbr) => bbr.pacing_rate,
            Self::NewReno(_) | Self::Cubic(_) | Self::Dctcp(_) | Self::Prague(_) => None,
        }
    }

    /// Data was acknowledged, in whatever state: what is counted a round trip.
    pub(crate) fn on_round(&mut self, ack: &Acknowledged) {
        match self {
            Self::Dctcp(dctcp) => dctcp.on_round(ack),
            Self::Prague(prague) => prague.on_round(ack),
            Self::NewReno(_) | Self::Cubic(_) | Self::Bbr(_) => {}
        }
    }

    /// The path is congested: the new threshold.
    pub(crate) fn on_congestion(&mut self, window: &Window, outstanding: u64, cause: Cause) -> u64 {
        self.on_reduced();
        let threshold = match self {
            Self::NewReno(_) | Self::Prague(_) => outstanding / 2,
            Self::Cubic(cubic) => cubic.on_congestion(window),
            Self::Dctcp(dctcp) => dctcp.on_congestion(window, outstanding, cause),
            Self::Bbr(bbr) => {
                bbr.save_window(window.bytes);
                window.bytes
            }
        };
        // RFC 5681, equation 4.
        threshold.max(2 * window.mss)
    }

    /// A time-out: growth begins anew.
    pub(crate) fn on_timeout(&mut self) {
        self.on_reduced();
        if let Self::Cubic(cubic) = self {
            cubic.on_timeout();
        }
    }

    /// The window was reduced, for whatever reason: what the larger one was acknowledged does not count for it.
    pub(crate) const fn on_reduced(&mut self) {
        match self {
            Self::NewReno(growth) | Self::Dctcp(Dctcp { growth, .. }) => growth.begin_anew(),
            Self::Cubic(_) | Self::Bbr(_) | Self::Prague(_) => {}
        }
    }

    /// Restores the state before a reduction that was a mistake.
    pub(crate) fn on_undo(&mut self) {
        match self {
            Self::Cubic(cubic) => cubic.on_undo(),
            Self::Bbr(bbr) => bbr.on_undo(),
            Self::NewReno(_) | Self::Dctcp(_) | Self::Prague(_) => {}
        }
    }

    /// The sender had nothing to send for so long.
    pub(crate) fn on_idle(&mut self, idle: Duration) {
        if let Self::Cubic(cubic) = self {
            cubic.on_idle(idle);
        }
    }
}

#[cfg(test)]
mod tests;
