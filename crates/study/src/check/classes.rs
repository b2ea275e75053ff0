//! Policies written as classes in the study file.

use super::Checker;
use crate::file::{At, Span};
use crate::spec::{
    Amount, ChildSpec, ClassFileSpec, Counted, Dscp, FlowQueueFileSpec, List, Name, Named,
    PoliceSpec, PriorityFileSpec, Scalar, ShapeSpec, Share, Short, SliceSpec, Text, WredFileSpec,
};
use slicewise_model::{
    BurstSpec, CLASS_DEFAULT, ClassMap, ClassSpec, ColourMode, Discipline, FlowQueueSpec,
    PolicerSpec, PolicySpec, PrioritySpec, RateSpec, RedCurve, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, ByteCount, Layer};

/// Default mark probability denominator of a curve (IOS).
const MARK_DENOMINATOR: u32 = 10;
/// Deepest nesting of classes that is read; what a device allows is less.
const MAX_DEPTH: usize = 16;

impl ClassFileSpec {
    /// Where the setting that the model calls `field` is written.
    pub(super) fn place(&self, field: &str) -> Option<Span> {
        match field {
            "police" => self.police.as_ref().map(|p| p.span),
            "set_dscp" => self.set_dscp.as_ref().map(Text::span),
            "priority" => self.priority.as_ref().map(|p| p.span),
            "minimum" => self.minimum.as_ref().map(Text::span),
            "weight" => self.weight.as_ref().map(Text::span),
            "shape" => self.shape.as_ref().map(|s| s.span),
            "queue_limit" => self.queue_limit.as_ref().map(Text::span),
            "wred" => self.wred.as_ref().map(|w| w.span),
            "flow_queue" => self.flow_queue.as_ref().map(|f| f.span),
            "child" => self.child.as_ref().map(|c| c.span),
            "guarantee" => self.guarantee.as_ref().map(|g| g.span),
            "maximum" => self.maximum.as_ref().map(|m| m.span),
            "tenant" => self.tenant.as_ref().map(Text::span),
            "match" => self.matches.as_ref().map(|m| m.span),
            _ => None,
        }
    }
}

impl Checker<'_> {
    /// The policy `name` of these classes; `None` where one of them cannot be read.
    pub(super) fn native_policy(
        &mut self,
        name: &str,
        classes: &List<At<ClassFileSpec>>,
        discipline: Discipline,
        slices: &Named<SliceSpec>,
    ) -> Option<PolicySpec> {
        self.native_level(name, classes, discipline, slices, 1)
    }

    fn native_level(
        &mut self,
        name: &str,
        classes: &List<At<ClassFileSpec>>,
        discipline: Discipline,
        slices: &Named<SliceSpec>,
        depth: usize,
    ) -> Option<PolicySpec> {
        let mut seen = std::collections::BTreeSet::new();
        let mut specs = Some(Vec::new());
        for At { value: class, .. } in &classes.0 {
            if !seen.insert(class.name.text()) {
                let message = format!("class `{}` is defined twice", class.name.text());
                self.problems.add(class.name.span(), message);
                specs = None;
                continue;
            }
            match (self.class(class, slices, depth), &mut specs) {
                (Some(class), Some(specs)) => specs.push(class),
                _ => specs = None,
            }
        }
        Some(PolicySpec {
            name: name.to_owned(),
            classes: specs?,
            discipline,
            guaranteed: None,
        })
    }

    fn class(
        &mut self,
        class: &ClassFileSpec,
        slices: &Named<SliceSpec>,
        depth: usize,
    ) -> Option<ClassSpec> {
        let name = class.name.read(self.problems);
        let matches = self.class_matches(class, slices);
        // All of them are read before the first that failed ends it.
        let minimum = class.minimum.as_ref().map(|text| self.share(text));
        let weight = class.weight.as_ref().map(|text| text.read(self.problems));
        let set_dscp = class.set_dscp.as_ref().map(|text| text.read(self.problems));
        let queue_limit = class
            .queue_limit
            .as_ref()
            .map(|text| text.read(self.problems));
        let police = class
            .police
            .as_ref()
            .map(|police| self.police(&police.value));
        let shape = class.shape.as_ref().map(|shape| self.shape(&shape.value));
        let priority = class
            .priority
            .as_ref()
            .map(|priority| self.priority(&priority.value));
        let wred = class.wred.as_ref().map(|wred| self.wred(&wred.value));
        let flow_queue = class
            .flow_queue
            .as_ref()
            .map(|flow_queue| self.flow_queue(&flow_queue.value));
        let child = class
            .child
            .as_ref()
            .map(|child| self.child(class, child, slices, depth));
        let guarantee = class
            .guarantee
            .as_ref()
            .map(|guarantee| self.guarantee(&guarantee.value));
        let maximum = class
            .maximum
            .as_ref()
            .map(|maximum| self.maximum(&maximum.value));
        let tenant = self.optional(class.tenant.as_ref());
        Some(ClassSpec {
            matches: matches?,
            name: name?.0,
            police: settled(police)?,
            set_dscp: settled(set_dscp)?.map(|dscp: Dscp| dscp.0),
            priority: settled(priority)?,
            minimum: settled(minimum)?,
            weight: settled(weight)?,
            shape: settled(shape)?,
            queue_limit: settled(queue_limit)?,
            wred: settled(wred)?,
            flow_queue: settled(flow_queue)?,
            child: settled(child)?.map(Box::new),
            guarantee: settled(guarantee)?,
            maximum: settled(maximum)?,
            tenant: tenant?.map(|Name(name)| name),
        })
    }

    /// The class map; `Some(None)` for class-default, which has none.
    fn class_matches(
        &mut self,
        class: &ClassFileSpec,
        slices: &Named<SliceSpec>,
    ) -> Option<Option<ClassMap>> {
        let name = class.name.text();
        if name == CLASS_DEFAULT {
            let at = class.matches.as_ref().map(|m| m.span);
            let Some(at) = at.or(class.slice.as_ref().map(Text::span)) else {
                return Some(None);
            };
            self.problems
                .add(at, "`class-default` gets what matches no other class");
            return None;
        }
        match (&class.matches, &class.slice) {
            (Some(matches), None) => Some(Some(self.class_map(name, &matches.value))),
            (None, Some(slice)) => {
                let known: Vec<&str> = slices.iter().map(|(name, _)| name.text()).collect();
                let index = self.index_of(super::Table::Slices, slice, &known)?;
                let (_, slice) = slices.0.get(index)?;
                // A slice without `match` is reported where the slice is.
                let matches = &slice.matches.as_ref()?.value;
                Some(Some(self.class_map(name, matches)))
            }
            _ => {
                let message = "a class needs either `match` or `slice`, to say which frames";
                self.problems.add(class.name.span(), message);
                None
            }
        }
    }

    fn child(
        &mut self,
        class: &ClassFileSpec,
        child: &At<Box<ChildSpec>>,
        slices: &Named<SliceSpec>,
        depth: usize,
    ) -> Option<PolicySpec> {
        if depth >= MAX_DEPTH {
            self.problems
                .add(child.span, "classes are nested too deeply");
            return None;
        }
        let discipline = self.read_or(child.value.discipline.as_ref(), Discipline::MinimumShare);
        self.native_level(
            class.name.text(),
            &child.value.classes,
            discipline,
            slices,
            depth + 1,
        )
    }

    /// A rate, or a percentage of at most all of it.
    pub(super) fn share(&mut self, text: &Text<Share>) -> Option<RateSpec> {
        let Share(rate) = text.read(self.problems)?;
        if matches!(rate, RateSpec::PercentMilli(share) if share > 100_000) {
            self.problems.add(text.span(), "this is more than 100 %");
            return None;
        }
        Some(rate)
    }

    fn police(&mut self, police: &Short<Share, PoliceSpec>) -> Option<PolicerSpec> {
        let spec = match police {
            Short::Value(text) => return Some(PolicerSpec::new(self.share(text)?)),
            Short::Settings(spec) => spec,
        };
        let cir = self.share(&spec.rate);
        let pir = spec.peak_rate.as_ref().map(|text| self.share(text));
        let eir = spec.excess_rate.as_ref().map(|text| self.share(text));
        let cbs = self.burst(spec.burst.as_ref());
        let ebs = self.burst(spec.excess_burst.as_ref());
        let pbs = self.burst(spec.peak_burst.as_ref());
        let accounting = self.accounting(spec.counts.as_ref());
        let mode = self.read_or(spec.colour.as_ref(), ColourMode::Blind);
        let conform = self.optional(spec.conform.as_ref());
        let exceed = self.optional(spec.exceed.as_ref());
        let violate = self.optional(spec.violate.as_ref());
        Some(PolicerSpec {
            pir: settled(pir)?,
            eir: settled(eir)?,
            cbs: cbs?,
            ebs: ebs?,
            pbs: pbs?,
            accounting,
            mode,
            conform: conform?,
            exceed: exceed?,
            violate: violate?,
            ..PolicerSpec::new(cir?)
        })
    }

    /// `None` if it exists and wrong; `Some(None)` where it is not there.
    pub(super) fn optional<T: Scalar>(&mut self, text: Option<&Text<T>>) -> Option<Option<T>> {
        settled(text.map(|text| text.read(self.problems)))
    }

    pub(super) fn burst(&mut self, text: Option<&Text<Amount>>) -> Option<Option<BurstSpec>> {
        Some(self.optional(text)?.map(|amount| match amount {
            Amount::Size(size) => BurstSpec::Size(size),
            Amount::Time(time) => BurstSpec::Time(time),
        }))
    }

    pub(super) fn accounting(&mut self, text: Option<&Text<Layer>>) -> Accounting {
        Counted::accounting(self.read_or(text, Layer::L2))
    }

    fn shape(&mut self, shape: &Short<Share, ShapeSpec>) -> Option<ShaperSpec> {
        let spec = match shape {
            Short::Value(text) => return Some(shaper(self.share(text)?)),
            Short::Settings(spec) => spec,
        };
        let rate = self.share(&spec.rate);
        let burst = self.optional(spec.burst.as_ref());
        let excess = self.optional(spec.excess_burst.as_ref());
        let peak = self.read_or(spec.peak.as_ref(), false);
        let accounting = self.accounting(spec.counts.as_ref());
        Some(ShaperSpec {
            committed_burst_bits: burst?.map(ByteCount::bits),
            excess_burst_bits: excess?.map(ByteCount::bits),
            peak,
            accounting,
            ..shaper(rate?)
        })
    }

    fn priority(&mut self, spec: &PriorityFileSpec) -> Option<PrioritySpec> {
        let rate = spec.rate.as_ref().map(|text| self.share(text));
        let burst = self.optional(spec.burst.as_ref());
        let level = self.read_or(spec.level.as_ref(), 1);
        let accounting = self.accounting(spec.counts.as_ref());
        Some(PrioritySpec {
            level,
            rate: settled(rate)?,
            burst: burst?,
            accounting,
        })
    }

    fn flow_queue(&mut self, spec: &FlowQueueFileSpec) -> Option<FlowQueueSpec> {
        let flows = self.optional(spec.flows.as_ref());
        let target = self.optional(spec.target.as_ref());
        let interval = self.optional(spec.interval.as_ref());
        let quantum = self.optional(spec.quantum.as_ref());
        let ecn = self.optional(spec.ecn.as_ref());
        let mut priority = Some(Vec::new());
        for level in &spec.priority.0 {
            let code_points: Vec<_> = level
                .dscp
                .0
                .iter()
                .map(|dscp| dscp.read(self.problems).map(|Dscp(dscp)| dscp))
                .collect();
            match (code_points.into_iter().collect(), &mut priority) {
                (Some(level), Some(levels)) => levels.push(level),
                _ => priority = None,
            }
        }
        Some(FlowQueueSpec {
            flows: flows?,
            target: target?,
            interval: interval?,
            quantum: quantum?,
            ecn: ecn?,
            priority: priority?,
        })
    }

    fn wred(&mut self, spec: &WredFileSpec) -> Option<WredSpec> {
        let key = self.read_or(spec.by.as_ref(), WredKey::Dscp);
        let exponential_weight = self.optional(spec.weight_exponent.as_ref());
        let mut curves = Some(Vec::new());
        for At { value: curve, .. } in &spec.curves.0 {
            let key = curve.key.read(self.problems);
            let min = curve.min.read(self.problems);
            let max = curve.max.read(self.problems);
            let denominator = self.read_or(curve.denominator.as_ref(), MARK_DENOMINATOR);
            match (key, min, max, &mut curves) {
                (Some(Dscp(key)), Some(min_packets), Some(max_packets), Some(curves)) => {
                    let mark_denominator = denominator;
                    curves.push((
                        key,
                        RedCurve {
                            min_packets,
                            max_packets,
                            mark_denominator,
                        },
                    ));
                }
                _ => curves = None,
            }
        }
        Some(WredSpec {
            key,
            curves: curves?,
            exponential_weight: exponential_weight?,
        })
    }
}

/// What is there must have been read; what is not there is no matter.
fn settled<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(None) => None,
        Some(value) => Some(value),
        None => Some(None),
    }
}

fn shaper(rate: RateSpec) -> ShaperSpec {
    ShaperSpec {
        rate,
        committed_burst_bits: None,
        excess_burst_bits: None,
        peak: false,
        accounting: Accounting::L2,
    }
}
