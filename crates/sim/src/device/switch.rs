//! A switch: ports of one rate, a few queues a port, and a buffer that the queues of a port share.
//!
//! How many queues a policy may use is checked with the study. `docs/devices/switch.md` states where each parameter comes
//! from.

use super::port::port;
use super::{Forwarding, Leaving};
use slicewise_dataplane::{BuildError, Frame, Pipeline, Verdict};
use slicewise_model::PolicyParams;
use slicewise_units::Instant;
use slicewise_wire::Headers;

/// An egress port of a switch.
#[derive(Debug)]
pub struct Switch {
    pipeline: Pipeline,
    buffer_packets: u32,
}

impl Switch {
    /// A port under `policy`, whose queues hold at most `buffer_packets` together; `None`: what their limits add up to.
    /// Its rate is that of the link that the topology connects to it.
    ///
    /// # Errors
    /// Where the data plane cannot hold the policy.
    pub fn new(
        policy: PolicyParams,
        buffer_packets: Option<u32>,
        seed: u64,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            pipeline: port(policy, seed)?,
            buffer_packets: buffer_packets.unwrap_or(u32::MAX),
        })
    }
}

impl Forwarding for Switch {
    #[inline]
    fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    /// A frame that is being sent has left the buffer.
    #[inline]
    fn on_classified(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
    ) -> Verdict {
        let has_room = self.pipeline.backlog() < self.buffer_packets;
        self.pipeline
            .on_classified_frame(frame, headers, class, now, has_room)
    }

    #[inline]
    fn poll_egress(&mut self, now: Instant) -> Option<Leaving> {
        Forwarding::poll_egress(&mut self.pipeline, now)
    }

    #[inline]
    fn has_dropped(&self) -> bool {
        self.pipeline.has_dropped()
    }

    #[inline]
    fn poll_dropped(&mut self) -> Option<Frame> {
        Forwarding::poll_dropped(&mut self.pipeline)
    }

    #[inline]
    fn poll_at(&self) -> Instant {
        Forwarding::poll_at(&self.pipeline)
    }
}
