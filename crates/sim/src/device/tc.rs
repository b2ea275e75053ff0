//! Linux traffic control: the disciplines of a policy below a token bucket filter that stands for the link.
//!
//! The bucket asks the disciplines for their next frame as soon as the last one has left, holds it until there are
//! tokens for it, and does not exchange it for a frame of higher priority that arrives meanwhile (`tbf_dequeue` in
//! `net/sched/sch_tbf.c`, which looks at the next frame by `qdisc_peek_dequeued`). So a frame may wait for one
//! frame more than on a link. A frame that is held has left its queue, except where there is nothing but one queue
//! below the bucket: a FIFO lets others look at its next frame (`qdisc_peek_head`) and goes on holding it.
//!
//! The kernel knows one length of a packet, that which the link counts (`stab`), so all rates count it.

use super::port::port;
use super::{Forwarding, Leaving};
use slicewise_dataplane::{BuildError, Frame, Pipeline, TokenBucket, Verdict};
use slicewise_model::{ClassParams, PolicyParams, Rate};
use slicewise_units::{ByteCount, Credit, Instant};
use slicewise_wire::Headers;

/// An egress interface under traffic control.
#[derive(Debug)]
pub struct Tc {
    pipeline: Pipeline,
    bucket: TokenBucket,
    /// The frame taken from the disciplines, and the tokens that it costs.
    held: Option<(Frame, Credit)>,
}

impl Tc {
    /// The disciplines of `policy` below a bucket of `link`, `burst` deep and full at the start.
    ///
    /// # Errors
    /// Where the data plane cannot hold the policy.
    pub fn new(
        policy: PolicyParams,
        link: Rate,
        burst: ByteCount,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let mut policy = policy.counted_as(link.accounting);
        if let Some(queue) = one_fifo(&mut policy) {
            // The frame that is held here is one of those that the kernel's queue holds.
            let packets = &mut queue.queue.limit.packets;
            *packets = packets.saturating_sub(1).max(1);
        }
        Ok(Self {
            pipeline: port(policy, seed)?,
            bucket: TokenBucket::full(link, burst, Instant::ZERO),
            held: None,
        })
    }

    fn take_ahead(&mut self, now: Instant) {
        if self.held.is_none() {
            let frame = self.pipeline.poll_egress(now);
            self.held = frame.map(|frame| {
                // The kernel would drop a frame longer than the bucket is deep; no study has one.
                let cost = self.bucket.cost(frame.lengths).min(self.bucket.burst());
                (frame, cost)
            });
        }
    }
}

impl Forwarding for Tc {
    #[inline]
    fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    fn pipeline_mut(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    fn on_classified(
        &mut self,
        frame: Frame,
        headers: &Headers,
        class: u32,
        now: Instant,
    ) -> Verdict {
        let verdict = self.pipeline.on_classified(frame, headers, class, now);
        self.take_ahead(now);
        verdict
    }

    fn poll_egress(&mut self, now: Instant) -> Option<Leaving> {
        self.take_ahead(now);
        let (frame, cost) = self.held?;
        if self.bucket.refill(now) < cost {
            return None;
        }
        self.bucket.spend(cost);
        self.held = None;
        self.take_ahead(now);
        Some(frame.into())
    }

    fn has_dropped(&self) -> bool {
        self.pipeline.has_dropped()
    }

    fn poll_dropped(&mut self) -> Option<Frame> {
        Forwarding::poll_dropped(&mut self.pipeline)
    }

    fn poll_at(&self) -> Instant {
        match self.held {
            Some((_, cost)) => self.bucket.ready_at(cost).unwrap_or(Instant::MAX),
            None => Forwarding::poll_at(&self.pipeline),
        }
    }
}

/// The queue that there is in place of a scheduler below the link, if it drops what it has no room for.
fn one_fifo(policy: &mut PolicyParams) -> Option<&mut ClassParams> {
    let is_one_queue = policy.is_one_queue();
    let queue = policy.classes.last_mut().filter(|_| is_one_queue)?;
    if queue.child.is_some() {
        return one_fifo(queue.child.as_mut()?);
    }
    queue.queue.is_tail_drop().then_some(queue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_model::{
        Action, ClassMap, ClassSpec, Condition, Discipline, MatchMode, PolicerSpec, PolicySpec,
        RateSpec,
    };
    use slicewise_units::BitRate;

    const LINK: BitRate = BitRate::new(10_000_000);

    fn policy(classes: Vec<ClassSpec>) -> PolicySpec {
        PolicySpec {
            name: "test".to_owned(),
            classes,
            discipline: Discipline::default(),
            guaranteed: None,
            queues: Vec::new(),
        }
    }

    fn class() -> ClassSpec {
        ClassSpec::new(ClassMap {
            name: "some".to_owned(),
            mode: MatchMode::Any,
            conditions: vec![Condition::OuterVlan(1..=1)],
        })
    }

    /// As what is exported: neither a class with a policer that passes everything nor one with a child policy has a scheduler.
    #[test]
    fn where_there_is_one_queue_it_is_found() {
        let is_one = |spec: PolicySpec| one_fifo(&mut spec.resolve(LINK).unwrap()).is_some();
        let pass = Some(Action::Transmit);
        let mut with_policer = class();
        with_policer.police = Some(PolicerSpec {
            exceed: pass.clone(),
            violate: pass,
            ..PolicerSpec::new(RateSpec::Absolute(BitRate::new(8_000)))
        });
        let of_class = policy(vec![with_policer]).resolve(LINK).unwrap();
        let mut policed = policy(vec![]).resolve(LINK).unwrap();
        policed.classes[0].police = of_class.classes[0].police.clone();
        assert!(one_fifo(&mut policed).is_some());
        let mut nested = policy(vec![]).resolve(LINK).unwrap();
        nested.classes[0].child = Some(Box::new(policed));
        assert!(one_fifo(&mut nested).is_some());
        assert!(is_one(policy(vec![])) && !is_one(policy(vec![class()])));
    }
}
