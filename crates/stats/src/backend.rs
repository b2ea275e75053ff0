//! Back ends: what executes runs, and how results name it.

/// How the runs of a back end come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// Under virtual time, with the device of the study as a model.
    Simulated,
    /// With real packets through a device on this machine or in a lab, not the model of the study.
    Testbed,
    /// Elsewhere; known from captures.
    Captured,
}

/// A back end. Its order among others is its place in [`BACK_ENDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendInfo {
    /// Identifier in results, and for `--on` of a live one.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// How its runs come about.
    pub kind: BackendKind,
}

/// The simulator.
pub const SIMULATOR: BackendInfo = BackendInfo {
    id: "simulator",
    name: "simulator",
    kind: BackendKind::Simulated,
};

/// The gateway of this program.
pub const GATEWAY: BackendInfo = BackendInfo {
    id: "gateway",
    name: "gateway",
    kind: BackendKind::Testbed,
};

/// Queueing disciplines of the Linux kernel.
pub const TC: BackendInfo = BackendInfo {
    id: "tc",
    name: "Linux tc",
    kind: BackendKind::Testbed,
};

/// DPDK's hierarchical scheduler, `librte_sched`.
pub const DPDK: BackendInfo = BackendInfo {
    id: "dpdk",
    name: "DPDK",
    kind: BackendKind::Testbed,
};

/// Device of the user, between hosts of a lab.
pub const LAB: BackendInfo = BackendInfo {
    id: "lab",
    name: "lab",
    kind: BackendKind::Testbed,
};

/// Runs executed elsewhere and captured.
pub const CAPTURES: BackendInfo = BackendInfo {
    id: "captures",
    name: "captures",
    kind: BackendKind::Captured,
};

/// All of them, from the model to the one farthest from it: the order in which reports show them.
pub const BACK_ENDS: [BackendInfo; 6] = [SIMULATOR, GATEWAY, TC, DPDK, LAB, CAPTURES];

/// The back end that results call `id`; `None` for one that this version does not know.
#[must_use]
pub fn named(id: &str) -> Option<BackendInfo> {
    BACK_ENDS.into_iter().find(|info| info.id == id)
}

/// Returns the name for people of the back end `id`: one that is not known, by its id.
#[must_use]
pub fn name(id: &str) -> &str {
    named(id).map_or(id, |info| info.name)
}

/// The place of the back end `id` in [`BACK_ENDS`]; behind all of them for one that is not known.
#[must_use]
pub fn order(id: &str) -> usize {
    let mut all = BACK_ENDS.iter();
    all.position(|info| info.id == id)
        .unwrap_or(BACK_ENDS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_end_that_is_not_known_keeps_its_id_and_comes_last() {
        assert_eq!((name("tc"), order("tc")), ("Linux tc", 2));
        assert_eq!((name("p4"), order("p4")), ("p4", 6));
        assert_eq!(named("p4"), None);
    }

    #[test]
    fn no_two_back_ends_have_an_id_or_a_name_in_common() {
        for (place, info) in BACK_ENDS.iter().enumerate() {
            assert_eq!(order(info.id), place);
            let of_name = BACK_ENDS.iter().filter(|other| other.name == info.name);
            assert_eq!(of_name.count(), 1);
        }
    }
}
