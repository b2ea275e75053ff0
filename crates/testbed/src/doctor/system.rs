//! The machine itself: kernel, processors, punctuality.

use super::finding::{Check, EVERYTHING, Finding, Fix, Group};
use crate::acceptance::Thresholds;
use crate::machine;
use slicewise_live::sys::scheduling;
use std::thread;

const LINUX: Check = Check {
    group: Group::Machine,
    name: "Linux",
    needed_for: "everything on real packets",
    stops: EVERYTHING,
};
const PROCESSORS: Check = Check {
    group: Group::Machine,
    name: "processors",
    needed_for: "running senders and device in parallel",
    stops: &[],
};
const REAL_TIME: Check = Check {
    group: Group::Machine,
    name: "real-time threads",
    needed_for: "punctual departures and senders",
    stops: &[],
};
const STEAL: Check = Check {
    group: Group::Machine,
    name: "steal",
    needed_for: "valid runs: one above the limit is repeated",
    stops: &[],
};

pub(super) fn examine() -> Vec<Finding> {
    vec![linux(), processors(), real_time()]
}

fn linux() -> Finding {
    let version = machine::kernel_version();
    if version.is_empty() {
        LINUX
            .missing("this is not Linux, or /proc is not mounted")
            .with_fix(Fix::advice("run it on Linux"))
    } else {
        LINUX.ready(version)
    }
}

fn processors() -> Finding {
    match thread::available_parallelism().map(usize::from) {
        Ok(1) => PROCESSORS
            .limited("1: sources, device and captures share it")
            .with_fix(Fix::advice("2 or more")),
        Ok(count) => PROCESSORS.ready(count.to_string()),
        Err(error) => PROCESSORS.unknown(error.to_string()),
    }
}

/// On a separate thread that then ends, so that this one is unchanged.
fn real_time() -> Finding {
    match thread::spawn(scheduling::become_real_time).join() {
        Ok(Ok(())) => REAL_TIME.ready("allowed (SCHED_FIFO)"),
        Ok(Err(error)) => REAL_TIME
            .limited(format!("not allowed: {error}"))
            .with_fix(Fix::advice(
                "root, or CAP_SYS_NICE; in a control group with real-time scheduling, also a \
                 real-time budget",
            )),
        Err(_) => REAL_TIME.unknown("the test thread panicked"),
    }
}

/// Share of the time since the examination began that the host took.
pub(super) fn steal(ratio: f64) -> Finding {
    let most = Thresholds::default().steal_ratio;
    let detail = format!(
        "{:.1} % over the last second; at most {:.1} % is accepted in a run",
        100.0 * ratio,
        100.0 * most
    );
    if ratio > most {
        STEAL.limited(detail).with_fix(Fix::advice(
            "use a less busy host, or another time: other virtual machines take this one's \
             processor time",
        ))
    } else {
        STEAL.ready(detail)
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn steal_is_compared_with_the_limit_of_a_run() {
        let most = Thresholds::default().steal_ratio;
        let at_the_limit = steal(most);
        assert_eq!(at_the_limit.state, State::Ready);
        let said = format!("; at most {:.1} % is accepted in a run", 100.0 * most);
        assert!(
            at_the_limit.detail.ends_with(&said),
            "{}",
            at_the_limit.detail
        );
        let needed_for = at_the_limit.needed_for;
        assert!(!needed_for.contains('%'), "a second number: {needed_for}");
        assert_eq!(steal(most + 0.001).state, State::Limited);
    }
}
