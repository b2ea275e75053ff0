//! Policers: what the kernel's policer, one bucket and one action beyond it, can stand for.

use slicewise_model::{Action, ColourMode, MeterAlgorithm, PolicerParams, Rate};
use slicewise_units::ByteCount;

/// Effect of a policer where packets only pass or are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Police {
    /// Everything passes.
    Nothing,
    /// Whatever exceeds one token bucket is dropped.
    Bucket(Rate, ByteCount),
}

/// The one bucket that `params` drops by.
pub(super) fn police(params: &PolicerParams) -> Result<Police, String> {
    if params.passes_all() {
        return Ok(Police::Nothing);
    }
    let actions = [&params.conform, &params.exceed, &params.violate];
    for action in actions {
        match action {
            Action::Transmit | Action::Drop => {}
            Action::SetDscp(dscp) => {
                return Err(format!(
                    "sets DSCP {dscp} on some packets: act_police passes or drops, and has no other \
                     action for what exceeds; choose `transmit` or `drop`"
                ));
            }
            Action::SetQosGroup(group) => {
                return Err(format!(
                    "sets QoS group {group}: packets in the kernel have none; choose `transmit` or `drop`"
                ));
            }
            Action::Queue(queue) => {
                return Err(format!(
                    "chooses the queue `{queue}`: act_police passes or drops, and chooses no queue; choose `transmit` or `drop`"
                ));
            }
        }
    }
    if let Some(interval) = params.refill_interval {
        return Err(format!(
            "is replenished every {interval} only: act_police replenishes its bucket continuously; leave the interval out"
        ));
    }
    if params.mode == ColourMode::Aware {
        return Err(
            "is colour-aware: packets in the kernel have no colour; make it colour-blind"
                .to_owned(),
        );
    }
    let passes = actions.map(|action| *action == Action::Transmit);
    let two_buckets = |why: &str| {
        Err(format!(
            "{why}: act_police has one bucket; drop or pass both what exceeds and what violates"
        ))
    };
    match (params.algorithm, passes) {
        (_, [false, ..]) => Err("drops what conforms: act_police drops only what exceeds; let it pass".to_owned()),
        // With two colours there is no yellow.
        (MeterAlgorithm::SingleRateTwoColour { cir, cbs }, [_, _, false])
        // Green spends from the committed bucket alone.
        | (
            MeterAlgorithm::SingleRateThreeColour { cir, cbs, .. }
            | MeterAlgorithm::TwoRateThreeColourEfficient { cir, cbs, .. },
            [_, false, false],
        ) => Ok(Police::Bucket(cir, cbs)),
        (MeterAlgorithm::SingleRateTwoColour { .. }, _) => Ok(Police::Nothing),
        // Green and yellow both spend from the peak bucket; red is what that does not hold.
        (MeterAlgorithm::TwoRateThreeColour { pir, pbs, .. }, [_, true, false]) => {
            Ok(Police::Bucket(pir, pbs))
        }
        (MeterAlgorithm::TwoRateThreeColour { .. }, _) => two_buckets(
            "drops what exceeds the committed rate, and charges it to the peak bucket all the same",
        ),
        (MeterAlgorithm::SingleRateThreeColour { cir, cbs, ebs }, _) if ebs == ByteCount::ZERO => {
            Ok(Police::Bucket(cir, cbs))
        }
        (MeterAlgorithm::SingleRateThreeColour { .. }, _) => {
            two_buckets("passes what either the committed or the excess bucket holds (RFC 2697)")
        }
        (MeterAlgorithm::TwoRateThreeColourEfficient { .. }, _) => {
            two_buckets("passes what either of two buckets with rates of their own holds (RFC 4115)")
        }
    }
}
