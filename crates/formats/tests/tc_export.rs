//! Policies as scripts of `tc`, and what is refused.
#![allow(clippy::unwrap_used)]

#[path = "support/shipped.rs"]
mod shipped;

use insta::assert_snapshot;
use shipped::{LICENCE, no_policy, parse, policy, resolve};
use slicewise_formats::tc;
use slicewise_model::{PolicyParams, Rate};
use slicewise_units::{Accounting, BitRate};

fn script(policy: &PolicyParams) -> String {
    tc::write(policy, LICENCE, "eth0").unwrap().to_string()
}

#[test]
fn no_policy_is_one_queue_below_the_link() {
    assert_snapshot!(script(&no_policy()), @"");
}

#[test]
fn priority_is_a_class_within_its_rate_and_the_rest_is_kept_for_the_others() {
    assert_snapshot!(script(&policy("priority")), @"");
}

#[test]
fn shaping_is_a_ceiling() {
    assert_snapshot!(script(&policy("shaping")), @"");
}

#[test]
fn policing_is_an_action_of_the_filter() {
    assert_snapshot!(script(&policy("policing")), @"");
}

#[test]
fn a_minimum_is_the_rate_of_a_class() {
    assert_snapshot!(script(&policy("bandwidth")), @"");
}

#[test]
fn a_queue_limit_in_time_is_one_in_bytes() {
    assert_snapshot!(script(&policy("tail-drop")), @"");
}
