//! Control loops over the rates of classes.

use super::police::NO_RATE;
use super::policies::PolicyFileSpec;
use super::{Checker, StudySpec};
use crate::device;
use crate::file::{Placed, Span};
use crate::params::DutParams;
use crate::spec::{Named, Percent};
use crate::{problem, settings};
use slicewise_model::{
    CLASS_DEFAULT, PolicySpec, RateLimits, RateSpec, ReallocatedClassSpec, ReallocationError,
    ReallocationParams, ReallocationSpec,
};
use slicewise_units::{BitRate, Duration};

settings! {
    /// A control loop, which readjusts the rates of shapers and policers to measured demand.
    impl ReallocationSpec as "ReallocateSpec", strict = Self {
        every: Duration::ZERO,
        delay: Duration::ZERO,
        rate: None,
        headroom: 0,
        weight: Percent::ALL.0,
        classes: Vec::new(),
    };
    {
        /// Time between two readings of the counters.
        [required] every,
        /// Time from a reading until the rates decided on it are in force, less than `every`. Default 0.
        delay,
        /// Rate that is divided, L2 without FCS: a rate, or a percentage of what the device forwards. Default all of it.
        rate: RateSpec = |own, rate| own.rate = Some(rate),
        /// Headroom of a class beyond its demand, as a percentage of the demand, if there is enough. Default 0 %.
        headroom: Percent = |own, headroom| own.headroom = headroom.0,
        /// Weight of the newest demand in the estimate where demand falls; a rise counts at once. Default 100 %.
        weight: Percent = |own, weight| own.weight = weight.0,
        /// The classes among which the rate is divided, by name: all that send.
        [required] classes: Named<ReallocatedClassSpec> = |own, classes| {
            let classes = classes.iter();
            own.classes = classes.map(|(name, class)| ReallocatedClassSpec {
                name: name.value.clone(),
                ..class.clone()
            }).collect();
        },
    }
}

settings! {
    /// Limits of the rate of a class. Percentages are of the rate that is divided.
    impl ReallocatedClassSpec as "ReallocatedClassSpec", strict = Self {
        name: String::new(),
        guarantee: NO_RATE,
        minimum: None,
        maximum: None,
    };
    {
        /// Rate that it has whenever it wants it.
        [required] guarantee,
        /// Rate that it has even if it wants less. Default one frame of 1522 B in each interval, at most the guarantee.
        minimum,
        /// Most that it has. Default all.
        maximum,
    }
}

impl Checker<'_> {
    /// The loop of a policy that is written at `path`, on a device; `Some(None)` where it has none.
    pub(super) fn reallocation(
        &mut self,
        path: &[&str],
        policy: &Placed<PolicyFileSpec>,
        spec: &PolicySpec,
        dut: &DutParams,
    ) -> Option<Option<ReallocationParams>> {
        let Some(at) = policy.place("reallocate") else {
            return Some(None);
        };
        let written = policy.value.reallocate.as_ref()?;
        let resolved = written
            .resolve(spec, dut.capacity().rate)
            .and_then(|params| {
                fits_at_limits(&params, spec, dut)?;
                Ok(params)
            });
        match resolved {
            Ok(params) => Some(Some(params)),
            Err(error) => {
                let at = self.place_of_loop(path, &error).unwrap_or(at);
                let names = spec.classes.iter().map(|class| class.name.as_str());
                let names: Vec<&str> = names.chain([CLASS_DEFAULT]).collect();
                match (error.field, &error.class) {
                    ("name", Some(class)) => {
                        self.problems
                            .add_unknown(at, error.problem, (class, &names));
                    }
                    ("class" | "classes" | "reallocate", _) => self.problems.add(at, error.problem),
                    _ => self.problems.add(at, error.to_string()),
                }
                None
            }
        }
    }

    /// Where the setting of a policy's loop that `error` is about is written, as far as it is.
    pub(super) fn place_of_loop(&self, path: &[&str], error: &ReallocationError) -> Option<Span> {
        let entry = self.entry_at(&[path, &["reallocate"]].concat())?;
        let (mut node, mut at) = (entry.node, entry.span());
        let of_class = error.class.as_deref().map(|class| ["classes", class]);
        let keys = of_class.iter().flatten().copied();
        for key in keys.chain([error.field]) {
            let Some((key, inner)) = node.entry(key) else {
                break;
            };
            (node, at) = (inner, inner.anchor(Some(key.span)));
        }
        Some(at)
    }

    /// The policy of a device of a path has no loop.
    pub(super) fn refuse_loop(&mut self, policy: &Placed<PolicyFileSpec>) {
        if let Some(at) = policy.place("reallocate") {
            problem!(self.problems, at => "only a policy that a study compares, or that of a gateway, can be reallocated";
                "leave `reallocate` out");
        }
    }

    /// A study has nothing that loops are not modelled with.
    pub(super) fn check_loops(&mut self, spec: &StudySpec, duration: Duration) {
        for (_, policy) in spec.policies.iter() {
            let Some(at) = policy.place("reallocate") else {
                continue;
            };
            for key in ["path", "populations", "timeline"] {
                if self.key_at(&[key]).is_some() {
                    problem!(self.problems, at => "`reallocate` and `{key}` exclude each other");
                }
            }
            // The first reading is in the second interval.
            let latest = policy.value.reallocate.as_ref().map(|own| {
                let intervals = own.every.nanos().saturating_mul(2);
                Duration::from_nanos(intervals.saturating_add(own.delay.nanos()))
            });
            if let Some(latest) = latest.filter(|latest| *latest >= duration) {
                problem!(self.problems, at => "the loop acts for the first time up to {latest} after the start, twice `every` and \
                    `delay`, and the run is over after {duration}";
                    "choose a shorter `every`, or a longer `duration`");
            }
        }
    }
}

/// The device can run the policy when the loop gives classes the least and the most that it may.
fn fits_at_limits(
    params: &ReallocationParams,
    spec: &PolicySpec,
    dut: &DutParams,
) -> Result<(), ReallocationError> {
    let fits = |field, word, limit: fn(&RateLimits) -> BitRate| {
        let classes = params.classes.iter();
        let rates = classes.map(|class| (class.name.as_str(), limit(&class.limits)));
        device::fitting(&spec.with_rates(rates), dut).map_err(|error| ReallocationError {
            class: Some(error.class.clone()),
            field,
            problem: format!(
                "with the {word} that the loop may give, {} `{}`, {}: {}",
                error.part, error.class, error.field, error.problem
            ),
        })
    };
    fits("minimum", "least", |limits| limits.minimum)?;
    fits("maximum", "most", |limits| limits.maximum)?;
    Ok(())
}
