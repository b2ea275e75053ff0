//! Names of the devices that can be studied, and the limits their makers state.

use crate::params::{
    DutModel, DutParams, HopParams, QosSchedParams, QosSchedThreads, SwitchParams,
};
use slicewise_model::{
    Action, BurstSpec, ClassParams, Discipline, Part, PolicyError, PolicyParams, PolicySpec, Rate,
    ShaperSpec,
};
use slicewise_stats::description::{Capacity, Scalability, SliceLimit};
use slicewise_traffic::RateSeries;
use slicewise_units::{Accounting, Duration, FrameLengths, Rounded};
use std::collections::BTreeSet;

/// Classes that can be used in one policy of an ISR 4221.
const ISR4221_CLASSES: usize = 256;
/// Levels of `priority` on an ISR 4221.
const ISR4221_PRIORITY_LEVELS: u8 = 2;
/// Where both are stated: measured on the device, IOS XE 16.12.04.
const ISR4221_SOURCE: &str = "limits of the Cisco ISR 4221 with IOS XE 16.12.04 (Grøsvik 2023)";
/// Where the number of meters of a switch is stated.
const SWITCH_SOURCE: &str = "the Intel Tofino switch as published (Chen et al. 2022)";
/// Meters of a switch. Its table of flows is longer: 40,960 entries.
const SWITCH_METERS: u64 = 35_840;

/// Returns a policy as a device runs it, if that can hold it.
pub(crate) fn fitting(
    policy: &PolicySpec,
    device: &DutParams,
) -> Result<PolicyParams, PolicyError> {
    let params = policy.resolve_for(device.port())?;
    let params = with_credit(device.model, policy, params);
    check_limits(device.model, &params)?;
    Ok(params)
}

/// `params`, resolved from `spec`, with the credit that queues save on the device, where the policy does not say it.
pub(crate) fn with_credit(
    model: DutModel,
    spec: &PolicySpec,
    mut params: PolicyParams,
) -> PolicyParams {
    let DutModel::Switch(SwitchParams {
        credit: Some(credit),
        ..
    }) = model
    else {
        return params;
    };
    for class in &mut params.classes {
        let Some(written) = spec.classes.iter().find(|of| of.name == class.name) else {
            continue;
        };
        if let Some((rate, burst)) = &mut class.minimum {
            *burst = BurstSpec::Time(credit).size(rate.rate);
        }
        if let (
            Some(shaper),
            Some(ShaperSpec {
                committed_burst_bits: None,
                ..
            }),
        ) = (&mut class.shape, written.shape)
        {
            shaper.burst = BurstSpec::Time(credit).size(shaper.rate.rate);
        }
        if let (Some(child), Some(written)) = (class.child.take(), written.child.as_deref()) {
            class.child = Some(Box::new(with_credit(model, written, *child)));
        }
    }
    params
}

/// Checks that the device can hold `policy` at all.
pub(crate) fn check_limits(model: DutModel, policy: &PolicyParams) -> Result<(), PolicyError> {
    match model {
        DutModel::Isr4221 => check_isr4221(policy),
        DutModel::Switch(switch) => check_queues(switch, policy),
        DutModel::Port | DutModel::Gateway | DutModel::Tc { .. } | DutModel::QosSched(_) => Ok(()),
    }
}

/// The queues of a policy fit on a port.
fn check_queues(switch: SwitchParams, policy: &PolicyParams) -> Result<(), PolicyError> {
    let (mut needed, mut first_beyond) = (0, None);
    for queue in queues(policy) {
        needed += u64::from(queue.queues);
        if needed > u64::from(switch.queues) {
            first_beyond = first_beyond.or(Some(queue));
        }
    }
    let Some(Queues {
        part, of: class, ..
    }) = first_beyond
    else {
        return Ok(());
    };
    Err(PolicyError {
        policy: policy.name.clone(),
        part,
        class: class.to_owned(),
        field: "name",
        problem: format!(
            "the policy needs {needed} queues, that of class-default included, and a port of the switch has {}: {}",
            switch.queues,
            fewer_queues(policy)
        ),
    })
}

/// How a policy comes to need fewer queues.
fn fewer_queues(policy: &PolicyParams) -> String {
    let of_class = |class: &ClassParams| {
        let actions = class
            .police
            .as_ref()
            .map(|police| [&police.conform, &police.exceed, &police.violate]);
        let by_colour = actions
            .into_iter()
            .flatten()
            .filter_map(|action| match action {
                Action::Queue(queue) => Some(queue.clone()),
                Action::Transmit | Action::Drop | Action::SetDscp(_) | Action::SetQosGroup(_) => {
                    None
                }
            });
        let of_elephants = class
            .elephants
            .iter()
            .map(|elephants| elephants.queue.clone());
        let own = class.named_queue.clone().into_iter();
        own.chain(by_colour)
            .chain(of_elephants)
            .collect::<Vec<String>>()
    };
    let used: BTreeSet<String> = policy.classes.iter().flat_map(of_class).collect();
    let unused = policy
        .queues
        .iter()
        .filter(|queue| !used.contains(&queue.name));
    let unused: Vec<String> = unused.map(|queue| format!("`{}`", queue.name)).collect();
    match unused.is_empty() {
        true => "merge classes".to_owned(),
        false => format!(
            "leave out queues that no class uses ({})",
            unused.join(", ")
        ),
    }
}

/// Queues that a class has, or a named one.
#[derive(Debug, Clone, Copy)]
struct Queues<'a> {
    part: Part,
    of: &'a str,
    queues: u32,
}

/// The queues of a policy. A class with a child has those of its child, one that waits in a named queue has none, and one
/// with a queue for each flow has as many as it has flows.
fn queues(policy: &PolicyParams) -> Vec<Queues<'_>> {
    if policy.discipline == Discipline::Fifo {
        let class = policy.classes.last().into_iter();
        let one = class.map(|class| Queues {
            part: Part::Class,
            of: &class.name,
            queues: 1,
        });
        return one.collect();
    }
    let named = policy.queues.iter().map(|queue| Queues {
        part: Part::Queue,
        of: &queue.name,
        queues: queue.queue.queues(),
    });
    let mut all: Vec<Queues<'_>> = named.collect();
    for class in policy
        .classes
        .iter()
        .filter(|class| class.named_queue.is_none())
    {
        match &class.child {
            Some(child) => all.extend(queues(child)),
            None => all.push(Queues {
                part: Part::Class,
                of: &class.name,
                queues: class.queue.queues(),
            }),
        }
    }
    all
}

fn check_isr4221(policy: &PolicyParams) -> Result<(), PolicyError> {
    let fail = |class: &str, field, problem: String| {
        Err(PolicyError {
            policy: policy.name.clone(),
            part: Part::Class,
            class: class.to_owned(),
            field,
            problem,
        })
    };
    if policy.classes.len() > ISR4221_CLASSES {
        let problem = format!(
            "an ISR 4221 supports {ISR4221_CLASSES} classes per policy, class-default included; this one \
             has {}",
            policy.classes.len()
        );
        return fail("", "classes", problem);
    }
    if let Some(queue) = policy.queues.first() {
        let problem =
            "each class of an ISR 4221 has a queue of its own: leave `queues` out".to_owned();
        return Err(PolicyError {
            policy: policy.name.clone(),
            part: Part::Queue,
            class: queue.name.clone(),
            field: "queues",
            problem,
        });
    }
    for class in &policy.classes {
        if class
            .priority
            .is_some_and(|priority| priority.level > ISR4221_PRIORITY_LEVELS)
        {
            let problem = format!("an ISR 4221 supports {ISR4221_PRIORITY_LEVELS} priority levels");
            return fail(&class.name, "priority", problem);
        }
        if let Some(child) = &class.child {
            check_isr4221(child)?;
        }
    }
    Ok(())
}

/// How many slices a mechanism can hold on the device, as its maker or a measurement states.
pub(crate) fn scalability(model: DutModel, policy: &PolicyParams) -> Scalability {
    match model {
        DutModel::Port | DutModel::Gateway | DutModel::Tc { .. } | DutModel::QosSched(_) => {
            Scalability {
                slices: SliceLimit::NotStated,
                limited_by: "none is stated for this device".to_owned(),
                source: "a single port has no tables".to_owned(),
            }
        }
        DutModel::Switch(SwitchParams { queues, .. }) => {
            let (slices, limited_by, source) = match metered_into_queues(policy) {
                true => (SWITCH_METERS, "35,840 meters".to_owned(), SWITCH_SOURCE),
                false => (
                    queues.into(),
                    format!("{queues} queues a port"),
                    "`dut.queues` of the study",
                ),
            };
            Scalability {
                slices: SliceLimit::Slices(slices),
                limited_by,
                source: source.to_owned(),
            }
        }
        DutModel::Isr4221 => {
            let (slices, limited_by) = if uses_priority(policy) {
                (
                    u64::from(ISR4221_PRIORITY_LEVELS),
                    "2 priority levels (256 classes)",
                )
            } else {
                (256, "256 classes in a policy")
            };
            Scalability {
                slices: SliceLimit::Slices(slices),
                limited_by: limited_by.to_owned(),
                source: ISR4221_SOURCE.to_owned(),
            }
        }
    }
}

/// Returns true if slices have meters of their own and share queues.
fn metered_into_queues(policy: &PolicyParams) -> bool {
    let metered = policy.classes.iter().filter(|class| class.police.is_some());
    let queues: Vec<Option<&String>> = metered.map(|class| class.named_queue.as_ref()).collect();
    !queues.is_empty() && queues.iter().all(Option::is_some)
}

fn uses_priority(policy: &PolicyParams) -> bool {
    policy
        .classes
        .iter()
        .any(|class| class.priority.is_some() || class.child.as_deref().is_some_and(uses_priority))
}

/// Returns the capacity that slices share, in L2 bytes as shares count it.
pub(crate) fn capacity(dut: &DutParams) -> Capacity {
    let rate = dut.capacity();
    // Of a frame that needs no padding: how many bytes it is beside those of L2, before they fill cells.
    let frame = FrameLengths {
        l2_bytes: 1_500,
        l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
    };
    let before_cells = Accounting {
        in_atm_cells: false,
        ..rate.accounting
    };
    let occupies = before_cells.count(frame).bytes();
    let overhead = occupies.saturating_sub(u64::from(frame.l2_bytes));
    Capacity {
        bits_per_second: rate.rate.bits_per_second(),
        frame_overhead_bytes: u32::try_from(overhead).unwrap_or(0),
        in_atm_cells: rate.accounting.in_atm_cells,
        varies: false,
    }
}

/// How long a frame occupies what slices share.
pub(crate) fn frame_time(rate: Rate, frame: FrameLengths) -> Duration {
    let bits = u128::from(rate.accounting.count(frame).bytes()) * 8;
    let per_second = u128::from(rate.rate.bits_per_second().max(1));
    let ns = (bits * 1_000_000_000).div_ceil(per_second);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The device, or the devices of a path, in one line.
pub(crate) fn describe_path(
    dut: &DutParams,
    series: Option<&RateSeries>,
    path: &[HopParams],
) -> String {
    if let Some(series) = series {
        let (lowest, highest) = series.range();
        let mean = dut.port_rate.rate.rounded_up();
        return format!("egress port of {lowest} to {highest}, on average {mean} (model)");
    }
    if path.is_empty() {
        return describe(dut);
    }
    let hops = path.iter();
    let hops = hops.map(|hop| format!("{}: {}", hop.name, describe(&hop.device)));
    format!("path of {}", hops.collect::<Vec<_>>().join("; "))
}

/// A device in one line.
pub(crate) fn describe(dut: &DutParams) -> String {
    match (dut.model, dut.licence) {
        (DutModel::Isr4221, Some(licence)) => format!(
            "Cisco ISR 4221 (model), licence {} of {}, ports {}",
            licence.rate.rate, licence.rate.accounting, dut.port_rate.rate
        ),
        (DutModel::Isr4221, None) => {
            format!("Cisco ISR 4221 (model), ports {}", dut.port_rate.rate)
        }
        (DutModel::Gateway, _) => format!(
            "gateway (model), link of {} {}",
            dut.port_rate.rate, dut.port_rate.accounting
        ),
        (DutModel::Tc { .. }, _) => format!(
            "Linux traffic control (model), link of {} {}",
            dut.port_rate.rate, dut.port_rate.accounting
        ),
        (DutModel::Switch(switch), _) => {
            let buffer = switch.buffer_packets;
            let buffer = buffer.map_or_else(String::new, |packets| {
                format!(", which share a buffer of {packets} packets")
            });
            let credit = switch.credit;
            let credit = credit.map_or_else(String::new, |credit| {
                format!(", whose credit is {credit} of their rates")
            });
            let pauses = match switch.flow_control {
                None => "",
                Some(control) if control.per_priority => ", priority flow control",
                Some(_) => ", flow control",
            };
            format!(
                "switch (model), ports of {} with {} queues{credit}{buffer}{pauses}",
                dut.port_rate.rate, switch.queues
            )
        }
        (
            DutModel::QosSched(QosSchedParams {
                threads,
                burst,
                drain,
                ..
            }),
            _,
        ) => {
            let transmits = match threads {
                QosSchedThreads::Separate => String::new(),
                QosSchedThreads::Mixed => format!(", a worker that transmits, drain {drain}"),
            };
            format!(
                "DPDK's qos_sched (model), port of {}, bursts of {}, {}, {} and {}{transmits}",
                dut.port_rate.rate, burst.receive, burst.enqueue, burst.dequeue, burst.transmit
            )
        }
        (DutModel::Port, _) => format!("egress port of {} (model)", dut.port_rate.rate),
    }
}
