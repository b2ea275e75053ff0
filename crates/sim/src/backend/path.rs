//! The devices on a study's path and the links between them.

use super::{failed, unsupported};
use crate::device::Plane;
use crate::device::isr4221::{LicenceParams, isr4221};
use crate::device::port::port;
use crate::device::qos_sched::QosSched;
use crate::device::switch::Switch;
use crate::device::tc::Tc;
use crate::link::{Handover, LinkParams};
use slicewise_model::{Discipline, PolicyParams, PolicySpec, Rate};
use slicewise_study::{DutModel, DutParams, FlowControlParams, RunError, Study};

/// Returns the forwarding plane of a device.
pub(super) fn forwarding(
    device: &DutParams,
    policy: &PolicyParams,
    seed: u64,
) -> Result<Plane, RunError> {
    let policy = policy.clone();
    let plane = match (device.model, device.licence) {
        (DutModel::Port | DutModel::Gateway, None) => port(policy, seed).map(Plane::Pipeline),
        (DutModel::Switch(switch), None) => {
            Switch::new(policy, switch.buffer_packets, seed).map(Plane::Switch)
        }
        (DutModel::Tc { burst }, None) => {
            Tc::new(policy, device.port_rate, burst, seed).map(Plane::Tc)
        }
        (DutModel::QosSched(threads), None) => {
            QosSched::new(policy, threads, seed).map(Plane::from)
        }
        (DutModel::Isr4221, Some(licence)) => {
            let licence = LicenceParams {
                rate: licence.rate,
                credit: licence.credit,
                priority_borrows: licence.priority_borrows,
            };
            isr4221(policy, &licence, seed).map(Plane::Pipeline)
        }
        (
            DutModel::Port
            | DutModel::Gateway
            | DutModel::Switch(_)
            | DutModel::Tc { .. }
            | DutModel::QosSched(_),
            Some(_),
        ) => return Err(unsupported("a plain port with a licence")),
        (DutModel::Isr4221, None) => return Err(unsupported("an ISR 4221 without a licence")),
    };
    plane.map_err(failed)
}

/// Flow control of the links that lead to a device.
pub(super) const fn flow_control(device: &DutParams) -> Option<FlowControlParams> {
    match device.model {
        DutModel::Switch(switch) => switch.flow_control,
        DutModel::Port
        | DutModel::Gateway
        | DutModel::Isr4221
        | DutModel::Tc { .. }
        | DutModel::QosSched(_) => None,
    }
}

/// The link behind a device.
pub(super) fn egress_link(study: &Study, device: &DutParams) -> LinkParams {
    let (rate, handover) = match device.model {
        DutModel::Gateway => (device.port_rate, Handover::FirstBit),
        DutModel::Port | DutModel::Isr4221 | DutModel::Switch(_) | DutModel::QosSched(_) => {
            (device.port_rate, Handover::LastBit)
        }
        // A token bucket decides when a frame leaves, not the interface.
        DutModel::Tc { .. } => (study.link.rate, Handover::LastBit),
    };
    LinkParams {
        rate,
        propagation: study.link.propagation,
        handover,
    }
}

/// The link by which what comes back reaches a port: as fast as the one that leads away from it, or as that between
/// hosts and device where a device paces what leaves, or where its rate changes.
pub(super) fn back(forth: LinkParams, study: &Study) -> LinkParams {
    match forth.handover {
        Handover::LastBit if study.port_series.is_none() => forth,
        Handover::LastBit | Handover::FirstBit => LinkParams {
            rate: study.link.rate,
            handover: Handover::LastBit,
            ..forth
        },
    }
}

/// Returns true if frames that arrive at one rate never wait for long to be sent at another.
pub(super) fn is_as_fast(sent: Rate, arriving: Rate) -> bool {
    sent.accounting == arriving.accounting && sent.rate >= arriving.rate
}

/// Returns the forwarding plane for the way back, to which no policy of a study applies, where frames may wait: one
/// queue; between threads of its own where the device has threads, since nothing else reads an interface of DPDK.
pub(super) fn way_back(study: &Study, device: &DutParams, seed: u64) -> Result<Plane, RunError> {
    let policy = PolicySpec {
        name: "way back".to_owned(),
        classes: Vec::new(),
        discipline: Discipline::Fifo,
        guaranteed: None,
        queues: Vec::new(),
    };
    let policy = policy.resolve_for(study.link.rate.into()).map_err(failed)?;
    let plane = match device.model {
        DutModel::QosSched(threads) => QosSched::new(policy, threads, seed).map(Plane::from),
        _ => port(policy, seed).map(Plane::Pipeline),
    };
    plane.map_err(failed)
}
