//! Slices and links in the words of the API, and in those of the data plane.

use slicewise_api::{
    AdmissionRule, Counts, ElephantTerms, FlowTerms, GatewayTerms, Guarantee, LinkAnnouncement,
    LinkDirection, MATCHES_MAX, Match, Protocol, check_name, class_map,
};
use slicewise_dataplane::{Conditioning, NewSlice, SliceFlows};
use slicewise_live::DirectionParams;
use slicewise_model::{
    BurstSpec, CLASS_DEFAULT, ClassMap, ClassParams, CoDelParams, Detector, ElephantsParams,
    FlowQueueParams, FlowsParams, GuaranteedParams, GuaranteedSpec, MatchMode, MaximumSpec,
    MeteredParams, PolicyParams, PriorityLevels, Rate, RateSpec, SliceParams,
};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::collections::BTreeSet;

/// Why the policy of a direction takes no slices.
const NO_SLICES: &str =
    "the policy of this direction has no slices: its discipline is not `guaranteed`";
/// Number of UDP among IP protocols.
const UDP: u8 = 17;

/// Queues of the flows of a slice, with numbers as in RFC 8290 (section 5.2), but for the target: that of a queue that drops
/// nothing for its delay, so that what conforms to the guarantee is not lost.
const FLOW_QUEUE: FlowQueueParams = FlowQueueParams {
    flows: FlowsParams {
        flows: 1_024,
        quantum: 1_514,
        levels: PriorityLevels::ONE,
    },
    codel: CoDelParams {
        target: Duration::from_millis(1_900),
        interval: Duration::from_millis(3_800),
        ecn: false,
    },
};

/// Fewest flows of a slice that have counters to find elephants.
const FOLLOWED_MIN: u32 = 256;

/// A link as its gateway announces it.
///
/// # Errors
/// If the policy of a direction has no slices.
pub(crate) fn announcement(
    name: &str,
    directions: &[DirectionParams; 2],
) -> Result<LinkAnnouncement, &'static str> {
    let [forward, backward] = directions;
    Ok(LinkAnnouncement {
        name: name.to_owned(),
        forward: direction(forward)?,
        backward: direction(backward)?,
        classes: classes(directions),
    })
}

/// Names of classes that slices cannot have. What is no name of a slice needs no mention.
fn classes(directions: &[DirectionParams; 2]) -> Vec<String> {
    let classes = directions
        .iter()
        .flat_map(|params| params.policy.classes.iter())
        .map(|class| class.name.clone())
        .filter(|name| name != CLASS_DEFAULT && check_name(name, "").is_ok());
    BTreeSet::from_iter(classes).into_iter().collect()
}

/// Returns whether slices of a controller are meters of the policy: all of them change in one commit.
pub(crate) fn is_metered(policy: &PolicyParams) -> bool {
    policy.check_metered().is_ok()
}

fn direction(params: &DirectionParams) -> Result<LinkDirection, &'static str> {
    if is_metered(&params.policy) {
        return Ok(metered_direction(params));
    }
    let common = common(params)?;
    let buffer = params.policy.links.first().and_then(|link| link.buffer);
    Ok(LinkDirection {
        admission: AdmissionRule::DelayBounds,
        rate_bps: params.link.rate.bits_per_second(),
        counts: Counts(params.link.accounting),
        slices_count: Counts(common.accounting),
        largest_frame_bytes: common.largest_frame.bytes(),
        buffer_bytes: buffer.map(ByteCount::bytes),
        shortest_delay_ns: common.delays.shortest().nanos(),
        longest_delay_ns: common.delays.longest().nanos(),
        reserved: reserved(&params.policy),
    })
}

/// A direction whose slices are metered. They count what the link does, so that rates add up to its rate.
fn metered_direction(params: &DirectionParams) -> LinkDirection {
    let Rate { rate, accounting } = params.link;
    let spec = GuaranteedSpec {
        accounting,
        ..GuaranteedSpec::default()
    };
    let own = params.policy.committed_before_slices();
    let reserved = own.map(|(rate, burst)| Guarantee {
        rate_bps: rate.rate.bits_per_second(),
        burst_bytes: burst.max(spec.largest_frame()).bytes(),
        ..Guarantee::default()
    });
    LinkDirection {
        admission: AdmissionRule::SumOfRates,
        rate_bps: rate.bits_per_second(),
        counts: Counts(accounting),
        slices_count: Counts(accounting),
        largest_frame_bytes: spec.largest_frame().bytes(),
        buffer_bytes: None,
        shortest_delay_ns: 0,
        longest_delay_ns: 0,
        reserved: reserved.collect(),
    }
}

/// Guarantees of the classes of a policy, which the controller must not promise again.
fn reserved(policy: &PolicyParams) -> Vec<Guarantee> {
    let slices = policy.classes.iter().filter_map(|class| class.slice);
    let guarantees = slices.filter_map(|slice| slice.guarantee);
    let reserved = guarantees.map(|guarantee| Guarantee {
        rate_bps: guarantee.rate.bits_per_second(),
        burst_bytes: guarantee.burst.bytes(),
        delay_ns: Some(guarantee.delay.nanos()),
        smallest_frame_bytes: Some(guarantee.smallest_frame.bytes()).filter(|&bytes| bytes > 0),
    });
    reserved.collect()
}

fn common(params: &DirectionParams) -> Result<&GuaranteedParams, &'static str> {
    params.policy.guaranteed.as_ref().ok_or(NO_SLICES)
}

/// A slice that is to be added to a direction.
///
/// # Errors
/// If the terms are not valid.
pub(crate) fn new_slice(
    name: &str,
    terms: &GatewayTerms,
    params: &DirectionParams,
) -> Result<NewSlice, String> {
    Ok(NewSlice {
        name: name.to_owned(),
        matches: matches(name, &terms.matches)?,
        params: slice_params(terms, params)?,
        conditioning: Conditioning::default(),
        flow_queue: None,
        is_of_policy: false,
    })
}

/// The class map of a slice.
///
/// # Errors
/// If the matches are not valid.
pub(crate) fn matches(name: &str, matches: &[Match]) -> Result<ClassMap, String> {
    if matches.is_empty() {
        return Err("it matches no packet: `matches` is empty".to_owned());
    }
    // Each is put into the tables between two packets.
    if matches.len() > MATCHES_MAX {
        let count = matches.len();
        return Err(format!(
            "has {count} matches: expected at most {MATCHES_MAX}"
        ));
    }
    let matches = class_map(name, matches);
    matches.map_err(|invalid| format!("matches: {invalid}"))
}

/// The class map of a slice that is in force, which may have no packets for a while.
///
/// # Errors
/// If the matches are not valid.
pub(crate) fn matches_or_none(name: &str, packets: &[Match]) -> Result<ClassMap, String> {
    if packets.is_empty() {
        return Ok(ClassMap {
            name: name.to_owned(),
            mode: MatchMode::Any,
            conditions: Vec::new(),
        });
    }
    matches(name, packets)
}

/// The parameters of a slice of a direction.
///
/// # Errors
/// If the terms are not valid.
pub(crate) fn slice_params(
    terms: &GatewayTerms,
    params: &DirectionParams,
) -> Result<SliceParams, String> {
    let maximum = terms.maximum.as_ref().map(|maximum| MaximumSpec {
        rate: RateSpec::Absolute(BitRate::new(maximum.rate_bps)),
        burst: Some(BurstSpec::Size(ByteCount::new(maximum.burst_bytes))),
    });
    SliceParams::to_add(
        terms.request(1).as_ref(),
        maximum.as_ref(),
        terms.weight,
        common(params)?,
        params.link.rate,
    )
}

/// A slice of a direction that meters slices, as a class.
///
/// # Errors
/// If the terms are not valid.
pub(crate) fn metered_class(
    name: &str,
    terms: &GatewayTerms,
    params: &DirectionParams,
) -> Result<ClassParams, String> {
    let guarantee = terms.guarantee.as_ref();
    let guarantee = guarantee.ok_or("it has no guaranteed rate, which this gateway needs")?;
    let rate = |bps| Rate {
        rate: BitRate::new(bps),
        accounting: params.link.accounting,
    };
    let cir = rate(guarantee.rate_bps);
    // Without a maximum, the link limits it.
    let maximum = terms.maximum.as_ref();
    let pir = maximum.map_or(params.link, |maximum| rate(maximum.rate_bps));
    let pbs = maximum.map_or(guarantee.burst_bytes, |maximum| maximum.burst_bytes);
    if pir.rate < cir.rate {
        let (cir, pir) = (cir.rate, pir.rate);
        return Err(format!(
            "its maximum, {pir}, is less than its guaranteed rate, {cir}"
        ));
    }
    let is_udp = |packets: &Match| packets.protocol.map(Protocol::number) == Some(UDP);
    let metered = MeteredParams {
        cir,
        cbs: ByteCount::new(guarantee.burst_bytes),
        pir,
        pbs: ByteCount::new(pbs),
        is_udp: terms.matches.iter().all(is_udp),
    };
    let matches = matches(name, &terms.matches)?;
    Ok(params.policy.metered_class(matches, metered))
}

/// Returns what is done about the flows of a slice of a direction.
///
/// # Errors
/// If they are not valid, or more flows can be above the rate of elephants than can be followed.
pub(crate) fn flows_params(
    terms: &FlowTerms,
    params: &DirectionParams,
) -> Result<SliceFlows, String> {
    let checked = terms.check();
    checked.map_err(|invalid| format!("flows: {invalid}"))?;
    let elephants = |terms: &ElephantTerms| {
        let flows = terms.flows_on(params.link.rate);
        let flows = flows.map_err(|invalid| invalid.to_string())?;
        Ok::<_, String>(ElephantsParams {
            queue: String::new(),
            threshold: ByteCount::new(terms.threshold_bytes()),
            detector: Detector::HeavyHitters,
            interval: Duration::from_millis(terms.interval_ms),
            times: terms.times,
            flows: flows.max(FOLLOWED_MIN),
        })
    };
    Ok(SliceFlows {
        weigh: terms.weight_per_flow,
        queue: terms.flow_queueing.then_some(FLOW_QUEUE),
        elephants: terms.elephants.as_ref().map(elephants).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_api::Match;
    use slicewise_model::{ClassSpec, Discipline, GuaranteedSpec, PolicySpec, Rate};

    #[test]
    fn classes_of_either_direction_are_announced_unless_no_slice_can_have_their_name() {
        let params = |names: &[&str]| {
            let class = |name: &&str| {
                let matches = Match {
                    vlan: Some(1),
                    ..Match::default()
                };
                ClassSpec::new(class_map(name, &[matches]).unwrap())
            };
            let spec = PolicySpec {
                name: "test".to_owned(),
                classes: names.iter().map(class).collect(),
                discipline: Discipline::Guaranteed,
                guaranteed: Some(GuaranteedSpec::default()),
                queues: Vec::new(),
            };
            let link = BitRate::new(10_000_000);
            DirectionParams {
                link: Rate::l2(link),
                policy: spec.resolve(link).unwrap().into(),
                seed: 1,
            }
        };
        let both = [params(&["voice", "Video"]), params(&["voice", "data"])];
        let announced = announcement("uplink", &both).unwrap();
        assert_eq!(announced.classes, ["data", "voice"]);
    }

    #[test]
    fn what_a_modem_adds_is_announced() {
        let accounting = "L3 + 40 B in ATM cells".parse().unwrap();
        let spec = PolicySpec {
            name: "test".to_owned(),
            classes: Vec::new(),
            discipline: Discipline::Guaranteed,
            guaranteed: Some(GuaranteedSpec {
                accounting,
                ..GuaranteedSpec::default()
            }),
            queues: Vec::new(),
        };
        let rate = BitRate::new(10_000_000);
        let link = Rate { rate, accounting };
        let params = DirectionParams {
            link,
            policy: spec.resolve(rate).unwrap().into(),
            seed: 1,
        };
        let announced = announcement("uplink", &[params.clone(), params]).unwrap();
        announced.check().unwrap();
        let json = serde_json::to_value(&announced.forward).unwrap();
        assert_eq!(json["counts"], "L3 + 40 B in ATM cells");
        assert_eq!(json["slices_count"], "L3 + 40 B in ATM cells");
        let read: LinkDirection = serde_json::from_value(json).unwrap();
        assert_eq!(read.admission().unwrap().link, link);
    }
}
