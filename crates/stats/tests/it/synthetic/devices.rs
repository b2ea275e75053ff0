//! Devices of known behaviour: what each slice gets under the loads of the router study.

use super::{LINK, Service};

pub const SCENARIOS: u32 = 7;
pub const BASE: f64 = 0.45 * LINK;

/// On/off peak of best effort: 5, 15, 20, … 40 % of the link, as in the router study.
pub fn peak(scenario: u32) -> f64 {
    let percent = if scenario == 0 {
        5.0
    } else {
        10.0 + 5.0 * f64::from(scenario)
    };
    percent / 100.0 * LINK
}

/// A best-effort slice that gets at most `limit`.
pub fn limited(scenario: u32, limit: f64) -> Service {
    let service = Service::on_off(BASE, peak(scenario));
    let (on, off) = service.offered;
    let received = (on.min(limit), off.min(limit));
    Service {
        received,
        loss_ratio: 1.0 - (received.0 + received.1) / (on + off),
        ..service
    }
}

/// Best effort takes what the link has left, its queue carries the rest into the off phase.
pub fn work_conserving(scenario: u32) -> Service {
    let service = Service::on_off(BASE, peak(scenario));
    let (on, off) = service.offered;
    let free = LINK - BASE;
    let backlog = (on - free).max(0.0);
    Service {
        received: (on.min(free), (off + backlog).min(free)),
        ..service
    }
}

pub fn shaping(scenario: u32) -> [Service; 2] {
    [Service::untroubled(BASE), limited(scenario, 17.5e6)]
}

pub fn priority(scenario: u32) -> [Service; 2] {
    [Service::untroubled(BASE), work_conserving(scenario)]
}

/// As priority, but the delay of the critical slice grows with the load of the other.
pub fn bandwidth(scenario: u32) -> [Service; 2] {
    let factor = if scenario < 3 {
        1.0
    } else {
        1.0 + 0.26 * f64::from(scenario - 2)
    };
    let base = Service::untroubled(BASE);
    let critical = Service {
        delay_mean_ns: base.delay_mean_ns * factor,
        delay_p99_ns: base.delay_p99_ns * factor,
        ..base
    };
    [critical, work_conserving(scenario)]
}

pub fn no_policy(scenario: u32) -> [Service; 2] {
    let mut critical = Service::untroubled(BASE);
    if scenario > 0 {
        critical.delay_mean_ns *= 40.0;
        critical.delay_p99_ns *= 50.0;
        critical.loss_ratio = 0.01 * f64::from(scenario);
        critical.received.0 *= 1.0 - critical.loss_ratio * 2.0;
    }
    [critical, work_conserving(scenario)]
}
