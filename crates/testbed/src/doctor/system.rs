//! The machine itself: kernel, processors, punctuality.

use super::finding::{Check, EVERYTHING, Finding, Group, Mend};
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
    needed_for: "senders and a device that do not wait for each other",
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
    needed_for: "runs that count: one above the limit is made again",
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
            .mended_by(Mend::advice("run it on Linux"))
    } else {
        LINUX.ready(version)
    }
}

fn processors() -> Finding {
    match thread::available_parallelism().map(usize::from) {
        Ok(1) => PROCESSORS
            .limited("1: sources, device and captures take turns")
            .mended_by(Mend::advice("2 or more")),
        Ok(count) => PROCESSORS.ready(count.to_string()),
        Err(error) => PROCESSORS.unknown(error.to_string()),
    }
}

/// On a thread of its own, which then ends: this one stays as it is.
fn real_time() -> Finding {
    match thread::spawn(scheduling::become_real_time).join() {
        Ok(Ok(())) => REAL_TIME.ready("allowed (SCHED_FIFO)"),
        Ok(Err(error)) => REAL_TIME
            .limited(format!("not allowed: {error}"))
            .mended_by(Mend::advice(
                "root, or CAP_SYS_NICE; and in a control group with real-time scheduling, its share of that",
            )),
        Err(_) => REAL_TIME.unknown("the thread that tried did not end well"),
    }
}

/// Of the time since the examination began, the share that the host withheld.
pub(super) fn steal(ratio: f64) -> Finding {
    let most = Thresholds::default().steal_ratio;
    let detail = format!(
        "{:.1} % over the last second; a run counts with at most {:.1} %",
        100.0 * ratio,
        100.0 * most
    );
    if ratio > most {
        STEAL.limited(detail).mended_by(Mend::advice(
            "a quieter host, or another time: other virtual machines take this one's processors",
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
    fn steal_is_measured_against_what_a_run_must_keep() {
        let most = Thresholds::default().steal_ratio;
        let at_the_limit = steal(most);
        assert_eq!(at_the_limit.state, State::Ready);
        let said = format!("; a run counts with at most {:.1} %", 100.0 * most);
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
