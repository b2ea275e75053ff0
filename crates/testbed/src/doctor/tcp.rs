//! The kernel's TCP, for applications.

use super::finding::{Check, Finding, Fix, Group};
use crate::congestion;
use crate::hosts::within;
use crate::scratch::Scratch;
use slicewise_live::sys::diag::TcpDiagnostics;
use slicewise_traffic::transport::CongestionControl;

const CONGESTION: Check = Check {
    group: Group::Network,
    name: "congestion control",
    needed_for: "applications of a study over TCP",
    stops: &[],
};
const FIGURES: Check = Check {
    group: Group::Network,
    name: "TCP figures",
    needed_for: "applications of a study: goodput, retransmissions, round-trip times, windows",
    stops: &[],
};

pub(super) const CHECKS: [Check; 2] = [CONGESTION, FIGURES];

pub(super) fn examine(scratch: &Scratch) -> [Finding; 2] {
    [
        congestion_controls(congestion::is_available),
        figures(scratch),
    ]
}

fn congestion_controls(is_available: impl Fn(CongestionControl) -> bool) -> Finding {
    let names = |wanted: bool| -> Vec<&str> {
        // No released kernel has Prague: it is missed only by a study that names it.
        let all = CongestionControl::ALL
            .into_iter()
            .filter(|control| *control != CongestionControl::Prague);
        let those = all.filter(|control| is_available(*control) == wanted);
        those.map(congestion::name).collect()
    };
    let there = names(true).join(", ");
    let missing = names(false);
    if missing.is_empty() {
        return CONGESTION.ready(there);
    }
    let symbols: Vec<String> = missing
        .iter()
        .map(|name| format!("CONFIG_TCP_CONG_{}", name.to_uppercase()))
        .collect();
    CONGESTION
        .limited(format!("{there}; no {}", missing.join(", no ")))
        .with_fix(Fix::advice(format!(
            "a kernel with {}",
            symbols.join(" and ")
        )))
}

fn figures(scratch: &Scratch) -> Finding {
    let tried = within(scratch.name(), || TcpDiagnostics::new()?.open());
    match tried {
        Ok(_) => FIGURES.ready("works"),
        Err(problem) => FIGURES
            .missing(problem)
            .with_fix(Fix::advice("a kernel with CONFIG_INET_TCP_DIAG")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lacks_is_named_with_what_brings_it() {
        let finding = congestion_controls(|control| control != CongestionControl::Dctcp);
        assert_eq!(finding.detail, "reno, cubic, bbr; no dctcp");
        let fix = Fix::advice("a kernel with CONFIG_TCP_CONG_DCTCP");
        assert_eq!(finding.fix, Some(fix));
        assert_eq!(
            congestion_controls(|_| true).detail,
            "reno, cubic, dctcp, bbr"
        );
    }
}
