//! A policy of one of the data planes as requests.

use super::data_plane::DataPlane;
use super::flows;
use super::request::{RESERVED, Slice, SliceRequests, parse};
use super::{COUNTS, LARGEST_FRAME};
use crate::error::Span;
use crate::export::{ExportError, Inexpressible};
use crate::flow::flows_of;
use crate::json::quote;
use slicewise_model::{Action, ClassParams, ColourMode, MeterAlgorithm, PolicyParams, PortParams};

const LANGUAGE: &str = "a request of P4-TINS";
/// A request that is made here has no place in a text.
const NOWHERE: Span = Span::BEGIN;

/// The slices of `policy`, resolved for `port`, as a list of requests.
///
/// For one of the data planes, [`parse`] reads the same policy back.
///
/// # Errors
/// Whatever makes it another policy than that of the baseline or of P4-TINS for some slices.
pub fn write(policy: &PolicyParams, port: PortParams) -> Result<String, ExportError> {
    let mut problems = Vec::new();
    let (mut slices, mut objects) = (Vec::new(), Vec::new());
    for class in &policy.classes {
        if class.police.is_none() {
            continue;
        }
        match slice(class) {
            Ok((slice, flows)) => {
                objects.push(object(&slice, &flows));
                slices.push(slice);
            }
            Err((what, why)) => problems.push(Inexpressible {
                class: Some(class.name.clone()),
                what,
                why,
            }),
        }
    }
    if slices.is_empty() && problems.is_empty() {
        problems.push(Inexpressible {
            class: None,
            what: "classes",
            why: "no class has a two-rate meter, so there is no slice to request".to_owned(),
        });
    }
    let text = format!("[\n{}\n]\n", objects.join(",\n"));
    if problems.is_empty() {
        problems.extend(difference(policy, port, &SliceRequests { slices }));
        if let Err(errors) = parse(&text) {
            problems.extend(errors.first().map(|error| Inexpressible {
                class: None,
                what: "classes",
                why: error.message.clone(),
            }));
        }
    }
    match problems.is_empty() {
        true => Ok(text),
        false => Err(ExportError {
            policy: policy.name.clone(),
            language: LANGUAGE,
            problems,
        }),
    }
}

/// A slice, and its flows as JSON.
fn slice(class: &ClassParams) -> Result<(Slice, Vec<String>), (&'static str, String)> {
    let fail = |what, why: &str| Err((what, why.to_owned()));
    if RESERVED.contains(&class.name.as_str()) {
        return fail("police", "what is not sliced has no meter");
    }
    let Some(police) = &class.police else {
        return fail("police", "a slice has a meter");
    };
    let MeterAlgorithm::TwoRateThreeColour { cir, cbs, pir, pbs } = police.algorithm else {
        return fail("police", "the meter of a slice has two rates (RFC 2698)");
    };
    if police.mode != ColourMode::Blind {
        return fail("police", "the meter of a slice is colour-blind");
    }
    if police.refill_interval.is_some() {
        return fail("police.refill_interval", "a request does not state it");
    }
    if (cir.accounting, pir.accounting) != (COUNTS, COUNTS) {
        return fail("police.counts", "rates of a request count L1");
    }
    if police.conform != Action::Transmit || police.violate != Action::Drop {
        let why = "green packets are sent through the queue of the slice, and red ones dropped";
        return fail("police", why);
    }
    if cbs.min(pbs) < LARGEST_FRAME {
        let why = format!("has a burst below one largest frame ({LARGEST_FRAME})");
        return Err(("police", why));
    }
    let map = class.matches.as_ref();
    let found = map.map_or_else(|| Err("matches everything".to_owned()), flows_of);
    let found = found.map_err(|why| ("match", why))?;
    let texts: Result<Vec<String>, String> = found.iter().map(flows::write).collect();
    let texts = texts.map_err(|why| ("match", why))?;
    let slice = Slice {
        name: class.name.clone(),
        is_named: true,
        min_rate: (cir.rate, NOWHERE),
        max_rate: pir.rate,
        allow_burst: cbs,
        peak_burst: pbs,
        flows: found.into_iter().map(|flow| (flow, NOWHERE)).collect(),
        span: NOWHERE,
    };
    Ok((slice, texts))
}

/// Describes a difference from the policies that both data planes have for `requests`.
fn difference(
    policy: &PolicyParams,
    port: PortParams,
    requests: &SliceRequests,
) -> Option<Inexpressible> {
    // The remedy is told by its queues, also where something else differs.
    let plane = match policy.queues.len() > 2 {
        true => DataPlane::P4Tins,
        false => DataPlane::Baseline,
    };
    let name = plane.name();
    let expected = match requests.policy(plane).spec.resolve_for(port) {
        Ok(expected) => expected,
        Err(error) => return fail(Some(&error.class), error.field, error.problem),
    };
    if policy.discipline != expected.discipline {
        let why = format!("the data plane `{name}` has the discipline `deficit_round_robin`");
        return fail(None, "discipline", why);
    }
    if policy.queues != expected.queues {
        let queues = expected.queues.iter();
        let queues: Vec<String> = queues
            .map(|queue| match queue.priority {
                Some(_) => format!("`{}` (priority 1)", queue.name),
                None => format!("`{}`", queue.name),
            })
            .collect();
        let why = format!(
            "the data plane `{name}` has exactly these queues, of {} packets each: {}",
            expected
                .queues
                .first()
                .map_or(0, |queue| queue.queue.limit.packets),
            queues.join(", ")
        );
        return fail(None, "queues", why);
    }
    let names = |policy: &PolicyParams| -> Vec<String> {
        policy
            .classes
            .iter()
            .map(|class| class.name.clone())
            .collect()
    };
    if names(policy) != names(&expected) {
        let why = format!(
            "the data plane `{name}` has these classes in this order: {}",
            names(&expected).join(", ")
        );
        return fail(None, "classes", why);
    }
    let pairs = policy.classes.iter().zip(&expected.classes);
    let mut different =
        pairs.filter_map(|(class, expected)| differing(class, expected).map(|what| (class, what)));
    let (class, what) = different.next()?;
    let why = format!("is not what the data plane `{name}` does with this class");
    fail(Some(&class.name), what, why)
}

fn fail(class: Option<&str>, what: &'static str, why: String) -> Option<Inexpressible> {
    Some(Inexpressible {
        class: class.map(str::to_owned),
        what,
        why,
    })
}

/// The setting in which a class differs from what is expected.
fn differing(class: &ClassParams, expected: &ClassParams) -> Option<&'static str> {
    // Of a slice, flows mean what its class map means, however that is written.
    let is_slice = class.police.is_some();
    let settings = [
        ("match", is_slice || class.matches == expected.matches),
        ("police", class.police == expected.police),
        ("hqos", class.hqos == expected.hqos),
        ("queue", class.named_queue == expected.named_queue),
        ("elephants", class.elephants == expected.elephants),
        ("set_dscp", class.set_dscp == expected.set_dscp),
    ];
    if let Some((name, _)) = settings.into_iter().find(|(_, is_same)| !is_same) {
        return Some(name);
    }
    let expected = ClassParams {
        matches: class.matches.clone(),
        ..expected.clone()
    };
    (*class != expected).then_some("class")
}

/// The request for a slice whose flows are given as JSON.
fn object(slice: &Slice, flows: &[String]) -> String {
    format!(
        "  {{\n    \"name\": {},\n    \"minRate\": \"{}\",\n    \"maxRate\": \"{}\",\n    \
         \"allowBurst\": \"{}\",\n    \"peakBurst\": \"{}\",\n    \"flows\": [\n      {}\n    ]\n  }}",
        quote(&slice.name),
        slice.min_rate.0,
        slice.max_rate,
        slice.allow_burst,
        slice.peak_burst,
        flows.join(",\n      ")
    )
}
