//! Decisions of the data plane on the flows of slices, as events: at most one of a kind for each slice, direction and
//! report, so a busy slice does not flood the log of the controller.

use slicewise_api::{ElephantTerms, FlowTerms, GatewayEvent};
use slicewise_dataplane::{ElephantsSeen, FlowsChanged, FlowsSeen, Weighed};
use slicewise_live::engine::FlowKey;
use slicewise_units::{BitRate, BothWays, Duration, Way};
use std::collections::BTreeMap;

/// Flows that an event names.
const MOST_NAMED: usize = 3;
/// Events of a report; what is more is counted in one.
const MOST_EVENTS: usize = 64;

/// Decisions since the last report.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// Weights that were reported last, by slice.
    weights: BothWays<BTreeMap<String, u32>>,
    events: Vec<GatewayEvent>,
    /// Events for which there was no room.
    more: u64,
}

impl Decisions {
    /// Something was decided.
    pub(crate) fn note(&mut self, slice: Option<String>, reason: String) {
        if self.events.len() < MOST_EVENTS {
            self.events.push(GatewayEvent { slice, reason });
        } else {
            self.more += 1;
        }
    }

    /// Notes the decisions in a report on the flows of a slice that has these terms.
    pub(crate) fn on_seen(&mut self, way: Way, name: &str, seen: &FlowsSeen, terms: &FlowTerms) {
        if let Some(weighed) = seen.weighed
            && let Some(reason) = self.weighed(way, name, weighed)
        {
            self.note(Some(name.to_owned()), format!("{way}: {reason}"));
        }
        if let (Some(seen), Some(terms)) = (&seen.elephants, &terms.elephants)
            && let Some(reason) = elephants(seen, terms)
        {
            self.note(Some(name.to_owned()), format!("{way}: {reason}"));
        }
    }

    fn weighed(&mut self, way: Way, name: &str, now: Weighed) -> Option<String> {
        let of_one = now.weight / now.flows.max(1);
        let before = self.weights[way]
            .insert(name.to_owned(), now.weight)
            .unwrap_or(of_one);
        let flows = match now.flows {
            0 => "no flow is active".to_owned(),
            1 => "1 flow is active".to_owned(),
            flows => format!("{flows} flows are active"),
        };
        (before != now.weight).then(|| format!("weight {before} → {}: {flows}", now.weight))
    }

    /// The events of a report. Only slices for which `is_slice` is true are remembered.
    pub(crate) fn take(&mut self, is_slice: impl Fn(&str) -> bool) -> Vec<GatewayEvent> {
        for (_, weights) in self.weights.iter_mut() {
            weights.retain(|name, _| is_slice(name));
        }
        let mut events = std::mem::take(&mut self.events);
        let more = std::mem::take(&mut self.more);
        if more > 0 {
            let reason = format!("{more} more decisions within a second are not listed");
            events.push(GatewayEvent {
                slice: None,
                reason,
            });
        }
        events
    }
}

/// Which flows became elephants or ceased to be, and why; `None` if none did.
fn elephants(seen: &ElephantsSeen, terms: &ElephantTerms) -> Option<String> {
    let interval = Duration::from_millis(terms.interval_ms);
    let times = terms.times;
    let in_a_row = match times {
        1 => format!("in {interval}"),
        times => format!("in {times} intervals of {interval} in a row"),
    };
    let mut parts = Vec::new();
    if seen.became.flows > 0 {
        let rate = BitRate::new(terms.rate_bps);
        let became = match seen.became.flows {
            1 => "1 flow became an elephant".to_owned(),
            flows => format!("{flows} flows became elephants"),
        };
        let flows = named(&seen.became);
        parts.push(format!("{became}, above {rate} {in_a_row}: {flows}"));
    }
    if seen.ceased.flows > 0 {
        let rate = BitRate::new(terms.rate_bps / 2);
        let ceased = match seen.ceased.flows {
            1 => "1 flow ceased to be one".to_owned(),
            flows => format!("{flows} flows ceased to be elephants"),
        };
        let flows = named(&seen.ceased);
        parts.push(format!("{ceased}, below {rate} {in_a_row}: {flows}"));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn named(changed: &FlowsChanged) -> String {
    let named = changed.named.iter().take(MOST_NAMED);
    let mut flows: Vec<String> = named
        .map(|headers| {
            FlowKey::of(headers).map_or_else(|| "not IP".to_owned(), |flow| flow.to_string())
        })
        .collect();
    let others = changed.flows.saturating_sub(flows.len() as u64);
    if others > 0 {
        flows.push(format!("and {others} more"));
    }
    flows.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_dataplane::{Headers, IpVersion};

    const TERMS: FlowTerms = FlowTerms {
        weight_per_flow: true,
        flow_queueing: false,
        elephants: Some(ElephantTerms {
            rate_bps: 5_000_000,
            interval_ms: 100,
            times: 2,
        }),
    };

    fn weighed(flows: u32) -> FlowsSeen {
        FlowsSeen {
            weighed: Some(Weighed {
                flows,
                weight: 2 * flows.max(1),
            }),
            elephants: None,
        }
    }

    fn flows(flows: u64, version: IpVersion) -> FlowsChanged {
        let headers = |number| Headers {
            source: 0xc000_0201,
            destination: 0xc000_0202,
            ip_version: version,
            protocol: 17,
            has_ports: true,
            source_port: 5_000 + number,
            destination_port: 80,
            ..Headers::default()
        };
        FlowsChanged {
            flows,
            named: (0..u16::try_from(flows.min(8)).unwrap())
                .map(headers)
                .collect(),
        }
    }

    fn reasons(decisions: &mut Decisions) -> String {
        let events = decisions.take(|_| true).into_iter();
        let reasons = events.map(|event| event.reason);
        reasons.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_weight_is_reported_once_when_it_has_changed() {
        let mut decisions = Decisions::default();
        for flows in [1, 6, 6, 0] {
            decisions.on_seen(Way::Forward, "web", &weighed(flows), &TERMS);
        }
        decisions.on_seen(Way::Backward, "web", &weighed(1), &TERMS);
        insta::assert_snapshot!(reasons(&mut decisions), @"
        forward: weight 2 → 12: 6 flows are active
        forward: weight 12 → 2: no flow is active
        ");
    }

    #[test]
    fn flows_that_become_elephants_and_cease_to_be_are_named_with_the_reason() {
        let mut decisions = Decisions::default();
        let mut see = |became, ceased, version| {
            let seen = ElephantsSeen {
                now: 3,
                became: flows(became, version),
                ceased: flows(ceased, version),
            };
            let seen = FlowsSeen {
                weighed: None,
                elephants: Some(seen),
            };
            decisions.on_seen(Way::Backward, "web", &seen, &TERMS);
        };
        see(0, 0, IpVersion::V4);
        see(1, 0, IpVersion::V4);
        see(0, 1, IpVersion::None);
        see(20, 2, IpVersion::V4);
        insta::assert_snapshot!(reasons(&mut decisions), @"
        backward: 1 flow became an elephant, above 5 Mbit/s in 2 intervals of 100 ms in a row: udp 192.0.2.1:5000 → 192.0.2.2:80
        backward: 1 flow ceased to be one, below 2.5 Mbit/s in 2 intervals of 100 ms in a row: not IP
        backward: 20 flows became elephants, above 5 Mbit/s in 2 intervals of 100 ms in a row: udp 192.0.2.1:5000 → 192.0.2.2:80, udp 192.0.2.1:5001 → 192.0.2.2:80, udp 192.0.2.1:5002 → 192.0.2.2:80, and 17 more; 2 flows ceased to be elephants, below 2.5 Mbit/s in 2 intervals of 100 ms in a row: udp 192.0.2.1:5000 → 192.0.2.2:80, udp 192.0.2.1:5001 → 192.0.2.2:80
        ");
    }

    #[test]
    fn a_report_has_so_many_events_and_says_how_many_more_there_were() {
        let mut decisions = Decisions::default();
        for number in 0..100 {
            decisions.on_seen(Way::Forward, &format!("s{number}"), &weighed(5), &TERMS);
        }
        let events = decisions.take(|_| true);
        assert_eq!(events.len(), MOST_EVENTS + 1);
        insta::assert_snapshot!(events[MOST_EVENTS].reason, @"36 more decisions within a second are not listed");
        // What is gone is forgotten, and reported again.
        assert_eq!(decisions.take(|name| name != "s1").len(), 0);
        for number in 0..100 {
            decisions.on_seen(Way::Forward, &format!("s{number}"), &weighed(5), &TERMS);
        }
        let events = decisions.take(|_| true);
        let slices: Vec<_> = events.iter().map(|event| event.slice.as_deref()).collect();
        assert_eq!(slices, [Some("s1")]);
    }
}
