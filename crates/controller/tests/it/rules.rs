//! Rules: what one slice leaves unused is lent to another.
#![allow(clippy::unwrap_used, reason = "functions of tests")]

use crate::support::{each_with_link, guarantee, put, remove, slice};
use slicewise_api::{
    Acknowledgement, Client, CounterReport, DirectionCounters, EventKind, Maximum, Precondition,
    Rule, Slice, SliceCounters, Tenant,
};
use slicewise_units::Way;

/// `lender` is guaranteed 50 Mbit/s; `borrower` may send 10 Mbit/s.
fn with_slices(client: &Client) -> Slice {
    let lender = slice("lender", 1, 50);
    client
        .put_slice(&lender, Precondition::Absent, None)
        .unwrap();
    let mut borrower = slice("borrower", 2, 5);
    let maximum = Maximum {
        rate_bps: 10_000_000,
        burst_bytes: 1_000_000,
    };
    let mut terms = guarantee(5, None);
    terms.maximum = Some(maximum);
    borrower.forward = Some(terms);
    client
        .put_slice(&borrower, Precondition::Absent, None)
        .unwrap();
    borrower
}

fn rule() -> Rule {
    Rule {
        from: "lender".to_owned(),
        to: "borrower".to_owned(),
        direction: Way::Forward,
        unused_bps: 40_000_000,
        for_ms: 0,
        weight: Some(8),
    }
}

fn report(client: &Client, lender_mbps: u64) {
    let forward = DirectionCounters {
        sent_bytes: lender_mbps * 125_000,
        ..DirectionCounters::default()
    };
    let report = CounterReport {
        interval_ns: 1_000_000_000,
        slices: vec![SliceCounters {
            name: "lender".to_owned(),
            forward: Some(forward),
            backward: None,
        }],
        ..CounterReport::default()
    };
    client.report_counters("gw", &report).unwrap();
}

/// Maximum, Mbit/s, and weight of the borrower.
fn borrowed(client: &Client) -> (u64, u32) {
    let terms = client.slice("borrower").unwrap().slice.forward.unwrap();
    (terms.maximum.unwrap().rate_bps / 1_000_000, terms.weight)
}

#[test]
fn what_is_unused_is_lent_and_taken_back_and_each_decision_has_its_reason() {
    each_with_link(|_, _server, client| {
        with_slices(&client);
        client.put_rule("night", &rule()).unwrap();
        report(&client, 11);
        assert_eq!(borrowed(&client), (10, 1), "less than 40 Mbit/s is left");
        report(&client, 10);
        assert_eq!(borrowed(&client), (50, 8));
        let lent = client.rules().unwrap().remove(0);
        assert!(lent.lent && lent.lent_since_ms.is_some());
        insta::assert_snapshot!(lent.reason.unwrap(), @"slice `lender` leaves 40 Mbit/s of its guarantee unused: 10 Mbit/s of 50 Mbit/s sent");
        let lender = client.slice("lender").unwrap();
        assert_eq!(lender.generation, 1, "its guarantee is never touched");
        report(&client, 10);
        report(&client, 30);
        assert_eq!(borrowed(&client), (10, 1));
        let back = client.rules().unwrap().remove(0);
        assert!(!back.lent && back.lent_since_ms.is_none() && back.reason.is_none());

        let events = client.events(0, None).unwrap().items;
        let decisions = events.iter().filter(|one| one.kind == EventKind::Decision);
        let reasons: Vec<&str> = decisions
            .map(|one| one.reason.as_deref().unwrap())
            .collect();
        insta::assert_snapshot!(reasons.join("\n"), @"
            lent to `borrower`: slice `lender` leaves 40 Mbit/s of its guarantee unused: 10 Mbit/s of 50 Mbit/s sent
            taken back from `borrower`: slice `lender` uses its guarantee again: 30 Mbit/s of 50 Mbit/s sent
            ");
        let history = client.generations(None, None).unwrap().items;
        assert_eq!(history[0].by, "rule night");
        assert_eq!(history[0].reason.as_deref(), Some(reasons[1]));
    });
}

#[test]
fn a_restored_generation_makes_no_loan_that_nobody_takes_back() {
    each_with_link(|_, _server, client| {
        let mut changed = with_slices(&client);
        client.put_rule("night", &rule()).unwrap();
        report(&client, 10);
        let lent = client.generations(None, None).unwrap().items[0].generation;
        report(&client, 30);
        let nothing = client.restore(lent, None).unwrap();
        assert_eq!((nothing.changed, borrowed(&client)), (0, (10, 1)));

        changed.forward.as_mut().unwrap().weight = 3;
        put(&client, &changed);
        let back = client.restore(lent, None).unwrap();
        assert_eq!((back.changed, borrowed(&client)), (1, (10, 1)));

        report(&client, 10);
        let nothing = client.restore(1, None).unwrap();
        assert_eq!(nothing.changed, 1, "the borrower came later: it is removed");
    });
}

#[test]
fn a_lender_without_traffic_which_reports_leave_out_lends_after_its_time() {
    each_with_link(|_, _server, client| {
        with_slices(&client);
        let patient = Rule {
            for_ms: 200,
            ..rule()
        };
        client.put_rule("night", &patient).unwrap();
        report(&client, 0);
        let nothing = CounterReport {
            interval_ns: 1_000_000_000,
            ..CounterReport::default()
        };
        client.report_counters("gw", &nothing).unwrap();
        assert_eq!(borrowed(&client), (10, 1), "its time is not over");
        std::thread::sleep(std::time::Duration::from_millis(250));
        client.report_counters("gw", &nothing).unwrap();
        assert_eq!(borrowed(&client), (50, 8));
    });
}

#[test]
fn a_lender_that_gives_up_its_guarantee_takes_back_what_it_lent() {
    each_with_link(|_, _server, client| {
        with_slices(&client);
        client.put_rule("night", &rule()).unwrap();
        report(&client, 0);
        assert_eq!(borrowed(&client), (50, 8));
        let mut lender = slice("lender", 1, 50);
        lender.forward.as_mut().unwrap().guarantee = None;
        put(&client, &lender);
        report(&client, 0);
        assert_eq!(borrowed(&client), (10, 1));
    });
}

#[test]
fn what_somebody_changes_meanwhile_stays_and_a_rule_that_goes_takes_back() {
    each_with_link(|_, _server, client| {
        let mut borrower = with_slices(&client);
        client.put_rule("night", &rule()).unwrap();
        report(&client, 0);
        assert_eq!(borrowed(&client), (50, 8));
        let terms = borrower.forward.as_mut().unwrap();
        terms.maximum.as_mut().unwrap().rate_bps = 20_000_000;
        terms.weight = 8;
        put(&client, &borrower);
        client.remove_rule("night").unwrap();
        assert_eq!(borrowed(&client), (20, 1));
        assert_eq!(client.remove_rule("night").unwrap_err().status(), Some(404));
    });
}

#[test]
fn a_rule_ends_with_its_slices_and_changes_none_that_gets_their_name() {
    each_with_link(|_, _server, client| {
        let borrower = with_slices(&client);
        client.put_rule("night", &rule()).unwrap();
        report(&client, 0);
        assert_eq!(borrowed(&client), (50, 8));
        remove(&client, "borrower");
        assert!(client.rules().unwrap().is_empty());
        let gone = |names: &[&str]| Acknowledgement {
            generation: client.generations(None, Some(1)).unwrap().items[0].generation,
            gone: names.iter().map(|&name| name.to_owned()).collect(),
            ..Acknowledgement::default()
        };
        client.acknowledge("gw", &gone(&["borrower"])).unwrap();
        // Another tenant's slice has the name, and the maximum that was lent.
        client.put_tenant("red", &Tenant::default()).unwrap();
        let mut other = Slice {
            tenant: "red".to_owned(),
            ..borrower
        };
        let terms = other.forward.as_mut().unwrap();
        terms.maximum.as_mut().unwrap().rate_bps = 50_000_000;
        terms.weight = 8;
        client
            .put_slice(&other, Precondition::Absent, None)
            .unwrap();
        report(&client, 50);
        report(&client, 0);
        assert_eq!(borrowed(&client), (50, 8));

        // A lender that goes takes back what it lent.
        client.put_rule("day", &rule()).unwrap();
        report(&client, 0);
        assert_eq!(borrowed(&client), (90, 8));
        remove(&client, "lender");
        assert_eq!(borrowed(&client), (50, 8));
        assert!(client.rules().unwrap().is_empty());
        let events = client.events(0, None).unwrap().items;
        let ends = events.iter().filter_map(|event| event.reason.as_deref());
        let ends: Vec<&str> = ends.filter(|reason| reason.contains("ends")).collect();
        insta::assert_snapshot!(ends.join("\n"), @"
            rule `night` ends: slice `borrower` is removed
            rule `day` ends: slice `lender` is removed
            ");
    });
}

#[test]
fn a_rule_that_cannot_be_kept_is_refused_with_its_reason() {
    each_with_link(|_, _server, client| {
        with_slices(&client);
        client.put_rule("night", &rule()).unwrap();
        let wrong = [
            Rule {
                from: "nobody".to_owned(),
                ..rule()
            },
            Rule {
                direction: Way::Backward,
                ..rule()
            },
            Rule {
                to: "lender".to_owned(),
                ..rule()
            },
            rule(),
        ];
        let texts = wrong.map(|rule| {
            let error = client.put_rule("other", &rule).unwrap_err();
            format!("{} {error}", error.status().unwrap())
        });
        insta::assert_snapshot!(texts.join("\n"), @"
            409 there is no slice `nobody`
            409 slice `lender` has no guarantee backward: there is nothing to lend
            400 /to: is `from`: a slice cannot lend to itself
            409 slice `borrower` borrows by rule `night` already: a slice borrows by one rule in each direction
            ");
    });
}

#[test]
fn a_tenant_that_borrows_is_not_told_what_another_one_sends() {
    each_with_link(|_, _server, client| {
        let mut borrower = with_slices(&client);
        client.put_tenant("red", &Tenant::default()).unwrap();
        borrower.name = "other".to_owned();
        borrower.tenant = "red".to_owned();
        borrower.matches = slice("other", 3, 1).matches;
        client
            .put_slice(&borrower, Precondition::Absent, None)
            .unwrap();
        let rule = Rule {
            to: "other".to_owned(),
            ..rule()
        };
        client.put_rule("night", &rule).unwrap();
        report(&client, 10);
        report(&client, 40);
        let events = client.events(0, None).unwrap().items;
        let told = events
            .iter()
            .filter(|event| event.kind == EventKind::Decision);
        let told: Vec<_> = told
            .map(|event| (event.tenant.as_deref(), event.reason.as_deref()))
            .collect();
        let red = Some("red");
        let expected = [
            (red, Some("lent to `other`")),
            (red, Some("taken back from `other`")),
        ];
        assert_eq!(told, expected);
        let whole = client.generations(None, Some(1)).unwrap().items.remove(0);
        let reason = whole.reason.unwrap();
        assert!(reason.contains("slice `lender`"), "{reason}");
    });
}
