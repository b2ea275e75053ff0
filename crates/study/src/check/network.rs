//! Links, the device under test, the hosts, measuring and margins.

use super::Checker;
use crate::file::At;
use crate::params::{
    CRYSTAL_PPB, DutModel, DutParams, HostTiming, LicenceParams, MAX_SLOWNESS_PPB, MeasureParams,
    StudyLink,
};
use crate::spec::{
    Amount, Counted, DutSpec, HostSpec, LicencePriority, LicenceSpec, LinkSpec, MarginsSpec,
    ModelName, PartsPerMillion, Percent, StudySpec, Text,
};
use slicewise_model::Rate;
use slicewise_stats::collect::MAX_BINS;
use slicewise_stats::description::Margins;
use slicewise_units::{BitRate, ByteCount, Duration, Layer};

/// What an Ethernet carries without jumbo frames, bytes.
const DEFAULT_MTU: ByteCount = ByteCount::new(1500);
/// The largest IP packet, bytes.
const MAX_MTU: u64 = 65_535;
/// The smallest maximum that IPv4 allows, bytes (RFC 791).
const MIN_MTU: u64 = 68;
/// The pacing timer of iperf3.
const IPERF3_TIMER: Duration = Duration::from_millis(1);
/// The interval of the time series unless it is said.
pub(super) const DEFAULT_BIN: Duration = Duration::from_millis(50);

impl Checker<'_> {
    pub(super) fn link(&mut self, spec: Option<&At<LinkSpec>>) -> Option<StudyLink> {
        let Some(At { value: spec, span }) = spec else {
            self.problems.add(self.root.span, "`link` is missing");
            return None;
        };
        let rate = match &spec.rate {
            Some(text) => self.nonzero_rate(text),
            None => self.required(None, "rate", *span),
        };
        let layer = self.read_or(spec.counts.as_ref(), Layer::L1);
        let propagation = self.read_or(spec.propagation.as_ref(), Duration::ZERO);
        let mtu = self.read_or(spec.mtu.as_ref(), DEFAULT_MTU).bytes();
        if let Some(text) = &spec.mtu
            && !(MIN_MTU..=MAX_MTU).contains(&mtu)
        {
            let message = format!("the MTU must be from {MIN_MTU} to {MAX_MTU} bytes");
            self.problems.add(text.span(), message);
        }
        Some(StudyLink {
            rate: Rate {
                rate: rate?,
                accounting: Counted::accounting(layer),
            },
            propagation,
            mtu_bytes: u32::try_from(mtu).unwrap_or(u32::MAX),
            impairments: self.impairments(spec.impairments.as_ref()),
        })
    }

    pub(super) fn nonzero_rate(&mut self, text: &Text<BitRate>) -> Option<BitRate> {
        let rate = text.read(self.problems)?;
        if rate == BitRate::ZERO {
            self.problems
                .add(text.span(), "a rate of zero: nothing could pass");
            return None;
        }
        Some(rate)
    }

    pub(super) fn dut(
        &mut self,
        spec: Option<&At<DutSpec>>,
        link: Option<&StudyLink>,
    ) -> Option<DutParams> {
        let Some(At { value: spec, span }) = spec else {
            self.problems.add(self.root.span, "`dut` is missing");
            return None;
        };
        let model = self.required(spec.model.as_ref(), "model", *span);
        let port_rate = match &spec.port_rate {
            Some(text) => self.nonzero_rate(text),
            None => link.map(|link| link.rate.rate),
        };
        let layer = self.read_or(spec.port_counts.as_ref(), Layer::L1);
        let processing_delay = self.read_or(spec.processing_delay.as_ref(), Duration::ZERO);
        let licence = spec
            .licence
            .as_ref()
            .map(|licence| (self.licence(licence), licence.span));
        let model = match (model?, &licence) {
            (ModelName::Isr4221, None) => {
                let message = "`licence` is missing: an ISR 4221 forwards what its licence allows";
                self.problems.add(*span, message);
                return None;
            }
            (ModelName::Port | ModelName::Gateway, Some((_, at))) => {
                let help = "leave it out, or use the model `isr4221`".to_owned();
                let message = "only the model `isr4221` has a licence";
                self.problems.add_with_help(*at, message, Some(help));
                return None;
            }
            (ModelName::Gateway, None) => DutModel::Gateway,
            (ModelName::Isr4221, Some(_)) => DutModel::Isr4221,
            (ModelName::Port, None) => DutModel::Port,
        };
        let licence = match licence {
            Some((licence, _)) => Some(licence?),
            None => None,
        };
        let port_rate = Rate {
            rate: port_rate?,
            accounting: Counted::accounting(layer),
        };
        if let Some(licence) = licence
            && licence.rate.rate > port_rate.rate
            && let Some(text) = spec.licence.as_ref().and_then(|l| l.value.rate.as_ref())
        {
            let message = format!(
                "the licence is above the rate of the ports, {}",
                port_rate.rate
            );
            self.problems.add(text.span(), message);
        }
        Some(DutParams {
            model,
            port_rate,
            processing_delay,
            licence,
        })
    }

    fn licence(&mut self, spec: &At<LicenceSpec>) -> Option<LicenceParams> {
        let At { value: spec, span } = spec;
        let rate = match &spec.rate {
            Some(text) => self.nonzero_rate(text),
            None => self.required(None, "rate", *span),
        };
        let credit = self.required(spec.credit.as_ref(), "credit", *span);
        let layer = self.read_or(spec.counts.as_ref(), Layer::L2);
        let priority = self.read_or(spec.priority.as_ref(), LicencePriority::Waits);
        let rate = rate?;
        let credit = match credit? {
            Amount::Size(size) => size,
            Amount::Time(time) => rate.bytes_in(time),
        };
        if credit < DEFAULT_MTU
            && let Some(text) = &spec.credit
        {
            let message = format!("a credit of {credit} is less than one packet");
            self.problems.add(text.span(), message);
            return None;
        }
        Some(LicenceParams {
            rate: Rate {
                rate,
                accounting: Counted::accounting(layer),
            },
            credit,
            priority_borrows: priority == LicencePriority::Borrows,
        })
    }

    pub(super) fn hosts(&mut self, spec: Option<&HostSpec>) -> HostTiming {
        let default = HostSpec::default();
        let spec = spec.unwrap_or(&default);
        let timer = match &spec.timer {
            Some(text) => self.nonzero_duration(Some(text)).unwrap_or(IPERF3_TIMER),
            None => IPERF3_TIMER,
        };
        let default = PartsPerMillion(CRYSTAL_PPB / 1_000);
        let drift = self.read_or(spec.clock_drift.as_ref(), default);
        let clock_drift_ppb = drift.0.saturating_mul(1_000);
        if let Some(text) = &spec.clock_drift
            && clock_drift_ppb > MAX_SLOWNESS_PPB
        {
            let message = "a clock drift may be at most 10 %";
            self.problems.add(text.span(), message);
        }
        let timer_slack = self.read_or(spec.timer_slack.as_ref(), Duration::ZERO);
        if let Some(text) = &spec.timer_slack
            && timer_slack > timer
        {
            let message = format!("this is longer than the timer's period of {timer}");
            self.problems.add(text.span(), message);
        }
        HostTiming {
            timer,
            clock_drift_ppb,
            timer_slack,
            send_cost: self.read_or(spec.send_cost.as_ref(), Duration::ZERO),
            interrupt_moderation: self.read_or(spec.interrupt_moderation.as_ref(), Duration::ZERO),
        }
    }

    /// The series of a run has a whole number of bins, and no more than fit in memory.
    pub(super) fn measure(
        &mut self,
        spec: &StudySpec,
        duration: Duration,
        slices: usize,
    ) -> MeasureParams {
        let text = spec.measure.as_ref().and_then(|spec| spec.bin.as_ref());
        let bin = match text {
            Some(text) => self.nonzero_duration(Some(text)).unwrap_or(DEFAULT_BIN),
            None => DEFAULT_BIN,
        };
        let Some(length) = spec.duration.as_ref() else {
            return MeasureParams { bin };
        };
        let span = text.map_or_else(|| length.span(), |text| text.span());
        // A duration that cannot be used has been reported.
        if length.text().parse() != Ok(duration) {
            return MeasureParams { bin };
        }
        let (length, width) = (duration.nanos(), bin.nanos().max(1));
        if !length.is_multiple_of(width) {
            let message = format!("the run of {duration} is not a whole number of bins of {bin}");
            let help = "give `duration` a multiple of `measure.bin`".to_owned();
            self.problems.add_with_help(span, message, Some(help));
        } else if (length / width).saturating_mul(slices as u64) > MAX_BINS {
            let message = format!(
                "a run would have {} bins for each of {slices} slices, more than {MAX_BINS} in all",
                length / width
            );
            let help = "choose a longer `measure.bin` or a shorter `duration`".to_owned();
            self.problems.add_with_help(span, message, Some(help));
        }
        MeasureParams { bin }
    }

    /// Margins as written; unless it says otherwise, delay is resolved to the time of one largest frame.
    pub(super) fn margins(
        &mut self,
        spec: Option<&MarginsSpec>,
        largest_frame: Duration,
    ) -> Margins {
        let mut margins = Margins {
            delay_resolution_ns: largest_frame.nanos(),
            ..Margins::default()
        };
        let Some(spec) = spec else { return margins };
        let fields = [
            (&spec.confidence, &mut margins.confidence),
            (&spec.throughput, &mut margins.throughput_relative),
            (&spec.loss, &mut margins.loss_absolute),
            (&spec.reallocation_holds, &mut margins.reallocation_holds),
            (&spec.reallocation_broken, &mut margins.reallocation_broken),
        ];
        for (text, margin) in fields {
            let Some(text) = text else { continue };
            let Some(percent) = text.read(self.problems) else {
                continue;
            };
            if percent.0 > Percent::ALL.0 {
                self.problems.add(text.span(), "this is more than 100 %");
            }
            *margin = percent.fraction();
        }
        if let Some(percent) = self.read(spec.delay.as_ref()) {
            margins.delay_relative = percent.fraction();
        }
        margins.delay_resolution_ns = self
            .read_or(spec.delay_resolution.as_ref(), largest_frame)
            .nanos();
        margins.delay_of = self.read_or(spec.delay_of.as_ref(), margins.delay_of);
        if let Some(text) = &spec.rare_runs
            && let Some(percent) = self.read(Some(text))
        {
            if percent.0 == 0 || percent.0 >= Percent::ALL.0 {
                let message = "this must be above 0 % and below 100 %: no number of repetitions excludes \
                               everything";
                self.problems.add(text.span(), message);
            }
            margins.rare_runs = percent.fraction();
        }
        if let Some(text) = &spec.confidence
            && !(0.5..1.0).contains(&margins.confidence)
        {
            self.problems.add(
                text.span(),
                "a confidence must be at least 50 % and below 100 %",
            );
        }
        let holds_text = spec
            .reallocation_holds
            .as_ref()
            .or(spec.reallocation_broken.as_ref());
        if let Some(text) = holds_text
            && margins.reallocation_holds <= margins.reallocation_broken
        {
            let message = "reallocation would hold and be broken at once: the fraction from which \
                           it holds must be the larger one";
            self.problems.add(text.span(), message);
        }
        margins
    }
}
