//! Policers: which meter the settings select, and its defaults.

use super::{ClassResolver, PolicyError};
use crate::class_map::MAX_DSCP;
use crate::rate::largest_frame;
use crate::{Action, BurstSpec, MeterAlgorithm, PolicerParams, PolicerSpec, Rate};
use slicewise_units::{Duration, FrameLengths};

/// Time at the rate that a policer's burst covers by default (IOS: CIR / 32 bytes).
const POLICER_BURST: Duration = Duration::from_millis(250);
/// The shortest frame with an IP packet in it, before Ethernet pads it.
const SHORTEST: FrameLengths = FrameLengths {
    l2_bytes: 14 + 20,
    l3_offset: 14,
};

impl ClassResolver<'_> {
    pub(super) fn policer(&self, spec: &PolicerSpec) -> Result<PolicerParams, PolicyError> {
        let algorithm = self.meter(spec)?;
        let exceed = spec.exceed.clone().unwrap_or(Action::Drop);
        let violate = spec.violate.clone().unwrap_or_else(|| exceed.clone());
        let conform = spec.conform.clone().unwrap_or(Action::Transmit);
        for action in [&conform, &exceed, &violate] {
            if matches!(action, Action::SetDscp(dscp) if *dscp > MAX_DSCP) {
                return Err(self.error(
                    "police",
                    format!("sets a code point above {MAX_DSCP}, the largest"),
                ));
            }
        }
        if spec.refill_interval == Some(Duration::ZERO) {
            return Err(self.error(
                "police.refill_interval",
                "is 0: leave it out where the buckets are replenished continuously",
            ));
        }
        Ok(PolicerParams {
            algorithm,
            mode: spec.mode,
            refill_interval: spec.refill_interval,
            conform,
            exceed,
            violate,
        })
    }

    /// Which marker the rates and bursts of a policer select.
    fn meter(&self, spec: &PolicerSpec) -> Result<MeterAlgorithm, PolicyError> {
        let refused = |problem: &str| self.error("police", problem);
        if spec.pir.is_some() && spec.eir.is_some() {
            return Err(refused(
                "has both `pir` (RFC 2698) and `eir` (RFC 4115): keep one",
            ));
        }
        if spec.pir.is_some() && spec.ebs.is_some() {
            return Err(refused(
                "has both `pir` and an excess burst: a two-rate meter uses `pbs`",
            ));
        }
        if spec.pir.is_none() && spec.pbs.is_some() {
            return Err(refused(
                "has a peak burst without a peak rate: set `pir`, or use `ebs`",
            ));
        }
        let rate = |r| {
            self.rate(r, "police").map(|rate| Rate {
                rate,
                accounting: spec.accounting,
            })
        };
        let mut actions = spec.actions().into_iter().filter_map(|(_, action)| action);
        let chooses_queue = actions.any(|action| action.queue().is_some());
        let burst_of = |burst: Option<BurstSpec>, rate: Rate| {
            let size = burst
                .unwrap_or(BurstSpec::Time(POLICER_BURST))
                .size(rate.rate);
            let least = spec.accounting.count(SHORTEST);
            if size < least {
                return Err(self.error(
                    "police",
                    format!(
                        "has a burst of {size}: no packet would ever conform, because the \
                         shortest counts {least} as {}",
                        spec.accounting
                    ),
                ));
            }
            let largest = largest_frame(spec.accounting);
            if chooses_queue && size < largest {
                return Err(self.error(
                    "police",
                    format!(
                        "has a burst of {size}, less than one largest frame ({largest}): such \
                         frames would never reach the queue of their colour"
                    ),
                ));
            }
            Ok(size)
        };
        let cir = rate(spec.cir)?;
        let cbs = burst_of(spec.cbs, cir)?;
        Ok(match (spec.pir, spec.eir) {
            (Some(pir), _) => {
                let pir = rate(pir)?;
                if pir.rate < cir.rate {
                    return Err(self.error(
                        "police",
                        format!(
                            "peak rate {} is below the committed rate {}",
                            pir.rate, cir.rate
                        ),
                    ));
                }
                let pbs = burst_of(spec.pbs, pir)?;
                MeterAlgorithm::TwoRateThreeColour { cir, cbs, pir, pbs }
            }
            (None, Some(eir)) => {
                let eir = rate(eir)?;
                let ebs = burst_of(spec.ebs, eir)?;
                MeterAlgorithm::TwoRateThreeColourEfficient { cir, cbs, eir, ebs }
            }
            (None, None) => {
                // An excess burst of zero means none in RFC 2697. An action beyond the excess burst
                // implies one: as large as the committed burst (IOS).
                let ebs = spec.ebs.map(|ebs| ebs.size(cir.rate));
                match ebs.or(spec.violate.as_ref().map(|_| cbs)) {
                    Some(ebs) => MeterAlgorithm::SingleRateThreeColour { cir, cbs, ebs },
                    None => MeterAlgorithm::SingleRateTwoColour { cir, cbs },
                }
            }
        })
    }
}
