//! Queue limits and random early detection, and their defaults.

use super::{ClassResolver, LARGEST_FRAME, PolicyError};
use crate::{
    QueueLimitParams, QueueLimitSpec, RedCurve, RedCurveSpec, WredKey, WredParams, WredSpec,
};
use slicewise_units::{BitRate, ByteCount, Duration};

/// Time at its rate that a queue holds by default (IOS XE: 50 ms of 1500 B packets).
const QUEUE_TIME: Duration = Duration::from_millis(50);
/// The packet size IOS XE divides by to get a default queue limit.
const QUEUE_PACKET: ByteCount = ByteCount::new(1500);
/// Fewest packets a default queue limit allows (IOS XE).
const QUEUE_PACKETS_MIN: u64 = 64;
/// Default limit of a priority queue, packets (IOS XE).
const PRIORITY_QUEUE_PACKETS: u32 = 512;
/// Default weight exponent of the WRED average (IOS).
const WRED_EXPONENT: u8 = 9;
/// Default mark probability denominator of WRED (IOS).
const WRED_MARK_DENOMINATOR: u32 = 10;

/// The limit of a queue that is sent from at a rate, unless it is stated.
pub(super) fn default_limit(rate: BitRate) -> QueueLimitParams {
    let packets = rate.bytes_in(QUEUE_TIME).bytes() / QUEUE_PACKET.bytes();
    QueueLimitParams {
        packets: u32::try_from(packets.max(QUEUE_PACKETS_MIN)).unwrap_or(u32::MAX),
        bytes: ByteCount::new(u64::MAX),
        hysteresis: 0,
    }
}

impl ClassResolver<'_> {
    pub(super) fn queue_limit(&self, rate: BitRate) -> Result<QueueLimitParams, PolicyError> {
        let limit = self.room(rate)?;
        Ok(QueueLimitParams {
            hysteresis: self.port.hysteresis.min(limit.packets.saturating_sub(1)),
            ..limit
        })
    }

    fn room(&self, rate: BitRate) -> Result<QueueLimitParams, PolicyError> {
        let unlimited = ByteCount::new(u64::MAX);
        match self.spec.queue_limit {
            Some(QueueLimitSpec::Packets(0)) => {
                Err(self.error("queue_limit", "is 0: no packet could ever be queued"))
            }
            Some(QueueLimitSpec::Packets(packets)) => Ok(QueueLimitParams {
                packets,
                bytes: unlimited,
                hysteresis: 0,
            }),
            Some(QueueLimitSpec::Bytes(bytes)) => self.byte_limit(bytes),
            Some(QueueLimitSpec::Time(time)) => self.byte_limit(rate.bytes_in(time)),
            None if self.spec.priority.is_some() => Ok(QueueLimitParams {
                packets: PRIORITY_QUEUE_PACKETS,
                bytes: unlimited,
                hysteresis: 0,
            }),
            None => Ok(default_limit(rate)),
        }
    }

    fn byte_limit(&self, bytes: ByteCount) -> Result<QueueLimitParams, PolicyError> {
        if bytes < LARGEST_FRAME {
            return Err(self.error(
                "queue_limit",
                format!("holds {bytes}, less than one largest frame ({LARGEST_FRAME})"),
            ));
        }
        // The smallest Ethernet frame without FCS is 60 bytes: more packets cannot fit.
        let packets = u32::try_from(bytes.bytes() / 60 + 1).unwrap_or(u32::MAX);
        Ok(QueueLimitParams {
            packets,
            bytes,
            hysteresis: 0,
        })
    }

    pub(super) fn wred(
        &self,
        spec: &WredSpec,
        limit: QueueLimitParams,
        rate: BitRate,
    ) -> Result<WredParams, PolicyError> {
        let exponential_weight = spec.exponential_weight.unwrap_or(WRED_EXPONENT);
        if !(1..=16).contains(&exponential_weight) {
            return Err(self.error("wred", "has a weight exponent outside 1 to 16"));
        }
        let packets = limit.full_packets();
        let mut curves: Vec<RedCurve> = (0..64u32)
            .map(|dscp| default_curve(packets, dscp >> 3))
            .collect();
        for &(value, curve) in &spec.curves {
            let (first, count) = match spec.key {
                WredKey::Dscp => (usize::from(value), 1),
                WredKey::Precedence => (usize::from(value) * 8, 8),
            };
            let curve = in_packets(curve, rate);
            if curve.min_packets > curve.max_packets || curve.max_packets == 0 {
                return Err(self.error(
                    "wred",
                    format!(
                        "curve of {value}: needs 0 ≤ min ≤ max and max ≥ 1, but min is {} and \
                         max is {}",
                        curve.min_packets, curve.max_packets
                    ),
                ));
            }
            if curve.mark_denominator == 0 {
                return Err(self.error("wred", format!("curve of {value}: denominator is 0")));
            }
            let Some(range) = curves.get_mut(first..first + count) else {
                let what = match spec.key {
                    WredKey::Dscp => "code point",
                    WredKey::Precedence => "precedence",
                };
                return Err(self.error("wred", format!("{what} {value} does not exist")));
            };
            range.fill(curve);
        }
        let typical_transmission = rate.time_to_send(QUEUE_PACKET).unwrap_or(Duration::MAX);
        Ok(WredParams {
            curves,
            exponential_weight,
            typical_transmission,
            ecn: spec.ecn,
        })
    }
}

impl QueueLimitParams {
    /// How many packets it holds; a limit in bytes, of the size that IOS XE assumes (1500 B).
    #[must_use]
    pub fn full_packets(self) -> u32 {
        self.packets.min(packets_in(self.bytes))
    }
}

/// Packets of the size that IOS XE assumes.
fn packets_in(bytes: ByteCount) -> u32 {
    u32::try_from(bytes.bytes() / QUEUE_PACKET.bytes()).unwrap_or(u32::MAX)
}

/// A curve of a class that sends at `rate`.
fn in_packets(curve: RedCurveSpec, rate: BitRate) -> RedCurve {
    let packets = |threshold| match threshold {
        QueueLimitSpec::Packets(packets) => packets,
        QueueLimitSpec::Bytes(bytes) => packets_in(bytes),
        QueueLimitSpec::Time(time) => packets_in(rate.bytes_in(time)),
    };
    RedCurve {
        min_packets: packets(curve.min),
        // Less than a packet is the smallest queue there is, where it is not zero.
        max_packets: match (packets(curve.max), curve.max) {
            (0, QueueLimitSpec::Bytes(_) | QueueLimitSpec::Time(_)) => 1,
            (packets, _) => packets,
        },
        mark_denominator: curve.mark_denominator,
    }
}

/// IOS XE's default curve: drop everything above half the queue; dropping starts between a quarter and
/// nearly half of it, later for higher precedence.
fn default_curve(queue_packets: u32, precedence: u32) -> RedCurve {
    let max = (queue_packets / 2).max(2);
    let min = u64::from(max) * u64::from(8 + precedence) / 16;
    RedCurve {
        min_packets: u32::try_from(min).unwrap_or(max).clamp(1, max),
        max_packets: max,
        mark_denominator: WRED_MARK_DENOMINATOR,
    }
}
