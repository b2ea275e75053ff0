//! The matching rules implemented with a map and no window.

use super::{Fact, Recorder, sighting};
use crate::Sighting;
use crate::matching::{MatchParams, Matcher};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// State of one key.
#[derive(Debug, Clone, Copy)]
enum Open {
    Sent(u64),
    Received(u64),
    Matched(u64),
    Group { at: i64, sent: u64, received: u64 },
}

#[derive(Debug, Default)]
struct Model {
    timeout: i64,
    alignment: i64,
    open: BTreeMap<u64, Open>,
    facts: Vec<Fact>,
}

impl Model {
    fn take_if_within(&mut self, key: u64, time: i64) -> Option<Open> {
        let open = self.open.remove(&key)?;
        let at = match open {
            Open::Sent(at) | Open::Matched(at) => at as i64,
            Open::Received(at) => at as i64 - self.alignment,
            Open::Group { at, .. } => at,
        };
        if (time - at).abs() <= self.timeout {
            return Some(open);
        }
        self.settle(key, open);
        None
    }

    fn settle(&mut self, key: u64, open: Open) {
        self.facts.extend(match open {
            Open::Sent(at) => Some(Fact::Lost(key, at)),
            Open::Received(at) => Some(Fact::Unsent(key, at)),
            Open::Matched(_) => None,
            Open::Group { sent, received, .. } => Some(Fact::Closed(key, sent, received)),
        });
    }

    fn sent(&mut self, key: u64, time: u64) {
        self.facts.push(Fact::Sent(key, time));
        let at = time as i64;
        let group = |sent, received| Open::Group { at, sent, received };
        let next = match self.take_if_within(key, at) {
            None => Open::Sent(time),
            Some(Open::Received(received)) => {
                self.facts.push(Fact::Received(key, time, received));
                Open::Matched(time)
            }
            Some(Open::Sent(first)) => {
                self.facts.push(Fact::AmbiguousSent(key, first));
                self.facts.push(Fact::AmbiguousSent(key, time));
                group(2, 0)
            }
            Some(Open::Matched(_)) => {
                self.facts.push(Fact::AmbiguousSent(key, time));
                group(1, 0)
            }
            Some(Open::Group { sent, received, .. }) => {
                self.facts.push(Fact::AmbiguousSent(key, time));
                group(sent + 1, received)
            }
        };
        self.open.insert(key, next);
    }

    fn received(&mut self, key: u64, time: u64) {
        let next = match self.take_if_within(key, time as i64 - self.alignment) {
            None => Open::Received(time),
            Some(Open::Sent(sent)) => {
                self.facts.push(Fact::Received(key, sent, time));
                Open::Matched(sent)
            }
            Some(Open::Matched(sent)) => {
                self.facts.push(Fact::Duplicate(key, sent, time));
                Open::Matched(sent)
            }
            Some(Open::Received(first)) => {
                self.facts.push(Fact::AmbiguousReceived(key, first));
                self.facts.push(Fact::AmbiguousReceived(key, time));
                let at = first as i64 - self.alignment;
                Open::Group {
                    at,
                    sent: 0,
                    received: 2,
                }
            }
            Some(Open::Group { at, sent, received }) => {
                self.facts.push(Fact::AmbiguousReceived(key, time));
                let received = received + 1;
                Open::Group { at, sent, received }
            }
        };
        self.open.insert(key, next);
    }

    fn finish(mut self) -> Vec<Fact> {
        for (key, open) in std::mem::take(&mut self.open) {
            self.settle(key, open);
        }
        self.facts.sort_unstable();
        self.facts
    }
}

/// One sighting: by the sender or not, time, key and flow.
fn seen() -> impl Strategy<Value = Vec<(bool, Sighting)>> {
    let one = (any::<bool>(), 0_u64..40, 0_u64..60, 0_u32..4);
    proptest::collection::vec(one, 0..400).prop_map(|steps| {
        let mut time_ns = 10_000;
        let mut seen = Vec::new();
        for (is_sent, step, key, flow) in steps {
            time_ns += step;
            // Up to 10 ns out of order: what `slack_ns` of the time-out below allows.
            let late = if step % 5 == 0 { 10 } else { 0 };
            seen.push((is_sent, sighting(time_ns - late, key, flow)));
        }
        seen
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_model(
        seen in seen(),
        timeout_ns in 500_u64..2_000,
        alignment_ns in -5_000_i64..5_000,
        advances in any::<bool>(),
    ) {
        let params = MatchParams { timeout_ns, alignment_ns, ..MatchParams::default() };
        let mut matcher = Matcher::new(params);
        let mut model = Model { timeout: timeout_ns as i64, alignment: alignment_ns, ..Model::default() };
        let mut recorder = Recorder::default();
        for (is_sent, mut one) in seen {
            if advances {
                matcher.advance(one.time_ns as i64, &mut recorder);
            }
            if is_sent {
                model.sent(one.key, one.time_ns);
                matcher.on_sent_batch(&[one], &mut recorder);
            } else {
                one.time_ns = one.time_ns.saturating_add_signed(alignment_ns);
                model.received(one.key, one.time_ns);
                matcher.on_received_batch(&[one], &mut recorder);
            }
        }
        matcher.finish(&mut recorder);
        prop_assert_eq!(recorder.sorted(), model.finish());
        prop_assert!(recorder.orders.iter().all(|&order| order < matcher.counts().sent + matcher.counts().received));

        let counts = matcher.counts();
        prop_assert_eq!(counts.sent, counts.matched + counts.lost + counts.ambiguous_sent);
        prop_assert_eq!(
            counts.received,
            counts.matched + counts.duplicates + counts.unsent + counts.ambiguous_received
        );
    }
}
