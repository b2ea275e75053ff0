//! Flow control of the links that lead to a switch: its marks, and whether the buffer holds what is on the wire.

use super::Checker;
use super::network::Packets;
use crate::file::{Placed, Span};
use crate::params::{DutModel, DutParams, FlowControlParams, StudyLink};
use crate::{problem, settings};
use slicewise_model::{PolicyParams, QueueLimitParams};
use slicewise_units::ByteCount;

/// Packets that a Linux socket holds by default: 212,992 B of send buffer, 2,304 B for each full-size packet.
const HOST_QUEUE: u32 = 92;
/// Bytes beside an IP packet that a frame with one VLAN tag occupies on the wire: headers, FCS, preamble, gap.
const FRAME_OVERHEAD_L1: u64 = 14 + 4 + 4 + 20;

settings! {
    /// Pause frames that a switch sends to those who send to it.
    impl FlowControlParams as "FlowControlSpec", strict = Self {
        per_priority: false,
        buffer: ByteCount::ZERO,
        high: ByteCount::ZERO,
        low: ByteCount::ZERO,
        host_queue: HOST_QUEUE,
    };
    {
        /// Pause each of eight priorities for itself (IEEE 802.1Qbb), not the whole link (IEEE 802.3x, the default). The
        /// priority of a packet is the first three bits of its code point.
        per_priority,
        /// Room in the switch for frames that arrived by one link; with priorities, for one priority on it.
        [required] buffer,
        /// When more than this waits, the sender is paused.
        [required] high,
        /// When this or less waits, the sender may go on.
        [required] low,
        /// Packets that wait in the adapter of a paused host when its sources stop sending; with priorities, of one
        /// priority. Default 92 packets, what a Linux socket holds.
        host_queue: Packets = |control, packets| control.host_queue = packets.0,
    }
}

/// L2 bytes of the largest frame with one VLAN tag.
fn largest_l2(link: &StudyLink) -> u64 {
    u64::from(link.mtu_bytes) + 14 + 4
}

impl Checker<'_> {
    /// The marks are in order, and the buffer holds what is on the wire when the sender is told to pause.
    pub(super) fn flow_control(
        &mut self,
        written: &Placed<FlowControlParams>,
        link: Option<&StudyLink>,
        dut: &DutParams,
    ) {
        let FlowControlParams {
            buffer, high, low, ..
        } = written.value;
        let place = |key| written.place(key).unwrap_or(written.span);
        if high >= buffer {
            problem!(self.problems, place("high") => "the high mark of {high} is not below the buffer of {buffer}";
                "a frame that is not dropped would not pause the sender: lower `high`, or give a larger `buffer`");
            return;
        }
        let largest = link.map_or(0, largest_l2);
        if buffer.bytes() < largest {
            problem!(self.problems, place("buffer") => "the buffer of {buffer} has no room for a frame of {largest} B";
                "nothing of that size would pass: give a larger `buffer`");
            return;
        }
        if low >= high {
            problem!(self.problems, place("low") => "the low mark of {low} is not below the high mark of {high}";
                "the sender is paused above `high`, and goes on at `low`");
            return;
        }
        if let Some(link) = link {
            self.headroom(place("high"), written.value, link, dut);
        }
    }

    fn headroom(
        &mut self,
        at: Span,
        control: FlowControlParams,
        link: &StudyLink,
        dut: &DutParams,
    ) {
        let largest = u64::from(link.mtu_bytes) + FRAME_OVERHEAD_L1;
        let on_the_wire = FlowControlParams::on_the_wire(link, dut.processing_delay, largest);
        let room = control.buffer - control.high;
        if room < on_the_wire {
            let lost = on_the_wire - room;
            let message = format!(
                "up to {on_the_wire} arrive before a paused sender stops, and above the high mark there is room for {room}: up to \
                 {lost} are lost at each pause"
            );
            self.problems.warn(at, message);
        }
    }

    /// Pause frames keep what a queue does not drop: those that hold less than the buffer of a link.
    pub(super) fn warn_of_short_queues(
        &mut self,
        at: Span,
        policy: &PolicyParams,
        dut: &DutParams,
        link: &StudyLink,
    ) {
        let DutModel::Switch(switch) = dut.model else {
            return;
        };
        let Some(control) = switch.flow_control else {
            return;
        };
        let largest = largest_l2(link);
        let packets = |packets: u32| u64::from(packets).saturating_mul(largest);
        let bytes = |limit: QueueLimitParams| packets(limit.packets).min(limit.bytes.bytes());
        let classes = policy
            .classes
            .iter()
            .filter(|class| class.named_queue.is_none());
        let own = classes.map(|class| (class.name.as_str(), bytes(class.queue.limit)));
        let named = policy.queues.iter();
        let named = named.map(|queue| (queue.name.as_str(), bytes(queue.queue.limit)));
        let buffer = control.buffer;
        let mut dropped = |what: &str, held: u64| {
            if held < buffer.bytes() {
                let held = ByteCount::new(held);
                let message = format!(
                    "{what} {held} at most, less than the {buffer} of `flow_control.buffer`: what pause frames would have kept is dropped"
                );
                self.problems.warn(at, message);
            }
        };
        if let Some((name, held)) = own.chain(named).min_by_key(|(_, held)| *held) {
            dropped(&format!("queue `{name}` holds"), held);
        }
        if let Some(shared) = switch.buffer_packets {
            dropped("all queues together (`dut.buffer`) hold", packets(shared));
        }
    }

    /// Priorities are paused in hosts alone: on a path, the second device is fed by the first.
    pub(super) fn check_priorities_of_path(&mut self, later: &[(Span, DutParams)]) {
        for (at, device) in later {
            if let DutModel::Switch(switch) = device.model
                && switch
                    .flow_control
                    .is_some_and(|control| control.per_priority)
            {
                problem!(self.problems, *at => "`per_priority` is of the first device of a path: only hosts hold \
                    frames of one priority and send those of others";
                    "leave it out: then whole links are paused");
            }
        }
    }
}
