//! Objectives of slices.

use super::Checker;
use crate::file::At;
use crate::spec::ObjectiveSpec;
use slicewise_stats::objective::Objective;
use slicewise_units::BitRate;

impl Checker<'_> {
    /// The objectives of a slice whose share is `share`; zero where that is not known.
    pub(super) fn objective(
        &mut self,
        spec: Option<&At<ObjectiveSpec>>,
        share: BitRate,
    ) -> Option<Objective> {
        let At { value: spec, span } = spec?;
        let objective = Objective {
            delay: self.read(spec.delay.as_ref()),
            delay_variation: self.read(spec.delay_variation.as_ref()),
            loss_ratio: self.read(spec.loss.as_ref()).map(|part| part.0),
            throughput_bits_per_second: self
                .read(spec.throughput.as_ref())
                .map(BitRate::bits_per_second),
            availability: self.read(spec.availability.as_ref()).map(|part| part.0),
        };
        let is_written = spec.delay.is_some()
            || spec.delay_variation.is_some()
            || spec.loss.is_some()
            || spec.throughput.is_some();
        if !is_written {
            let message = if spec.availability.is_some() {
                "availability is the share of intervals in which the other objectives are met, but there are \
                 none"
            } else {
                "the objective is empty"
            };
            let help = "state at least one of `delay`, `delay_variation`, `loss` and `throughput`";
            self.problems
                .add_with_help(*span, message, Some(help.to_owned()));
        }
        if let (Some(text), Some(rate)) = (&spec.throughput, objective.throughput_bits_per_second)
            && share > BitRate::ZERO
            && rate > share.bits_per_second()
        {
            let message = format!(
                "an objective of {} is above the slice's share of {share}: it is not judged in scenarios where the \
                 slice sends more",
                BitRate::new(rate)
            );
            self.problems.add(text.span(), message);
        }
        Some(objective)
    }
}
