//! Impairments of links.

use super::Checker;
use crate::file::At;
use crate::impairments::{
    DelayDistribution, DelayVariationParams, ImpairmentParams, LinkImpairments, LossParams,
};
use crate::spec::{
    BurstLossSpec, DelayVariationSpec, ImpairmentSpec, ImpairmentsSpec, PartsPerMillion, Scalar,
    Short, StudySpec, Text,
};
use slicewise_units::Duration;

/// The whole.
const ALL: PartsPerMillion = PartsPerMillion(1_000_000);

impl Checker<'_> {
    pub(super) fn impairments(&mut self, spec: Option<&ImpairmentsSpec>) -> LinkImpairments {
        let Some(spec) = spec else {
            return LinkImpairments::default();
        };
        LinkImpairments {
            ingress: self.impairment(spec.ingress.as_ref()),
            egress: self.impairment(spec.egress.as_ref()),
        }
    }

    /// Delay varies by less than the run takes.
    pub(super) fn check_variation(&mut self, spec: &StudySpec, duration: Duration) {
        let link = spec.link.as_ref().map(|link| &link.value);
        let Some(spec) = link.and_then(|link| link.impairments.as_ref()) else {
            return;
        };
        for At { value: spec, .. } in [&spec.ingress, &spec.egress].into_iter().flatten() {
            let text = match spec.delay_variation.as_ref().map(|at| &at.value) {
                Some(Short::Value(text)) => Some(text),
                Some(Short::Settings(settings)) => settings.up_to.as_ref(),
                None => None,
            };
            // What cannot be read is reported already.
            if let Some(text) = text
                && Duration::from_text(text.text()).is_ok_and(|up_to| up_to >= duration)
            {
                let message = format!("this is not shorter than the run, which takes {duration}");
                let help = "choose a shorter time, or a longer `duration`".to_owned();
                self.problems
                    .add_with_help(text.span(), message, Some(help));
            }
        }
    }

    fn impairment(&mut self, spec: Option<&At<ImpairmentSpec>>) -> ImpairmentParams {
        let Some(At { value: spec, .. }) = spec else {
            return ImpairmentParams::default();
        };
        let errors = self.read(spec.bit_errors.as_ref());
        ImpairmentParams {
            loss: spec.loss.as_ref().and_then(|loss| self.loss(loss)),
            bit_errors_per_1e15: errors.map_or(0, |errors| errors.0),
            delay_variation: (spec.delay_variation.as_ref())
                .and_then(|variation| self.delay_variation(variation)),
        }
    }

    fn loss(&mut self, spec: &At<Short<PartsPerMillion, BurstLossSpec>>) -> Option<LossParams> {
        let burst = match &spec.value {
            Short::Value(text) => {
                let ppm = self.fraction(text)?;
                return (ppm > 0).then(|| LossParams::independent(ppm));
            }
            Short::Settings(burst) => burst,
        };
        let mut change = |field: &Option<Text<PartsPerMillion>>, key, otherwise| match field {
            Some(text) => {
                let ppm = self.fraction(text)?;
                if ppm == 0 {
                    self.problems.add(text.span(), otherwise);
                }
                (ppm > 0).then_some(ppm)
            }
            None => self
                .required::<PartsPerMillion>(None, key, spec.span)
                .map(|ppm| ppm.0),
        };
        let (to_bad, to_good) = (
            change(&burst.to_bad, "to_bad", "no burst of losses would begin"),
            change(&burst.to_good, "to_good", "no burst of losses would end"),
        );
        let mut lost = |field: &Option<Text<PartsPerMillion>>, default: PartsPerMillion| {
            field
                .as_ref()
                .map_or(Some(default.0), |text| self.fraction(text))
        };
        let (in_bad, in_good) = (
            lost(&burst.in_bad, ALL),
            lost(&burst.in_good, PartsPerMillion(0)),
        );
        Some(LossParams {
            to_bad_ppm: to_bad?,
            to_good_ppm: to_good?,
            in_good_ppm: in_good?,
            in_bad_ppm: in_bad?,
        })
    }

    /// Parts per million, of which a probability has a million at most.
    fn fraction(&mut self, text: &Text<PartsPerMillion>) -> Option<u32> {
        let PartsPerMillion(ppm) = text.read(self.problems)?;
        if ppm > ALL.0 {
            self.problems.add(text.span(), "this is more than 100 %");
            return None;
        }
        Some(ppm)
    }

    fn delay_variation(
        &mut self,
        spec: &At<Short<Duration, DelayVariationSpec>>,
    ) -> Option<DelayVariationParams> {
        let (up_to, distribution, reorder) = match &spec.value {
            Short::Value(text) => (text.read(self.problems), None, false),
            Short::Settings(settings) => (
                self.required(settings.up_to.as_ref(), "up_to", spec.span),
                self.read(settings.distribution.as_ref()),
                self.read_or(settings.reorder.as_ref(), false),
            ),
        };
        let up_to = up_to.filter(|up_to| *up_to > Duration::ZERO)?;
        Some(DelayVariationParams {
            up_to,
            distribution: distribution.unwrap_or(DelayDistribution::Uniform),
            reorder,
        })
    }
}
