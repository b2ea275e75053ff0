//! What a study says of itself.

use crate::synthetic::{published, study};
use slicewise_stats::description::SliceLimit;
use slicewise_stats::observations::Observations;
use slicewise_stats::verdict;

#[test]
fn a_study_is_live_where_a_device_on_this_machine_was_tested() {
    let mut study = study(&[("p", Some(published(true, true, "256")))], 1);
    for (backend, is_on_testbed) in [
        ("simulator", false),
        ("gateway", true),
        ("tc", true),
        ("captures", false),
        ("of a later version", false),
    ] {
        backend.clone_into(&mut study.backend);
        assert_eq!(study.is_on_testbed(), is_on_testbed, "{backend}");
        // The limit of slices is that of the device of the study.
        let table = verdict::judge(&study, &Observations::default());
        let agrees = table.policies[0].agrees.scalability;
        assert_eq!(agrees, (!is_on_testbed).then_some(true), "{backend}");
    }
}

#[test]
fn a_limit_of_slices_has_a_number_only_where_there_is_one() {
    assert_eq!(SliceLimit::Slices(256).number(), Some(256));
    assert_eq!(SliceLimit::NoPracticalLimit.number(), None);
    assert_eq!(SliceLimit::NotStated.number(), None);
}

#[test]
fn policies_scenarios_and_slices_have_their_places_by_name() {
    let study = study(&[("a", None), ("b", None)], 2);
    assert_eq!(study.policy_place("b"), Some(1));
    assert_eq!(study.scenario_place("s1"), Some(1));
    assert_eq!(study.slice_place("best effort"), Some(1));
    for name in ["", "a b"] {
        let places = [
            study.policy_place(name),
            study.scenario_place(name),
            study.slice_place(name),
        ];
        assert_eq!(places, [None; 3]);
    }
}
