//! A connection's end: opening, data both ways, closing (RFC 9293, section 3.3.2), without a clock and without I/O.

use crate::behaviour::Behaviour;
use crate::receive::Receiver;
use crate::segment::{Flags, Segment, stamp};
use crate::send::{Outgoing, SendFigures, Sender};
use slicewise_units::{Duration, Instant};

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN, or will.
    SynSent,
    /// Has answered a SYN, or will.
    SynReceived,
    /// Data flows; one direction may have ended.
    Established,
    /// Both directions have ended.
    Closed,
    /// It gave up: nothing was acknowledged although it was sent again and again.
    TimedOut,
}

/// One end of a connection.
///
/// Whoever owns it gives it what arrives ([`Self::on_segment`]), wakes it no later than [`Self::poll_at`]
/// ([`Self::on_timer`]; earlier is harmless), sends what [`Self::poll_transmit`] returns until that is `None`, after each of these and
/// after [`Self::write`] and [`Self::close`], and says when data has left the adapter ([`Self::on_left`]).
#[derive(Debug, Clone)]
pub struct Connection {
    state: State,
    sender: Sender,
    receiver: Receiver,
    sample: Option<Duration>,
}

impl Connection {
    /// The end that opens: its SYN is ready to be sent.
    #[must_use]
    pub fn open(behaviour: &Behaviour) -> Self {
        Self::new(behaviour, State::SynSent)
    }

    /// The end that waits for a SYN.
    #[must_use]
    pub fn listen(behaviour: &Behaviour) -> Self {
        Self::new(behaviour, State::Listen)
    }

    fn new(behaviour: &Behaviour, state: State) -> Self {
        Self {
            state,
            sender: Sender::new(behaviour),
            receiver: Receiver::new(behaviour),
            sample: None,
        }
    }

    /// How far it is.
    #[inline]
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns the counters of its sender.
    #[must_use]
    pub const fn figures(&self) -> &SendFigures {
        &self.sender.figures
    }

    /// The congestion window, bytes.
    #[must_use]
    pub const fn window_bytes(&self) -> u64 {
        self.sender.window.bytes
    }

    /// Bytes given to it and acknowledged by the other end.
    #[must_use]
    pub const fn acknowledged_bytes(&self) -> u64 {
        self.sender.una().saturating_sub(1)
    }

    /// The application gives `bytes` more to send.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application has nothing more to send. What it has given is sent first; of an endless stream, what its send buffer
    /// holds.
    pub fn close(&mut self, behaviour: &Behaviour) {
        self.sender.finish(behaviour);
    }

    /// Bytes that arrived in order since the last call.
    #[inline]
    pub fn take_arrived(&mut self) -> u64 {
        self.receiver.take_arrived()
    }

    /// The round trip measured since the last call, if one was.
    #[inline]
    pub fn take_sample(&mut self) -> Option<Duration> {
        self.sample.take()
    }

    /// The other end has ended its direction, and all of it has arrived.
    #[must_use]
    pub fn is_end_of_stream(&self) -> bool {
        self.receiver.is_done()
    }

    /// A segment arrived. `is_marked`: its packet said that congestion was experienced (CE).
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        is_marked: bool,
        behaviour: &Behaviour,
        now: Instant,
    ) {
        match self.state {
            State::Listen | State::SynSent => self.on_first(segment, behaviour, now),
            State::SynReceived | State::Established => {
                self.on_acknowledgement(segment, now);
                self.measure_at_receiver(segment, now);
                if segment.bytes > 0 {
                    let rto = self.sender.rto();
                    self.receiver.end_silence(rto, behaviour, now);
                }
                self.receiver.on_segment(segment, is_marked, behaviour, now);
                self.settle();
            }
            // The last acknowledgement was lost (TIME-WAIT, RFC 9293, section 3.6).
            State::Closed => self.receiver.on_segment(segment, false, behaviour, now),
            State::TimedOut => {}
        }
    }

    /// The other end's SYN: agree on what both can.
    fn on_first(&mut self, segment: &Segment, behaviour: &Behaviour, now: Instant) {
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        let is_sacking = behaviour.sack && segment.flags.has(Flags::SACK_PERMITTED);
        let is_marking = behaviour.ecn && segment.flags.has(Flags::ECE);
        (self.sender.is_sacking, self.receiver.is_sacking) = (is_sacking, is_sacking);
        (self.sender.is_marking, self.receiver.is_marking) = (is_marking, is_marking);
        self.receiver.on_syn(segment);
        let is_answer = segment.flags.has(Flags::ACK);
        if self.state == State::Listen {
            self.state = State::SynReceived;
        } else if is_answer {
            // ECE of a SYN agrees on ECN and says nothing of congestion.
            let mut answer = *segment;
            answer.flags = answer.flags.without(Flags::ECE);
            self.on_acknowledgement(&answer, now);
            self.state = State::Established;
            self.receiver.on_segment(segment, false, behaviour, now);
        }
    }

    fn on_acknowledgement(&mut self, segment: &Segment, now: Instant) {
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        if let Some(rtt) = self.sender.on_acknowledgement(segment, now) {
            self.sample = Some(rtt);
        }
        if self.state == State::SynReceived && self.sender.una() > 0 {
            self.state = State::Established;
        }
    }

    /// A receiver that sends nothing measures by the time stamps that come back (RFC 7323, section 4).
    fn measure_at_receiver(&mut self, segment: &Segment, now: Instant) {
        if segment.bytes > 0 && segment.echo != 0 {
            let micros = stamp(now).wrapping_sub(segment.echo);
            // Later than a minute it is another clock's, or long ago.
            if micros < 60_000_000 {
                let rtt = Duration::from_micros(u64::from(micros.max(1)));
                self.receiver.on_round_trip(rtt);
            }
        }
    }

    fn settle(&mut self) {
        if self.sender.is_done() && self.receiver.is_done() {
            self.state = State::Closed;
        }
    }

    /// Time has passed.
    pub fn on_timer(&mut self, behaviour: &Behaviour, now: Instant) {
        if matches!(self.state, State::Listen | State::TimedOut) {
            return;
        }
        self.receiver.on_timer(now);
        self.sender.on_timer(behaviour, now);
        if self.sender.has_failed() {
            self.state = State::TimedOut;
        }
    }

    /// When to call [`Self::on_timer`] next.
    #[inline]
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        match self.state {
            State::Listen | State::Closed | State::TimedOut => None,
            State::SynSent | State::SynReceived | State::Established => {
                match (self.sender.poll_at(), self.receiver.poll_at()) {
                    (Some(sends), Some(acknowledges)) => Some(sends.min(acknowledges)),
                    (sends, acknowledges) => sends.or(acknowledges),
                }
            }
        }
    }

    /// `bytes` of data have left the adapter; true if more may be sent now.
    #[inline]
    pub fn on_left(&mut self, bytes: u64, behaviour: &Behaviour) -> bool {
        self.sender.on_left(bytes, behaviour)
    }

    /// Bytes of data that have to leave the adapter before more may be sent; 0 if more may be sent now.
    #[inline]
    pub fn excess_below_socket(&mut self, behaviour: &Behaviour) -> u64 {
        self.sender.excess_below_socket(behaviour)
    }

    /// The next segment to send; with segmentation offload it may be longer than a frame, see [`Segment::part`].
    pub fn poll_transmit(&mut self, behaviour: &Behaviour, now: Instant) -> Option<Segment> {
        match self.state {
            State::Listen | State::TimedOut => return None,
            State::Closed | State::SynSent | State::SynReceived | State::Established => {}
        }
        let outgoing = self.sender.poll_transmit(behaviour, now);
        if outgoing.is_none() && !(self.receiver.is_ack_due() && self.state != State::SynReceived) {
            return None;
        }
        let sequence = outgoing.map_or(self.sender.next(), |outgoing| outgoing.start);
        let mut segment = Segment {
            sequence,
            stamp: stamp(now),
            ..Segment::default()
        };
        if let Some(outgoing) = outgoing {
            self.fill(&mut segment, outgoing, behaviour);
        }
        if segment.bytes > 0 {
            self.receiver.on_data_sent(behaviour, now);
        }
        if self.state != State::SynSent {
            let is_syn = segment.flags.has(Flags::SYN);
            self.receiver.acknowledge(&mut segment);
            if is_syn {
                segment.flags = segment.flags.with_if(self.sender.is_marking, Flags::ECE);
            }
        }
        Some(segment)
    }

    fn fill(&mut self, segment: &mut Segment, outgoing: Outgoing, behaviour: &Behaviour) {
        let Outgoing {
            start,
            end,
            is_resent,
        } = outgoing;
        if start == 0 {
            let is_asking = self.state == State::SynSent;
            segment.flags = Flags::SYN
                .with_if(self.sender.is_sacking, Flags::SACK_PERMITTED)
                .with_if(is_asking && behaviour.ecn, Flags::ECE.with(Flags::CWR));
            return;
        }
        let has_fin = self.sender.fin().is_some_and(|fin| end > fin);
        let bytes = end - start - u64::from(has_fin);
        segment.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let is_new = !is_resent && bytes > 0;
        // RFC 3168, section 6.1.5: what is sent again is not marked.
        let is_marking = self.sender.is_marking && is_new;
        let has_reduced = is_new && self.sender.take_reduced();
        let is_last = bytes > 0 && end >= self.sender.written();
        segment.flags = Flags::default()
            .with_if(is_last, Flags::PSH)
            .with_if(has_fin, Flags::FIN)
            .with_if(is_marking, Flags::ECT)
            .with_if(has_reduced && is_marking, Flags::CWR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a connection, without what is under way: 2 KB at most.
    #[test]
    fn a_connection_takes_at_most_two_kilobytes() {
        let both = 2 * size_of::<Connection>();
        assert!(both <= 2_000, "{both} B");
    }
}
