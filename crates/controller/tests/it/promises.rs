//! Nothing is promised twice, and the sums of the store are those of its slices, whatever is asked at the same moment.

use crate::support::{
    Server, TestStore, announce, batch, for_each_store, link, remove, said, try_put,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use slicewise_api::{
    Acknowledgement, Change, Client, GatewayChange, Guarantee, LinkRecord, Match, OfferAnswer,
    Precondition, Slice, SliceQuery, SliceRecord, Terms,
};
use slicewise_model::{Admission, GuaranteeRequest};
use slicewise_units::{Duration, Way};
use std::collections::BTreeMap;

/// Names that the requests are about.
const NAMES: u16 = 12;
/// The gateways and the link of each.
const LINKS: [(&str, &str); 2] = [("gw", "uplink"), ("far", "downlink")];

/// Something that is asked.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a test has few of them")]
enum Ask {
    Put(Slice),
    Remove(u16),
    Batch(Vec<Change>),
    /// A gateway catches up and says what is gone.
    CatchUp(usize),
    Restore(u64),
}

fn name(index: u16) -> String {
    format!("s{index}")
}

fn terms() -> impl Strategy<Value = Option<Terms>> {
    let guarantee = (1u64..60, 1_522u64..200_000, prop::option::of(1u64..100));
    let terms = (prop::option::weighted(0.9, guarantee), 1u32..5);
    prop::option::weighted(0.8, terms).prop_map(|terms| {
        terms.map(|(guarantee, weight)| Terms {
            guarantee: guarantee.map(|(rate, burst_bytes, delay)| Guarantee {
                rate_bps: rate * 1_000_000,
                burst_bytes,
                delay_ns: delay.map(|delay| delay * 1_000_000),
                ..Guarantee::default()
            }),
            weight,
            ..Terms::default()
        })
    })
}

fn path(index: u16) -> Vec<String> {
    let links: &[usize] = match index % 3 {
        0 => &[0],
        1 => &[1],
        _ => &[0, 1],
    };
    links.iter().map(|&link| LINKS[link].1.to_owned()).collect()
}

fn slice() -> impl Strategy<Value = Slice> {
    let one_of = (0..NAMES, 0..NAMES + 3, terms(), terms());
    one_of.prop_map(|(index, vlan, forward, backward)| Slice {
        name: name(index),
        tenant: "default".to_owned(),
        // Fixed by name: a path cannot be changed.
        path: path(index),
        matches: vec![Match {
            vlan: Some(vlan),
            ..Match::default()
        }],
        forward,
        backward,
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    let change = prop_oneof![
        3 => slice().prop_map(Change::Put),
        1 => (0..NAMES).prop_map(|index| Change::Remove(name(index))),
    ];
    prop_oneof![
        6 => slice().prop_map(Ask::Put),
        2 => (0..NAMES).prop_map(Ask::Remove),
        2 => prop::collection::vec(change, 1..5).prop_map(Ask::Batch),
        2 => (0..LINKS.len()).prop_map(Ask::CatchUp),
        1 => (0u64..40).prop_map(Ask::Restore),
    ]
}

/// Carry it out. A refusal is as good as success; anything else is none.
fn carry_out(client: &Client, ask: &Ask) {
    let done = match ask {
        Ask::Put(slice) => try_put(client, slice).map(drop),
        Ask::Remove(index) => client
            .remove_slice(&name(*index), Precondition::None, None)
            .map(drop),
        Ask::Batch(changes) => client.batch(&batch(changes.clone()), None).map(drop),
        Ask::CatchUp(gateway) => {
            catch_up(client, LINKS[*gateway].0);
            Ok(())
        }
        Ask::Restore(generation) => client.restore(*generation, None).map(drop),
    };
    if let Err(error) = done {
        assert!(matches!(error.status(), Some(400 | 404 | 409)), "{error}");
    }
}

/// The gateway has everything in force, and nothing waits in it.
fn catch_up(client: &Client, gateway: &str) {
    let desired = client
        .desired(gateway, 0, std::time::Duration::ZERO)
        .unwrap();
    let said = Acknowledgement {
        gone: desired.draining,
        ..said(desired.generation)
    };
    client.acknowledge(gateway, &said).unwrap();
}

fn all_slices(client: &Client) -> Vec<SliceRecord> {
    let page = client
        .slices(&SliceQuery {
            limit: Some(1000),
            ..SliceQuery::default()
        })
        .unwrap();
    assert_eq!(page.next, None);
    page.items
}

/// What slices ask of a link, and the delay that they have there.
fn requests(
    client: &Client,
    slices: &[SliceRecord],
    link: &str,
    direction: Way,
) -> Vec<(GuaranteeRequest, Duration)> {
    let on_link = slices
        .iter()
        .filter(|slice| slice.path.iter().any(|one| one == link));
    let terms = on_link.filter_map(|slice| {
        let choice = client.slice(&slice.name).unwrap().delay_choice.unwrap();
        let (terms, bound, choice) = match direction {
            Way::Forward => (&slice.forward, slice.bound_ns.forward, choice.forward),
            Way::Backward => (&slice.backward, slice.bound_ns.backward, choice.backward),
        };
        let request = terms.as_ref()?.request(slice.path.len())?;
        let delays = choice.unwrap().links_ns;
        assert_eq!(delays.iter().sum::<u64>(), bound.unwrap());
        let hop = slice.path.iter().position(|one| one == link)?;
        Some((request, Duration::from_nanos(delays[hop])))
    });
    terms.collect()
}

/// What the store says of a link is what its slices come to, and the admission test holds.
pub fn check_promises(client: &Client) {
    let slices = all_slices(client);
    for LinkRecord {
        name,
        forward,
        backward,
        ..
    } in client.links().unwrap()
    {
        let announced = link(&name);
        for (direction, record) in [(Way::Forward, &forward), (Way::Backward, &backward)] {
            let requests = requests(client, &slices, &name, direction);
            let mut admission = Admission::new(announced.forward.admission().unwrap());
            for (request, delay) in &requests {
                let admitted = admission.try_restore(&request.with_delay(*delay));
                assert_eq!(
                    admitted.as_ref(),
                    Ok(delay),
                    "{name} {direction:?}: {requests:?}"
                );
            }
            let sum = |amount: fn(&GuaranteeRequest) -> u64| {
                let amounts = requests.iter().map(|(request, _)| amount(request));
                amounts.sum::<u64>()
            };
            let expected = (
                requests.len() as u64,
                sum(|request| request.rate.bits_per_second()),
                sum(|request| request.burst.bytes()),
            );
            let promised = record.promised;
            assert_eq!(
                (promised.slices, promised.rate_bps, promised.burst_bytes),
                expected
            );
            let classes: Vec<_> = admission
                .classes_in_use()
                .map(|class| {
                    (
                        class.reserved.delay.nanos(),
                        class.reserved.count,
                        class.reserved.rate.bits_per_second(),
                        class.reserved.burst.bytes(),
                    )
                })
                .collect();
            let stored: Vec<_> = record
                .delay_classes
                .iter()
                .map(|class| {
                    (
                        class.delay_ns,
                        class.slices,
                        class.rate_bps,
                        class.burst_bytes,
                    )
                })
                .collect();
            assert_eq!(stored, classes, "{name} {direction:?}");
        }
    }
    let tenant = client.tenants().unwrap().remove(0);
    let guaranteed = |slice: &SliceRecord| {
        let terms = [&slice.forward, &slice.backward].into_iter().flatten();
        terms
            .filter_map(|terms| terms.guarantee)
            .map(|guarantee| guarantee.rate_bps)
            .sum::<u64>()
    };
    let expected = (
        slices.len() as u64,
        slices.iter().map(guaranteed).sum::<u64>(),
    );
    assert_eq!((tenant.slices, tenant.rate_bps), expected);
    // No packet belongs to two slices.
    let mut vlans: BTreeMap<(String, u16, bool), String> = BTreeMap::new();
    for slice in &slices {
        for link in &slice.path {
            for (is_forward, terms) in [(true, &slice.forward), (false, &slice.backward)] {
                let vlan = slice.matches[0].vlan.unwrap();
                if terms.is_some() {
                    let before = vlans.insert((link.clone(), vlan, is_forward), slice.name.clone());
                    assert_eq!(before, None, "{slices:?}");
                }
            }
        }
    }
}

fn together(servers: &[Server], asks: &[Vec<Ask>]) {
    std::thread::scope(|scope| {
        for (index, own) in asks.iter().enumerate() {
            let client = servers[index % servers.len()].client();
            scope.spawn(move || own.iter().for_each(|ask| carry_out(&client, ask)));
        }
    });
}

#[test]
fn sums_equal_those_of_the_slices_and_never_exceed_the_admission_test() {
    let cases = std::env::var("SLICEWISE_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(6);
    for_each_store(|store| {
        // N controllers on one store at the same moment.
        let servers = [
            Server::start(store),
            Server::start(store),
            Server::start(store),
        ];
        let client = servers[0].client();
        for (gateway, link) in LINKS {
            announce(&client, gateway, link);
        }
        let mut runner = TestRunner::new(Config {
            cases,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..Config::default()
        });
        let asks = prop::collection::vec(prop::collection::vec(ask(), 8..12), 6);
        runner
            .run(&asks, |asks| {
                together(&servers, &asks);
                check_promises(&client);
                Ok(())
            })
            .unwrap();
        check_gateways(&servers);
    });
}

/// A gateway that follows change by change has what one has that asks for everything.
fn check_gateways(servers: &[Server]) {
    for (gateway, _) in LINKS {
        let mut slices = BTreeMap::new();
        let mut after = 1;
        loop {
            // Whichever controller answers.
            let client = servers[usize::try_from(after).unwrap() % servers.len()].client();
            let desired = client
                .desired(gateway, after, std::time::Duration::ZERO)
                .unwrap();
            for change in desired.changes {
                match change {
                    GatewayChange::Put(slice) => drop(slices.insert(slice.name.clone(), slice)),
                    GatewayChange::Remove(name) => drop(slices.remove(&name)),
                }
            }
            if desired.generation == after {
                break;
            }
            after = desired.generation;
        }
        let snapshot = servers[0]
            .client()
            .desired(gateway, 0, std::time::Duration::ZERO)
            .unwrap()
            .snapshot
            .unwrap();
        // The first generation is not among the changes after it.
        let first = servers[0].client().generation(1).unwrap();
        let expected: Vec<_> = snapshot
            .into_iter()
            .filter(|slice| slice.version > 1)
            .collect();
        let found: Vec<_> = slices.into_values().map(|slice| *slice).collect();
        assert_eq!(found, expected, "{first:?}");
    }
}

#[test]
fn what_an_offer_says_would_be_accepted_is_accepted_and_more_is_not() {
    let store = TestStore::sqlite();
    let server = Server::start(&store);
    let client = server.client();
    for (gateway, link) in LINKS {
        announce(&client, gateway, link);
    }
    let mut runner = TestRunner::new(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    });
    let asked = (prop::collection::vec(slice(), 1..8), slice(), 1usize..3);
    runner
        .run(&asked, |(others, mut asked, links)| {
            for other in others {
                let _ = try_put(&client, &other);
            }
            asked.name = "asked".to_owned();
            asked.matches[0].vlan = Some(4000);
            asked.path = LINKS
                .iter()
                .take(links)
                .map(|(_, link)| (*link).to_owned())
                .collect();
            asked.backward = None;
            let Some(guarantee) = asked.forward.as_ref().and_then(|terms| terms.guarantee) else {
                return Ok(());
            };
            let ask = |guarantee: Guarantee| -> OfferAnswer {
                let mut asked = asked.clone();
                asked.forward = Some(Terms {
                    guarantee: Some(guarantee),
                    ..Terms::default()
                });
                client.offer(&asked).unwrap()
            };
            let offer = ask(guarantee);
            let is_accepted = |guarantee| ask(guarantee).accepted;
            if let Some(rate_bps) = offer.largest_rate_bps {
                let with = |rate_bps| Guarantee {
                    rate_bps,
                    ..guarantee
                };
                prop_assert!(is_accepted(with(rate_bps)));
                prop_assert!(!is_accepted(with(rate_bps + 1)));
            }
            if let Some(burst_bytes) = offer.largest_burst_bytes {
                let with = Guarantee {
                    burst_bytes,
                    ..guarantee
                };
                prop_assert!(is_accepted(with));
            }
            if let Some(delay) = offer.smallest_delay_ns {
                let with = |delay| Guarantee {
                    delay_ns: Some(delay),
                    ..guarantee
                };
                prop_assert!(is_accepted(with(delay)));
                prop_assert!(!is_accepted(with(delay - 1)));
            }
            if let (None, Some(reason)) = (guarantee.delay_ns, &offer.reason) {
                let of_others = ["guarantees ", "up to ", "a burst of "];
                let is_of_other = of_others.iter().any(|what| reason.contains(what));
                prop_assert!(is_of_other && !reason.contains("may be due"), "{}", reason);
            }
            if offer.accepted {
                prop_assert!(try_put(&client, &asked).is_ok());
                remove(&client, "asked");
                for (gateway, _) in LINKS {
                    catch_up(&client, gateway);
                }
            } else {
                let refused = try_put(&client, &asked).unwrap_err();
                prop_assert_eq!(Some(refused.to_string()), offer.reason);
            }
            Ok(())
        })
        .unwrap();
}
