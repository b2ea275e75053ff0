//! Slices as meters: the data plane of P4-TINS (Chen et al. 2022).
//!
//! A slice has a guaranteed rate (CIR) and a maximum rate (PIR). Its green frames wait in a queue of strict priority, its yellow ones in one of
//! the queues that share the rest by deficit round robin, and its red ones are dropped. The policy has the queues, and classes for frames of no
//! slice; slices are tested before these.

use crate::policy::{ClassParams, Discipline, PolicyParams};
use crate::{Action, ClassMap, ColourMode, MeterAlgorithm, NamedQueueParams, PolicerParams, Rate};
use slicewise_units::{BitRate, ByteCount};

/// Queue of green frames, with strict priority.
pub const HIGH_QUEUE: &str = "high";
/// Queue of UDP: yellow frames of slices, and frames of no slice.
pub const UDP_QUEUE: &str = "udp";
/// Queue of yellow frames of slices that may be other than UDP.
pub const SLICED_TCP_QUEUE: &str = "sliced-tcp";

/// Rates and bursts of a slice, S(c, p).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeteredParams {
    /// Guaranteed rate (CIR).
    pub cir: Rate,
    /// Its burst (CBS).
    pub cbs: ByteCount,
    /// Maximum rate (PIR), at least the guaranteed one.
    pub pir: Rate,
    /// Its burst (PBS).
    pub pbs: ByteCount,
    /// All its frames are UDP.
    pub is_udp: bool,
}

impl MeteredParams {
    fn policer(self) -> PolicerParams {
        let Self {
            cir,
            cbs,
            pir,
            pbs,
            is_udp,
        } = self;
        let yellow = if is_udp { UDP_QUEUE } else { SLICED_TCP_QUEUE };
        PolicerParams {
            algorithm: MeterAlgorithm::TwoRateThreeColour { cir, cbs, pir, pbs },
            mode: ColourMode::Blind,
            refill_interval: None,
            conform: Action::Transmit,
            exceed: Action::Queue(yellow.to_owned()),
            violate: Action::Drop,
        }
    }
}

impl PolicyParams {
    /// Checks that slices can be metered in this policy.
    ///
    /// # Errors
    /// The part that is missing, and the one expected.
    pub fn check_metered(&self) -> Result<(), String> {
        if self.discipline != Discipline::DeficitRoundRobin {
            return Err("its discipline is not `deficit_round_robin`".to_owned());
        }
        for (name, has_priority) in [
            (HIGH_QUEUE, true),
            (UDP_QUEUE, false),
            (SLICED_TCP_QUEUE, false),
        ] {
            let queue = self.queues.iter().find(|queue| queue.name == name);
            if queue.is_none_or(|queue| queue.priority.is_some() != has_priority) {
                let with = if has_priority { "with" } else { "without" };
                return Err(format!("it has no queue `{name}` {with} a priority"));
            }
        }
        let (own, others) = self.classes.split_at(self.own_classes());
        let unlimited = |class: &&ClassParams| class.priority.is_none_or(|it| it.police.is_none());
        if let Some(class) = own.iter().find(unlimited) {
            return Err(format!(
                "class `{}` neither waits in one of its queues, nor has a priority with a rate",
                class.name
            ));
        }
        let is_low = |queue: &NamedQueueParams| queue.priority.is_none();
        for class in others {
            let mut queues = self.queues.iter().filter(|queue| is_low(queue));
            if class.police.is_some()
                || queues.all(|queue| class.named_queue.as_ref() != Some(&queue.name))
            {
                return Err(format!(
                    "class `{}` does not wait in a queue without a priority, or has a meter of its own",
                    class.name
                ));
            }
        }
        Ok(())
    }

    /// Number of the first classes, which keep a rate with priority and come before slices.
    fn own_classes(&self) -> usize {
        let classes = self.classes.iter();
        classes
            .take_while(|class| class.named_queue.is_none())
            .count()
    }

    /// Rates and bursts that its classes before the slices have with priority.
    pub fn committed_before_slices(&self) -> impl Iterator<Item = (Rate, ByteCount)> {
        let own = self.classes.iter().take(self.own_classes());
        own.filter_map(|class| class.priority?.police)
    }

    /// Returns the part of a link's rate that slices can be guaranteed.
    #[must_use]
    pub fn free_for_slices(&self, link: BitRate) -> BitRate {
        let own = self.committed_before_slices();
        let own = own.map(|(rate, _)| rate.rate.bits_per_second());
        let own = own.fold(0, u64::saturating_add);
        BitRate::new(link.bits_per_second().saturating_sub(own))
    }

    /// Returns a slice of these frames as a class. The policy [can have it](Self::check_metered).
    #[must_use]
    pub fn metered_class(&self, matches: ClassMap, params: MeteredParams) -> ClassParams {
        // The settings of a queue are those of the named queue, so the last class has the defaults for all of them.
        let mut class = self.classes[self.classes.len() - 1].clone();
        class.name.clone_from(&matches.name);
        class.matches = Some(matches);
        class.police = Some(params.policer());
        class.named_queue = Some(HIGH_QUEUE.to_owned());
        class.elephants = None;
        class.set_dscp = None;
        class
    }

    /// The policy with slices, in this order.
    #[must_use]
    pub fn with_metered(&self, slices: &[ClassParams]) -> Self {
        let mut policy = self.clone();
        let at = self.own_classes();
        policy.classes.splice(at..at, slices.iter().cloned());
        policy
    }
}
