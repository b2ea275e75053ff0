//! What the devices that can be studied are known for: names, and the limits their makers state.

use crate::params::{DutModel, DutParams, HopParams};
use slicewise_model::{Part, PolicyError, PolicyParams, Rate};
use slicewise_stats::description::{Capacity, Scalability, SliceLimit};
use slicewise_units::{Duration, FrameLengths, Layer};

/// Classes that can be used in one policy of an ISR 4221.
const ISR4221_CLASSES: usize = 256;
/// Levels of `priority` on an ISR 4221.
const ISR4221_PRIORITY_LEVELS: u8 = 2;
/// Where both are stated: measured on the device, IOS XE 16.12.04.
const ISR4221_SOURCE: &str = "limits of the Cisco ISR 4221 with IOS XE 16.12.04 (Grøsvik 2023)";

/// Whether the device can hold `policy` at all.
pub(crate) fn check_limits(model: DutModel, policy: &PolicyParams) -> Result<(), PolicyError> {
    if model != DutModel::Isr4221 {
        return Ok(());
    }
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
            check_limits(model, child)?;
        }
    }
    Ok(())
}

/// How many slices a mechanism can hold on the device, as its maker or a measurement states.
pub(crate) fn scalability(model: DutModel, policy: &PolicyParams) -> Scalability {
    match model {
        DutModel::Port | DutModel::Gateway | DutModel::Tc { .. } => Scalability {
            slices: SliceLimit::NotStated,
            limited_by: "none is stated for this device".to_owned(),
            source: "a single port has no tables".to_owned(),
        },
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

fn uses_priority(policy: &PolicyParams) -> bool {
    policy
        .classes
        .iter()
        .any(|class| class.priority.is_some() || class.child.as_deref().is_some_and(uses_priority))
}

/// What slices share, as shares see it: they are of L2 bytes.
pub(crate) fn capacity(dut: &DutParams) -> Capacity {
    let rate = dut.capacity();
    // Of a frame that needs no padding: how many bytes it is beside those of L2.
    let frame = FrameLengths {
        l2_bytes: 1_500,
        l3_offset: FrameLengths::UNTAGGED_L3_OFFSET,
    };
    let occupies = match rate.accounting.layer {
        Layer::L1 => rate.accounting.count(frame).bytes(),
        Layer::L2 | Layer::L3 => u64::from(frame.l2_bytes),
    };
    let overhead = occupies.saturating_sub(u64::from(frame.l2_bytes));
    Capacity {
        bits_per_second: rate.rate.bits_per_second(),
        frame_overhead_bytes: u32::try_from(overhead).unwrap_or(0),
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
pub(crate) fn describe_path(dut: &DutParams, path: &[HopParams]) -> String {
    if path.is_empty() {
        return describe(dut);
    }
    let hops = path.iter();
    let hops = hops.map(|hop| format!("{}: {}", hop.name, describe(&hop.device)));
    format!("path of {}", hops.collect::<Vec<_>>().join("; "))
}

/// A device in one line.
fn describe(dut: &DutParams) -> String {
    match (dut.model, dut.licence) {
        (DutModel::Isr4221, Some(licence)) => format!(
            "Cisco ISR 4221 (model), licence {} of {}, ports {}",
            licence.rate.rate, licence.rate.accounting.layer, dut.port_rate.rate
        ),
        (DutModel::Isr4221, None) => {
            format!("Cisco ISR 4221 (model), ports {}", dut.port_rate.rate)
        }
        (DutModel::Gateway, _) => format!(
            "gateway (model), link of {} {}",
            dut.port_rate.rate, dut.port_rate.accounting.layer
        ),
        (DutModel::Tc { .. }, _) => format!(
            "Linux traffic control (model), link of {} {}",
            dut.port_rate.rate, dut.port_rate.accounting.layer
        ),
        (DutModel::Port, _) => format!("egress port of {} (model)", dut.port_rate.rate),
    }
}
