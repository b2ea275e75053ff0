//! What a study asks for and the simulator does not model: a warning at its place, and a statement in the
//! description of the study.

use crate::support::{STUDY, changed, parse, told};
use insta::assert_snapshot;
use slicewise_study::{Pacing, Study};

fn assumptions(study: &Study) -> Vec<String> {
    study.description("test").assumptions
}

#[test]
fn a_study_that_is_simulated_as_it_is_written_has_no_warning() {
    let study = parse(STUDY).unwrap();
    assert_eq!(study.warnings().count(), 0);
    assert!(assumptions(&study).is_empty());
    let udp = parse(&changed(
        "{vlan: 20}\nsources",
        "{vlan: 20, protocol: udp}\nsources",
    ))
    .unwrap();
    assert_eq!(udp.warnings().count(), 0);
}

#[test]
fn tcp_is_warned_of_once_for_each_place_it_is_written_at() {
    let text = changed(
        "headers: {vlan: 20}\n",
        "headers: {vlan: 20, protocol: tcp}\n",
    );
    let text = text.replace(
        "payload: 1000 B}",
        "payload: 1000 B, headers: {protocol: 6}}",
    );
    let study = parse(&text).unwrap();
    assert_snapshot!(told(study.warnings()), @"
    study.yaml:15:35 `tcp`: warning: the simulator sends these packets at the source's pace, with TCP's header and without its congestion control, acknowledgements and retransmissions
    study.yaml:17:88 `6`: warning: the simulator sends these packets at the source's pace, with TCP's header and without its congestion control, acknowledgements and retransmissions
    ");
    assert_snapshot!(assumptions(&study).join("\n"), @"TCP is not simulated: packets of sources with `protocol: tcp` leave at the source's pace, without congestion control, acknowledgements and retransmissions.");
    // A source that says otherwise is not TCP.
    let text = changed(
        "headers: {vlan: 20}\n",
        "headers: {vlan: 20, protocol: tcp}\n",
    );
    let text = text.replace(
        "payload: 500 B}",
        "payload: 500 B, headers: {protocol: udp}}",
    );
    assert_eq!(parse(&text).unwrap().warnings().count(), 0);
}

#[test]
fn marks_are_not_warned_of_where_a_source_can_be_marked_which_no_testbed_sends() {
    let text = changed("headers: {vlan: 20}\n", "headers: {vlan: 20, ecn: ect0}\n");
    let text = text.replace("minimum: 60 %}", "minimum: 60 %, flow_queue: {ecn: true}}");
    let study = parse(&text).unwrap();
    assert_eq!(study.warnings().count(), 0);
    let refused = study.into_testbed(Pacing::Departures).unwrap_err();
    assert_snapshot!(refused, @"source `other` is ECN-capable (`headers: {ecn: ..}`), and senders of a testbed are not: simulate the study, or leave `ecn` out in a study that extends this one");
    let text = text.replace("ecn: ect0", "ecn: not_ect");
    assert_eq!(parse(&text).unwrap().warnings().count(), 1);
    let refused = parse(&text.replace("ecn: not_ect", "ecn: ce")).unwrap_err();
    assert_snapshot!(refused, @"study.yaml:15:30 `ce`: `ce` is not a value of explicit congestion notification: known are `not_ect`, `ect0`, `ect1`");
}

#[test]
fn marks_are_warned_of_in_classes_and_in_what_they_are_divided_into() {
    let child = "{name: rest, match: {vlan: 20}, child: {classes: [{name: a, match: {}, flow_queue: {ecn: yes}}]}}";
    let text = changed(
        "{name: rest, match: {vlan: 20}, queue_limit: 64 packets}",
        child,
    );
    let text = text.replace("minimum: 60 %}", "minimum: 60 %, flow_queue: {ecn: true}}");
    let study = parse(&text).unwrap();
    assert_snapshot!(told(study.warnings()), @"
    study.yaml:28:68 `true`: warning: no source of this study is ECN-capable (`headers: {ecn: ect0}`): this flow queue drops packets and marks none
    study.yaml:29:98 `yes`: warning: no source of this study is ECN-capable (`headers: {ecn: ect0}`): this flow queue drops packets and marks none
    ");
    assert_snapshot!(assumptions(&study).join("\n"), @"No source is ECN-capable, so flow queues with `ecn: yes` drop packets and mark none.");
    assert!(
        assumptions(&study.into_testbed(Pacing::Departures).unwrap()).is_empty(),
        "real packets can be marked"
    );
    for queue in ["flow_queue: {ecn: no}", "flow_queue: {}"] {
        let text = changed("minimum: 60 %}", &format!("minimum: 60 %, {queue}}}"));
        assert_eq!(parse(&text).unwrap().warnings().count(), 0, "{queue}");
    }
}
