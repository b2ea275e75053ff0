//! Ports: where nodes send.

use crate::device::Forwarding;
use crate::endpoint::TransmitRing;
use crate::event::{EventQueue, Place};
use crate::flow_control::{FlowControl, Wish};
use crate::observer::Observer;
use crate::packet::{Packet, PacketId, packet_of};
use crate::wires::Wires;
use slicewise_dataplane::Classifier;
use slicewise_units::Instant;
use slicewise_wire::Headers;

/// A node of a [`Topology`](crate::Topology), identified by the topology that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// An endpoint: it sends and captures, and forwards nothing.
    Endpoint(u32),
    /// A device: it forwards.
    Device(u32),
}

/// A port of a node, identified by the topology that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub(crate) u32);

impl PortId {
    pub(crate) const fn of(number: u32) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u32 {
        self.0
    }
}

/// A port of a node in a running network. Its number is also that of the link it sends on.
#[derive(Debug, Clone)]
pub(crate) struct Port<F> {
    pub(crate) egress: Egress<F>,
    /// When it is to be served, as was last found; [`Instant::MAX`] for never. With a timer, that may have happened.
    wake_at: Instant,
    /// Where the timer is scheduled; [nowhere](Place::MAX) where the port has none.
    timer: Place,
    /// Without a timer the same, and [`Instant::MAX`] with one: a comparison for each packet tells both.
    deferred_to: Instant,
    /// At a device with flow control, by flow: that of the link by which the flow's frames reach the device. Empty
    /// without flow control.
    controls: Vec<u32>,
    pub(crate) classes: Classes,
}

/// The classes of flows in the policy of a port, which are looked up once and not for every frame.
#[derive(Debug, Clone, Default)]
pub(crate) struct Classes {
    /// Revision of the classifier that found them. It changes by itself where frames are on their way from one class to another.
    revision: u64,
    /// By flow; [`Self::UNKNOWN`] until it is asked for.
    of_flow: Vec<u32>,
}

impl Classes {
    const UNKNOWN: u32 = u32::MAX;

    /// The class of frames of `flow`, which have these headers.
    #[inline]
    pub(crate) fn of(&mut self, flow: usize, classifier: &Classifier, headers: &Headers) -> u32 {
        match self.of_flow.get(flow) {
            Some(&class) if classifier.revision() == self.revision && class != Self::UNKNOWN => {
                class
            }
            _ => self.find(flow, classifier, headers),
        }
    }

    #[cold]
    fn find(&mut self, flow: usize, classifier: &Classifier, headers: &Headers) -> u32 {
        if self.revision != classifier.revision() {
            self.revision = classifier.revision();
            self.of_flow.clear();
        }
        let known = self.of_flow.len().max(flow + 1);
        self.of_flow.resize(known, Self::UNKNOWN);
        let class = classifier.classify(headers);
        self.of_flow[flow] = class;
        class
    }

    /// A flow has other headers from now on.
    pub(crate) fn forget(&mut self, flow: usize) {
        if let Some(class) = self.of_flow.get_mut(flow) {
            *class = Self::UNKNOWN;
        }
    }
}

/// Queue or scheduler of a port, by the kind of its node.
#[derive(Debug, Clone)]
pub(crate) enum Egress<F> {
    /// An endpoint's adapter.
    Adapter(TransmitRing),
    /// Of an endpoint or a device: every frame is put on the link at once, behind those before it. Nobody pauses it, and it
    /// has room for all. See `topology/ahead.rs`.
    Ahead,
    /// The forwarding plane of a device.
    Forwarding(F),
}

impl<F> Port<F> {
    pub(crate) fn new(egress: Egress<F>, timer: Place, controls: Vec<u32>) -> Self {
        Self {
            controls,
            classes: Classes::default(),
            egress,
            wake_at: Instant::MAX,
            timer,
            deferred_to: Instant::MAX,
        }
    }

    /// The flow control that a frame of `flow` is subject to while it waits here.
    #[inline]
    pub(crate) fn control_of(&self, flow: u16) -> Option<usize> {
        let control = self.controls.get(usize::from(flow))?;
        Some(*control as usize)
    }

    /// Frames that wait in an adapter.
    pub(crate) fn waiting(&self) -> usize {
        match &self.egress {
            Egress::Adapter(ring) => ring.len(),
            Egress::Ahead | Egress::Forwarding(_) => 0,
        }
    }

    /// It is to be served at `at`, which is later than now: the timer is set if that is not known yet.
    #[inline]
    pub(crate) fn wake(&mut self, at: Instant, events: &mut EventQueue) {
        if at != self.wake_at {
            self.set_timer(at, events);
        }
    }

    /// The same where `at` may be now, for which the timer may have expired already.
    #[inline]
    pub(crate) fn set_timer(&mut self, at: Instant, events: &mut EventQueue) {
        self.wake_at = at;
        if self.timer == Place::MAX {
            self.deferred_to = at;
        } else {
            events.schedule(at, self.timer);
        }
    }
}

impl<O: Observer> Wires<O> {
    /// Returns true if flow control lets a packet that has arrived at a device wait for `port`.
    #[inline(always)]
    pub(crate) fn has_room<F>(&self, port: &Port<F>, packet: &Packet) -> bool {
        // Most networks have no flow control.
        self.flow_controls.is_empty()
            || port.control_of(packet.flow).is_none_or(|control| {
                self.flow_controls[control].has_room(packet.priority(), packet.l2_bytes)
            })
    }

    /// A packet waits for `port`.
    #[inline(always)]
    pub(crate) fn on_waiting<F>(&mut self, port: &Port<F>, id: PacketId, now: Instant) {
        self.count(port, id, now, FlowControl::on_queued);
    }

    /// There was no room for a packet to `port`.
    pub(crate) fn on_refused<F>(&mut self, port: &Port<F>, id: PacketId, now: Instant) {
        self.count(port, id, now, |control, priority, _| {
            control.on_refused(priority)
        });
    }

    /// A packet no longer waits for `port`: it is sent, or was dropped.
    #[inline(always)]
    pub(crate) fn on_gone<F>(&mut self, port: &Port<F>, id: PacketId, now: Instant) {
        self.count(port, id, now, FlowControl::on_left);
    }

    #[inline(always)]
    fn count<F>(
        &mut self,
        port: &Port<F>,
        id: PacketId,
        now: Instant,
        counted: fn(&mut FlowControl, u8, u32) -> Option<(usize, Wish)>,
    ) {
        if !self.flow_controls.is_empty() {
            let flow = self.packets.get(id).flow;
            if let Some(control) = port.control_of(flow) {
                self.count_under(control, id, now, counted);
            }
        }
    }

    /// Count a packet under a flow control, and send the pause frame that follows from it.
    #[inline(never)]
    fn count_under(
        &mut self,
        control: usize,
        id: PacketId,
        now: Instant,
        counted: fn(&mut FlowControl, u8, u32) -> Option<(usize, Wish)>,
    ) {
        let packet = self.packets.get(id);
        let counting = &mut self.flow_controls[control];
        if let Some((priority, wish)) = counted(counting, packet.priority(), packet.l2_bytes) {
            self.tell(control, priority, wish, now);
        }
    }

    /// Send a pause frame.
    #[cold]
    pub(crate) fn tell(&mut self, control: usize, priority: usize, wish: Wish, now: Instant) {
        let arrival = self.transmit_pause(self.flow_controls[control].back, now);
        let control = &mut self.flow_controls[control];
        control.on_sent(priority, wish, now, arrival);
        self.events.schedule(control.next_event(), control.place);
    }
}

impl<F: Forwarding> Port<F> {
    /// Send the next frame of a device if the transmitter is ready and a frame may leave, and set the timer for the next one.
    #[inline(never)]
    pub(crate) fn serve<O: Observer>(&mut self, number: u32, wires: &mut Wires<O>, now: Instant) {
        let Egress::Forwarding(forwarding) = &mut self.egress else {
            debug_assert!(false, "it is a port of a device with a policy");
            return;
        };
        let mut ready_at = wires.link(number).ready_at();
        let served = forwarding.serve(ready_at, now);
        if let Some(leaving) = served.leaving {
            if wires.packets.is_large() {
                wires.packets.prefetch(forwarding.next_handle());
            }
            wires.on_gone(self, leaving.id(), now);
            ready_at = wires.forward(number, leaving, now);
        }
        self.wake(served.poll_at.max(ready_at), &mut wires.events);
        self.lose_dropped(wires, now);
    }

    /// Send what a port without a timer was to send before `end`. Returns when it last was to; zero if it was not.
    #[inline(always)]
    pub(crate) fn serve_before<O: Observer>(
        &mut self,
        end: Instant,
        number: u32,
        wires: &mut Wires<O>,
    ) -> Instant {
        let mut last = Instant::ZERO;
        while self.deferred_to < end {
            last = self.deferred_to;
            wires.events.handled += 1;
            self.serve(number, wires, last);
        }
        last
    }

    /// Report frames that a device dropped from its queues as lost.
    #[inline]
    pub(crate) fn lose_dropped<O: Observer>(&mut self, wires: &mut Wires<O>, now: Instant) {
        if let Egress::Forwarding(forwarding) = &self.egress
            && forwarding.has_dropped()
        {
            self.lose_all_dropped(wires, now);
        }
    }

    #[cold]
    fn lose_all_dropped<O: Observer>(&mut self, wires: &mut Wires<O>, now: Instant) {
        while let Egress::Forwarding(forwarding) = &mut self.egress
            && let Some(frame) = forwarding.poll_dropped()
        {
            let id = packet_of(&frame);
            wires.on_gone(self, id, now);
            wires.lose_id(id, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::port::port;
    use slicewise_dataplane::{Change, Pipeline};
    use slicewise_model::PolicyParams;
    use slicewise_model::{ClassMap, ClassSpec, Condition, Discipline, MatchMode, PolicySpec};
    use slicewise_units::BitRate;

    /// Classes that take the VLANs, in this order.
    fn policy(vlans: &[u16]) -> PolicyParams {
        let classes = vlans.iter().map(|vlan| {
            ClassSpec::new(ClassMap {
                name: vlan.to_string(),
                mode: MatchMode::Any,
                conditions: vec![Condition::OuterVlan(*vlan..=*vlan)],
            })
        });
        let spec = PolicySpec {
            name: "policy".to_owned(),
            classes: classes.collect(),
            discipline: Discipline::MinimumShare,
            guaranteed: None,
            queues: Vec::new(),
        };
        spec.resolve(BitRate::new(1_000_000)).unwrap()
    }

    #[test]
    fn the_class_of_a_flow_is_kept_until_the_policy_or_its_headers_change() {
        let mut pipeline: Pipeline = port(policy(&[10, 20]), 1).unwrap();
        let headers = |outer_vlan| Headers {
            vlan_tags: 1,
            outer_vlan,
            ..Headers::default()
        };
        let mut classes = Classes::default();
        let of = |classes: &mut Classes, pipeline: &Pipeline, vlan| {
            classes.of(3, pipeline.classifier(), &headers(vlan))
        };
        assert_eq!(of(&mut classes, &pipeline, 20), 1);
        assert_eq!(of(&mut classes, &pipeline, 10), 1, "as it was found");
        classes.forget(3);
        assert_eq!(of(&mut classes, &pipeline, 10), 0);
        let change = Change::Policy(policy(&[20, 10]));
        drop(pipeline.apply(change, Instant::ZERO).unwrap());
        assert_eq!(of(&mut classes, &pipeline, 10), 1);
        assert_eq!(classes.of(9, pipeline.classifier(), &headers(20)), 0);
    }
}
