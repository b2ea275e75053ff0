//! Queues: limits and early dropping.

use slicewise_units::{ByteCount, Duration};

/// A queue limit as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimitSpec {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes (L2 without FCS).
    Bytes(ByteCount),
    /// At most the bytes the class sends in this time at its own rate (of its shaper, else its
    /// guaranteed rate, else that of the link).
    Time(Duration),
}

/// A validated queue limit: a packet is admitted if both limits are met *with* it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimitParams {
    /// Most packets in the queue.
    pub packets: u32,
    /// Most bytes in the queue (L2 without FCS); `u64::MAX` where only packets count.
    pub bytes: ByteCount,
    /// After a packet that was not admitted, none is before the queue is so many packets below its limit, or empty; 0: as
    /// soon as there is room.
    pub hysteresis: u32,
}

/// One drop curve of (W)RED: probability 0 below `min_packets`, rising linearly to
/// `1 / mark_denominator` at `max_packets`, 1 from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedCurve {
    /// Average queue from which packets are dropped, packets.
    pub min_packets: u32,
    /// Average queue from which every packet is dropped, packets.
    pub max_packets: u32,
    /// One packet in this many is dropped just below `max_packets`; at least 1.
    pub mark_denominator: u32,
}

/// A drop curve as written: thresholds in packets, in bytes, or in the time in which the class sends them at its own rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedCurveSpec {
    /// Average queue from which packets are dropped.
    pub min: QueueLimitSpec,
    /// Average queue from which every packet is dropped.
    pub max: QueueLimitSpec,
    /// One packet in this many is dropped just below `max`; at least 1.
    pub mark_denominator: u32,
}

impl From<RedCurve> for RedCurveSpec {
    fn from(curve: RedCurve) -> Self {
        Self {
            min: QueueLimitSpec::Packets(curve.min_packets),
            max: QueueLimitSpec::Packets(curve.max_packets),
            mark_denominator: curve.mark_denominator,
        }
    }
}

/// What selects the curve of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WredKey {
    /// Its DSCP: 64 curves.
    #[default]
    Dscp,
    /// Its IP precedence (DSCP >> 3): 8 curves.
    Precedence,
}

/// WRED as written: curves that differ from the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WredSpec {
    /// What selects the curve.
    pub key: WredKey,
    /// Curves set explicitly, by DSCP or precedence value.
    pub curves: Vec<(u8, RedCurveSpec)>,
    /// Weight of the newest sample in the average is 2^-n; default 9 as in IOS.
    pub exponential_weight: Option<u8>,
    /// Between the thresholds, packets of transports with ECN are marked instead of dropped (RFC 3168).
    pub ecn: bool,
}

/// Validated WRED: a curve for each of the 64 code points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WredParams {
    /// Curve by DSCP; always 64 entries.
    pub curves: Vec<RedCurve>,
    /// Weight of the newest sample is 2^-n, n from 1 to 16.
    pub exponential_weight: u8,
    /// Typical transmission time of a packet: determines how fast the average decays while idle
    /// (Floyd & Jacobson 1993, section 11).
    pub typical_transmission: Duration,
    /// Mark packets of transports with ECN where others are dropped by chance.
    pub ecn: bool,
}
