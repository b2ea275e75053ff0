//! Objects in a network that can have an event pending, and where it is scheduled.

use super::ahead::Ahead;
use super::{Node, PortId, Topology, TopologyError, count};
use crate::device::Forwarding;
use crate::event::{Event, EventQueue, Place};
use crate::link::LinkParams;
use crate::transport::FirstPlaces;
use std::collections::BTreeSet;

/// Objects in a network that can have an event pending.
pub(super) struct Actors<'a> {
    /// By port: a flow uses it.
    pub(super) used: &'a [bool],
    /// Endpoints that answer what they receive.
    pub(super) answers: BTreeSet<Node>,
    /// Ends of connections, and applications.
    pub(super) timers: (usize, usize),
}

/// Where the events of a port are scheduled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) arrival: Place,
    pub(super) timer: Place,
    /// Of flow control of the link.
    pub(super) control: Place,
}

impl Default for Places {
    /// Nowhere: no flow uses the port.
    fn default() -> Self {
        Self {
            arrival: Place::MAX,
            timer: Place::MAX,
            control: Place::MAX,
        }
    }
}

impl<F: Forwarding> Topology<F> {
    /// The event queue, with the places of the `departures` of sources, a place for each port that a flow uses, and those
    /// of what has timers of its own; and the first places of the latter: a network in which nothing comes back pays nothing
    /// for the way back.
    pub(super) fn events(
        &self,
        departures: Vec<Event>,
        actors: &Actors<'_>,
        ahead: &Ahead,
        peers: &[(PortId, LinkParams)],
        nodes: &[Node],
    ) -> Result<(EventQueue, Vec<Places>, FirstPlaces), TopologyError> {
        let (mut events, mut chains) = (departures, 0);
        let mut places = vec![Places::default(); actors.used.len()];
        let numbers = || (0u32..).zip(actors.used).filter(|(_, used)| **used);
        for (number, _) in numbers() {
            let index = number as usize;
            let to = nodes[peers[index].0.0 as usize];
            let acts = matches!(to, Node::Device(_)) || actors.answers.contains(&to);
            let varies = self
                .impairments
                .iter()
                .any(|(port, impairments)| port.0 == number && impairments.varies_delay());
            // What only captures needs no event: see `Receiver`.
            if acts || varies {
                places[index].arrival = count(events.len());
                events.push(if ahead.is_chained(number) {
                    chains += 1;
                    Event::Chain(chains - 1)
                } else {
                    Event::Arrival(number)
                });
            }
        }
        for (number, _) in numbers() {
            let is_last = places[number as usize].arrival == Place::MAX;
            if ahead.is_ahead(number) || is_last && ahead.may_be_deferred(number) {
                continue;
            }
            places[number as usize].timer = count(events.len());
            events.push(Event::Timer(number));
        }
        let controlled = numbers().filter(|(number, _)| {
            let (peer, _) = peers[*number as usize];
            self.flow_control_of(peer).is_some()
        });
        for (control, (number, _)) in (0..).zip(controlled) {
            places[number as usize].control = count(events.len());
            events.push(Event::FlowControl(control));
        }
        let (ends, applications) = actors.timers;
        let room = count(events.len());
        events.extend((0..count(ends)).map(Event::Room));
        let end = count(events.len());
        events.extend((0..count(ends)).map(Event::Connection));
        let application = count(events.len());
        events.extend((0..count(applications)).map(Event::Application));
        let first = FirstPlaces {
            room,
            end,
            application,
        };
        let events = EventQueue::new(events).ok_or(TopologyError::TooLarge)?;
        Ok((events, places, first))
    }
}
