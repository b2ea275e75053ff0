//! Policies with named queues: what they are read as, and what is said of mistakes in them.

use crate::support::{STUDY, parse, told};
use insta::assert_snapshot;
use slicewise_model::{Action, QueueLimitSpec, RateSpec};
use slicewise_study::{Study, StudyPolicy};
use slicewise_units::{BitRate, Duration};

const QUEUES: &str = "    discipline: deficit_round_robin
    queues:
      - {name: high, priority: 1, queue_limit: 25000 packets}
      - {name: sliced-tcp, weight: 2, queue_limit: 25000 packets}
      - {name: udp, weight: 1, shape: 5 Mbit/s}
    classes:
      - name: gold
        slice: gold
        queue: high
        police: {rate: 7 Mbit/s, burst: 125 kB, peak_rate: 8 Mbit/s, peak_burst: 125 kB,
                 refill_interval: 1 ms, exceed: {queue: sliced-tcp}, violate: drop}
      - {name: class-default, queue: udp}
";

/// [`STUDY`] with only the policy `p` of these lines.
fn with(policy: &str) -> Result<Study, String> {
    let end = STUDY.find("repetitions:").unwrap();
    parse(&format!(
        "{}policies:\n  p:\n{policy}{}",
        before_policies(),
        &STUDY[end..]
    ))
}

fn before_policies() -> &'static str {
    &STUDY[..STUDY.find("policies:").unwrap()]
}

fn policy() -> StudyPolicy {
    with(QUEUES).unwrap().policies.swap_remove(0)
}

/// Messages about [`QUEUES`] with `old` replaced by `new`.
fn mistakes(old: &str, new: &str) -> String {
    assert!(QUEUES.contains(old), "`{old}` is not in the policy");
    with(&QUEUES.replacen(old, new, 1)).expect_err("this should be refused")
}

#[test]
fn queues_have_the_settings_of_classes_and_colours_choose_them() {
    let policy = policy();
    let [high, sliced, udp] = policy.spec.queues.as_slice() else {
        panic!("{:?}", policy.spec.queues);
    };
    assert_eq!((high.name.as_str(), high.priority), ("high", Some(1)));
    assert_eq!(sliced.weight, Some(2));
    assert_eq!(sliced.queue.limit, Some(QueueLimitSpec::Packets(25_000)));
    let shape = udp.shape.map(|shape| shape.rate);
    assert_eq!(shape, Some(RateSpec::Absolute(BitRate::new(5_000_000))));
    let gold = &policy.params.classes[0];
    assert_eq!(gold.named_queue.as_deref(), Some("high"));
    let police = gold.police.as_ref().unwrap();
    assert_eq!(police.refill_interval, Some(Duration::from_millis(1)));
    assert_eq!(police.exceed, Action::Queue("sliced-tcp".into()));
    assert_eq!(police.violate, Action::Drop);
    assert_eq!(policy.params.classes[1].named_queue.as_deref(), Some("udp"));
}

#[test]
fn the_configuration_shows_queues_and_classes() {
    let configuration = policy().configuration;
    assert!(configuration.starts_with("queues:"), "{configuration}");
    assert!(configuration.contains("\nclasses:\n"), "{configuration}");
}

#[test]
fn a_level_of_priority_may_be_written_as_that_of_a_class() {
    let study = with(&QUEUES.replacen("priority: 1", "priority: {level: 2}", 1)).unwrap();
    assert_eq!(study.policies[0].spec.queues[0].priority, Some(2));
}

#[test]
fn a_queue_that_a_class_names_exists() {
    assert_snapshot!(mistakes("queue: udp", "queue: upd"), @"study.yaml:37:38 `upd`: there is no queue `upd` in this policy; help: known are `high`, `sliced-tcp`, `udp`");
}

#[test]
fn a_class_with_a_queue_of_its_own_is_not_called_as_a_named_queue() {
    assert_snapshot!(mistakes("- {name: class-default, queue: udp}", "- {name: udp, match: {vlan: 9}}\n      - {name: class-default, queue: udp}"), @"study.yaml:37:16 `udp`: class `udp` has a queue of its own, and another queue is called `udp`; help: let the class wait in it (`queue: udp`), or rename one of them");
    // The queue that a class waits in may be called as the class is.
    let same = QUEUES.replacen(
        "- {name: class-default, queue: udp}",
        "- {name: udp, match: {vlan: 9}, queue: udp}\n      - {name: class-default, queue: udp}",
        1,
    );
    assert!(with(&same).is_ok());
}

#[test]
fn a_queue_that_a_meter_names_exists() {
    assert_snapshot!(mistakes("{queue: sliced-tcp}", "{queue: sliced_tcp}"), @"study.yaml:36:57 `sliced_tcp`: there is no queue `sliced_tcp` in this policy; help: did you mean `sliced-tcp`?");
}

#[test]
fn a_policy_that_uses_queues_defines_them() {
    let start = QUEUES.find("    queues:").unwrap();
    let end = QUEUES.find("    classes:").unwrap();
    let without = format!("{}{}", &QUEUES[..start], &QUEUES[end..]);
    assert_snapshot!(with(&without).unwrap_err(), @"study.yaml:30:16 `high`: there is no queue `high`: define it under `queues`, beside `classes`");
}

#[test]
fn a_queue_is_there_once() {
    assert_snapshot!(mistakes("name: udp", "name: high"), @"study.yaml:30:16 `high`: queue `high` is defined twice");
}

#[test]
fn a_class_in_a_named_queue_has_no_settings_of_a_queue() {
    assert_snapshot!(mistakes("queue: udp", "queue: udp, weight: 3"), @"study.yaml:37:51 `3`: class `class-default`, weight: the class waits in the queue `udp`: set this there");
}

#[test]
fn a_child_policy_does_not_divide_a_named_queue() {
    let child = "queue: udp, child: {classes: [{name: class-default}]}";
    assert_snapshot!(mistakes("queue: udp", child), @"study.yaml:37:43 `child`: class `class-default`, child: the class waits in the queue `udp`, which a child policy cannot divide: remove one of both");
}

#[test]
fn a_meter_whose_class_a_child_divides_chooses_no_queue() {
    let child = "slice: gold\n        child: {classes: [{name: class-default}]}\n";
    assert_snapshot!(mistakes("slice: gold\n        queue: high\n", child), @"study.yaml:36:41 `exceed`: class `gold`, police.exceed: chooses a queue, but a child policy divides the class: police the classes of that");
}

#[test]
fn queues_and_meters_that_contradict_themselves_are_refused() {
    // A queue needs a weight.
    assert_snapshot!(mistakes("weight: 1", "weight: 0"), @"study.yaml:30:29 `0`: queue `udp`, weight: is 0: a queue needs a weight of at least 1");
    // A queue of strict priority has no weight.
    assert_snapshot!(mistakes("priority: 1", "priority: 1, weight: 2"), @"study.yaml:28:43 `2`: queue `high`, weight: cannot be set on a priority queue: it is served before everything else");
    // A meter that chooses a queue holds a largest frame.
    assert_snapshot!(mistakes("burst: 125 kB", "burst: 1500 B"), @"study.yaml:35:9 `police`: class `gold`, police: has a burst of 1.5 kB, less than one largest frame (1.522 kB): such frames would never reach the queue of their colour");
    // A peak rate is not below the committed rate.
    assert_snapshot!(mistakes("peak_rate: 8 Mbit/s", "peak_rate: 6 Mbit/s"), @"study.yaml:35:9 `police`: class `gold`, police: peak rate 6 Mbit/s is below the committed rate 7 Mbit/s");
    // Buckets are replenished after some time.
    assert_snapshot!(mistakes("refill_interval: 1 ms", "refill_interval: 0 ms"), @"study.yaml:36:35 `0 ms`: class `gold`, police.refill_interval: is 0: leave it out where the buckets are replenished continuously");
}

#[test]
fn rates_that_meters_commit_to_strict_priority_fit_in_the_link() {
    let second = "      - name: silver
        match: {vlan: 11}
        police: {rate: 4 Mbit/s, conform: {queue: high}, exceed: {queue: sliced-tcp}}
      - {name: class-default, queue: udp}";
    assert_snapshot!(mistakes("      - {name: class-default, queue: udp}", second), @"study.yaml:39:9 `police`: class `silver`, police: with 4 Mbit/s for this class the guarantees add up to 11 Mbit/s, more than the available 10 Mbit/s: lower one of them (3 Mbit/s would fit)");
    // Below strict priority nothing is promised.
    let low = second.replace("conform: {queue: high}", "conform: {queue: udp}");
    let last = "      - {name: class-default, queue: udp}";
    assert!(with(&QUEUES.replacen(last, &low, 1)).is_ok());
}

#[test]
fn named_queues_are_for_disciplines_with_a_queue_per_class() {
    assert_snapshot!(mistakes("deficit_round_robin", "fifo"), @"study.yaml:28:16 `high`: queue `high`, queues: one FIFO for all classes is one queue: leave the named queues out");
    assert_snapshot!(mistakes("deficit_round_robin", "guaranteed"), @"study.yaml:28:16 `high`: queue `high`, queues: each class of the discipline `guaranteed` has a queue and a bound of its own: use `deficit_round_robin` or `minimum_share`");
}

#[test]
fn weights_may_count_for_each_active_flow() {
    let text = QUEUES.replacen("queues:", "weights: by_active_flows\n    queues:", 1);
    let policy = with(&text).unwrap().policies.swap_remove(0);
    let counted: Vec<bool> = policy
        .params
        .queues
        .iter()
        .map(|queue| queue.per_flow)
        .collect();
    assert_eq!(counted, [false, true, true]);
    let text = text.replacen("deficit_round_robin", "minimum_share", 1);
    assert_snapshot!(with(&text).unwrap_err(), @"study.yaml:29:16 `high`: queue `high`, weights: weights by active flows are for `deficit_round_robin`");
    let without = "    weights: by_active_flows\n    classes: [{name: class-default}]\n";
    assert_snapshot!(with(without).unwrap_err(), @"study.yaml:26:14 `by_active_flows`: `weights` is for policies with `queues`");
}

#[test]
fn a_router_has_no_named_queues() {
    let text = QUEUES.replace("7 Mbit/s", "1 Mbit/s");
    let study = format!(
        "{}policies:\n  p:\n{text}repetitions: 2\nduration: 5 s\n",
        before_policies()
    );
    let study = study.replacen(
        "model: port\n  port_rate: 10 Mbit/s",
        "model: isr4221\n  licence: {rate: 10 Mbit/s, credit: 1 s}",
        1,
    );
    assert_snapshot!(parse(&study).unwrap_err(), @"study.yaml:28:16 `high`: each class of an ISR 4221 has a queue of its own: leave `queues` out");
}

#[test]
fn a_policy_in_ios_text_has_no_named_queues() {
    let ios = "    ios: router.cfg\n    queues: [{name: high}]\n";
    assert_snapshot!(with(ios).unwrap_err(), @"study.yaml:27:5 `queues`: `queues` is for policies with `classes`");
}

#[test]
fn a_queue_that_no_class_uses_is_warned_of_unless_a_phase_may_use_it() {
    let unused = QUEUES.replacen("queue: udp", "queue: sliced-tcp", 1);
    let study = with(&unused).unwrap();
    assert_snapshot!(told(study.warnings()), @"study.yaml:30:16 `udp`: warning: no class uses the queue `udp`");
    let timeline = "timeline:\n  settle: 500 ms\n  changes:\n    later:\n      at: 2 s\n      policies:\n        \
                    p: {classes: [{name: class-default, queue: udp}]}\n";
    let phases = QUEUES.replacen("    classes:", "    title: phases\n    classes:", 1);
    let end = STUDY.find("repetitions:").unwrap();
    let text = format!(
        "{}policies:\n  p:\n{phases}{}{timeline}",
        before_policies(),
        &STUDY[end..]
    );
    let study = parse(&text).unwrap();
    assert!(
        study.warnings().iter().next().is_none(),
        "{}",
        study.warnings()
    );
}

#[test]
fn a_child_policy_may_have_queues() {
    let child = "      - name: class-default
        child:
          queues: [{name: a, priority: 1}, {name: b}]
          classes: [{name: x, match: {vlan: 12}, queue: a}, {name: class-default, queue: b}]";
    let text = QUEUES.replacen("      - {name: class-default, queue: udp}", child, 1);
    let text = text.replacen("      - {name: udp, weight: 1, shape: 5 Mbit/s}\n", "", 1);
    let policy = with(&text).unwrap().policies.swap_remove(0);
    let child = policy.params.classes[1].child.as_ref().unwrap();
    assert_eq!(child.queues.len(), 2);
    // It uses its own, and not those around it.
    assert_snapshot!(with(&text.replacen("queue: a}", "queue: high}", 1)).unwrap_err(), @"study.yaml:39:57 `high`: there is no queue `high` in this policy; help: known are `a`, `b`");
}
