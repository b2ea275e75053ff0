//! Limit of a queue, and its defaults.

use super::Refusal;
use crate::rate::LARGEST_FRAME;
use slicewise_units::{BitRate, ByteCount, Duration};

/// Time at its rate that a queue holds by default (IOS XE: 50 ms of 1500 B packets).
const QUEUE_TIME: Duration = Duration::from_millis(50);
/// The packet size IOS XE divides by to get a default queue limit.
pub(super) const QUEUE_PACKET: ByteCount = ByteCount::new(1500);
/// Fewest packets a default queue limit allows (IOS XE).
const QUEUE_PACKETS_MIN: u64 = 64;
/// Default limit of a priority queue, packets (IOS XE).
const PRIORITY_QUEUE_PACKETS: u32 = 512;

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

/// The limit of a queue that is sent from at `rate`, unless it is stated.
pub(crate) fn default_limit(rate: BitRate) -> QueueLimitParams {
    let packets = rate.bytes_in(QUEUE_TIME).bytes() / QUEUE_PACKET.bytes();
    let packets = packets.max(QUEUE_PACKETS_MIN);
    QueueLimitParams::of_packets(u32::try_from(packets).unwrap_or(u32::MAX))
}

impl QueueLimitSpec {
    /// The limit at `rate`.
    fn resolve(self, rate: BitRate) -> Result<QueueLimitParams, Refusal> {
        let bytes = match self {
            Self::Packets(0) => {
                let problem = "is 0: no packet could ever be queued";
                return Err(("queue_limit", problem.to_owned()));
            }
            Self::Packets(packets) => return Ok(QueueLimitParams::of_packets(packets)),
            Self::Bytes(bytes) => bytes,
            Self::Time(time) => rate.bytes_in(time),
        };
        if bytes < LARGEST_FRAME {
            let problem = format!("holds {bytes}, less than one largest frame ({LARGEST_FRAME})");
            return Err(("queue_limit", problem));
        }
        Ok(QueueLimitParams {
            bytes,
            // The smallest Ethernet frame without FCS is 60 bytes: more packets cannot fit.
            ..QueueLimitParams::of_packets(
                u32::try_from(bytes.bytes() / 60 + 1).unwrap_or(u32::MAX),
            )
        })
    }
}

impl QueueLimitParams {
    /// A limit in packets alone.
    #[must_use]
    pub const fn of_packets(packets: u32) -> Self {
        Self {
            packets,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        }
    }

    /// The limit `spec` of a queue that is sent from at `rate`, on a port with `hysteresis`.
    pub(crate) fn new(
        spec: Option<QueueLimitSpec>,
        is_priority: bool,
        rate: BitRate,
        hysteresis: u32,
    ) -> Result<Self, Refusal> {
        let limit = match spec {
            Some(spec) => spec.resolve(rate)?,
            None if is_priority => Self::of_packets(PRIORITY_QUEUE_PACKETS),
            None => default_limit(rate),
        };
        Ok(Self {
            hysteresis: hysteresis.min(limit.packets.saturating_sub(1)),
            ..limit
        })
    }

    /// How many packets it holds; a limit in bytes, of the size that IOS XE assumes (1500 B).
    #[must_use]
    pub fn full_packets(self) -> u32 {
        self.packets.min(packets_in(self.bytes))
    }
}

/// Packets of the size that IOS XE assumes.
pub(super) fn packets_in(bytes: ByteCount) -> u32 {
    u32::try_from(bytes.bytes() / QUEUE_PACKET.bytes()).unwrap_or(u32::MAX)
}
