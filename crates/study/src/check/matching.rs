//! Conditions on headers: from a study's form to a class map's.

use super::Checker;
use crate::spec::{MatchSpec, NumberRange, OneOrMany, RangeBound, Scalar, Text};
use slicewise_model::{AccessEntry, AccessList, ClassMap, Condition, MatchMode};
use std::ops::RangeInclusive;

/// The largest VLAN id that can be used (IEEE 802.1Q).
const MAX_VLAN: u16 = 4094;
/// Deepest nesting of `not`.
const MAX_NOT: usize = 8;

impl Checker<'_> {
    /// The class map `name` for a list of alternatives.
    pub(super) fn class_map(&mut self, name: &str, any_of: &OneOrMany<MatchSpec>) -> ClassMap {
        let mut alternatives: Vec<Vec<Condition>> = any_of
            .0
            .iter()
            .map(|spec| self.conditions(spec, 0))
            .collect();
        if alternatives.len() == 1 {
            // One mapping: its keys must all hold. A lone list of values reads better as any-of.
            let mut all = alternatives.swap_remove(0);
            if let [Condition::AccessList(list)] = all.as_slice()
                && let Some(conditions) = single_conditions(list)
            {
                return ClassMap {
                    name: name.to_owned(),
                    mode: MatchMode::Any,
                    conditions,
                };
            }
            if all.is_empty() {
                all.push(Condition::Everything);
            }
            return ClassMap {
                name: name.to_owned(),
                mode: MatchMode::All,
                conditions: all,
            };
        }
        let conditions = alternatives.into_iter().map(all_of).collect();
        ClassMap {
            name: name.to_owned(),
            mode: MatchMode::Any,
            conditions,
        }
    }

    /// What must all hold. Several values of one key become one condition.
    fn conditions(&mut self, spec: &MatchSpec, depth: usize) -> Vec<Condition> {
        let mut conditions = Vec::new();
        let mut add = |alternatives: Vec<Condition>| {
            if !alternatives.is_empty() {
                conditions.push(any_of(alternatives));
            }
        };
        add(self.ranges(&spec.vlan, MAX_VLAN, Condition::OuterVlan));
        add(self.ranges(&spec.inner_vlan, MAX_VLAN, Condition::InnerVlan));
        add(self.values(&spec.source, Condition::Source));
        add(self.values(&spec.destination, Condition::Destination));
        add(self.values(&spec.protocol, |protocol| Condition::Protocol(protocol.0)));
        add(self.ranges(&spec.source_port, u16::MAX, Condition::SourcePort));
        add(self.ranges(&spec.destination_port, u16::MAX, Condition::DestinationPort));
        add(self.ranges(&spec.teid, u32::MAX, Condition::GtpTeid));
        let dscp = self.values(&spec.dscp, |dscp| Condition::Dscp(1 << dscp.0));
        add(union_of_code_points(dscp));
        for text in &spec.precedence.0 {
            if text
                .read(self.problems)
                .is_some_and(|precedence| precedence > 7)
            {
                self.problems
                    .add(text.span(), "a precedence is a number from 0 to 7");
            }
        }
        add(union_of_code_points(
            self.values(&spec.precedence, Condition::precedence),
        ));
        if let Some(not) = &spec.not
            && depth < MAX_NOT
        {
            let inner = all_of(self.conditions(not, depth + 1));
            conditions.push(Condition::Not(Box::new(inner)));
        }
        conditions
    }

    fn values<T: Scalar>(
        &mut self,
        texts: &OneOrMany<Text<T>>,
        condition: impl Fn(T) -> Condition,
    ) -> Vec<Condition> {
        texts
            .0
            .iter()
            .filter_map(|text| text.read(self.problems))
            .map(condition)
            .collect()
    }

    fn ranges<T: RangeBound>(
        &mut self,
        texts: &OneOrMany<Text<NumberRange<T>>>,
        largest: T,
        condition: impl Fn(RangeInclusive<T>) -> Condition,
    ) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for text in &texts.0 {
            let Some(range) = text.read(self.problems) else {
                continue;
            };
            if range.last > largest {
                self.problems
                    .add(text.span(), format!("this is above {largest}, the largest"));
                continue;
            }
            conditions.push(condition(range.first..=range.last));
        }
        conditions
    }
}

/// Sets of code points are one condition already.
fn union_of_code_points(conditions: Vec<Condition>) -> Vec<Condition> {
    let union = conditions
        .iter()
        .fold(0, |union, condition| match condition {
            Condition::Dscp(set) => union | set,
            _ => union,
        });
    if union == 0 {
        Vec::new()
    } else {
        vec![Condition::Dscp(union)]
    }
}

/// One of these. A class map has no "or" inside an "and": an access list says it.
fn any_of(mut alternatives: Vec<Condition>) -> Condition {
    if alternatives.len() == 1 {
        return alternatives.swap_remove(0);
    }
    let entries = alternatives
        .into_iter()
        .map(|condition| AccessEntry {
            permit: true,
            conditions: vec![condition],
        })
        .collect();
    Condition::AccessList(AccessList {
        name: "any-of".to_owned(),
        entries,
    })
}

/// All of these.
fn all_of(mut conditions: Vec<Condition>) -> Condition {
    match conditions.len() {
        0 => Condition::Everything,
        1 => conditions.swap_remove(0),
        _ => {
            let entry = AccessEntry {
                permit: true,
                conditions,
            };
            Condition::AccessList(AccessList {
                name: "all-of".to_owned(),
                entries: vec![entry],
            })
        }
    }
}

/// The conditions of a list whose entries permit on one condition each.
fn single_conditions(list: &AccessList) -> Option<Vec<Condition>> {
    let single = |entry: &AccessEntry| match entry.conditions.as_slice() {
        [condition] if entry.permit => Some(condition.clone()),
        _ => None,
    };
    list.entries.iter().map(single).collect()
}
