//! Short constructors for policies.

use slicewise_model::{
    ClassMap, ClassParams, ClassSpec, Condition, MatchMode, PolicerSpec, PolicySpec, PrioritySpec,
    QueueLimitSpec, RateSpec, RedCurve, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate};

pub(crate) fn bits(bits_per_second: u64) -> BitRate {
    BitRate::new(bits_per_second)
}

pub(crate) fn absolute(text: &str) -> RateSpec {
    RateSpec::Absolute(text.parse().unwrap())
}

pub(crate) fn percent(percent: u32) -> RateSpec {
    RateSpec::PercentMilli(percent * 1_000)
}

/// A class that takes one VLAN.
pub(crate) fn class(name: &str) -> ClassSpec {
    ClassSpec::new(ClassMap {
        name: name.to_owned(),
        mode: MatchMode::Any,
        conditions: vec![Condition::OuterVlan(10..=10)],
    })
}

pub(crate) fn policy(classes: Vec<ClassSpec>) -> PolicySpec {
    PolicySpec {
        name: "p".to_owned(),
        classes,
        discipline: Default::default(),
        guaranteed: None,
        queues: Vec::new(),
    }
}

/// The first class of a policy for a link of 35 Mbit/s.
pub(crate) fn resolved(class: ClassSpec) -> ClassParams {
    policy(vec![class])
        .resolve(bits(35_000_000))
        .unwrap()
        .classes
        .swap_remove(0)
}

/// Why a policy with this class does not resolve for a link of 35 Mbit/s.
pub(crate) fn refusal(class: ClassSpec) -> String {
    policy(vec![class])
        .resolve(bits(35_000_000))
        .unwrap_err()
        .to_string()
}

pub(crate) fn police(cir: RateSpec) -> PolicerSpec {
    PolicerSpec::new(cir)
}

pub(crate) fn policed(spec: PolicerSpec) -> ClassSpec {
    ClassSpec {
        police: Some(spec),
        ..class("be")
    }
}

pub(crate) fn shape(rate: RateSpec) -> ShaperSpec {
    ShaperSpec {
        rate,
        committed_burst_bits: None,
        excess_burst_bits: None,
        peak: false,
        accounting: Accounting::default(),
    }
}

pub(crate) fn shaped(spec: ShaperSpec) -> ClassSpec {
    ClassSpec {
        shape: Some(spec),
        ..class("be")
    }
}

pub(crate) fn priority(rate: Option<RateSpec>) -> PrioritySpec {
    PrioritySpec {
        level: 1,
        rate,
        burst: None,
        accounting: Accounting::default(),
    }
}

pub(crate) fn prioritised(spec: PrioritySpec) -> ClassSpec {
    ClassSpec {
        priority: Some(spec),
        ..class("critical")
    }
}

pub(crate) fn guaranteed(minimum: RateSpec) -> ClassSpec {
    ClassSpec {
        minimum: Some(minimum),
        ..class("critical")
    }
}

pub(crate) fn limited(limit: QueueLimitSpec) -> ClassSpec {
    ClassSpec {
        queue: limit.into(),
        ..class("be")
    }
}

pub(crate) fn wred(key: WredKey, curves: Vec<(u8, RedCurve)>) -> WredSpec {
    WredSpec {
        key,
        curves: (curves.into_iter())
            .map(|(value, curve)| (value, curve.into()))
            .collect(),
        ..WredSpec::default()
    }
}

pub(crate) fn curve(min_packets: u32, max_packets: u32, mark_denominator: u32) -> RedCurve {
    RedCurve {
        min_packets,
        max_packets,
        mark_denominator,
    }
}
