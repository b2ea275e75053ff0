//! Weighted random early detection: settings, defaults and checks.

use super::limit::{QUEUE_PACKET, packets_in};
use super::{QueueLimitParams, QueueLimitSpec, Refusal};
use slicewise_units::{BitRate, Duration};

/// Default weight exponent of the WRED average (IOS).
const WRED_EXPONENT: u8 = 9;
/// Default mark probability denominator of WRED (IOS).
const WRED_MARK_DENOMINATOR: u32 = 10;

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

/// Field that selects the curve of a packet.
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
    /// Field that selects the curve.
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

impl WredSpec {
    /// The curves for a queue with `limit` that sends at `rate`.
    pub(super) fn resolve(
        &self,
        limit: QueueLimitParams,
        rate: BitRate,
    ) -> Result<WredParams, Refusal> {
        let fail = |problem: String| Err(("wred", problem));
        let exponential_weight = self.exponential_weight.unwrap_or(WRED_EXPONENT);
        if !(1..=16).contains(&exponential_weight) {
            return fail("has a weight exponent outside 1 to 16".to_owned());
        }
        let packets = limit.full_packets();
        let mut curves: Vec<RedCurve> = (0..64u32)
            .map(|dscp| default_curve(packets, dscp >> 3))
            .collect();
        for &(value, curve) in &self.curves {
            let (first, count) = match self.key {
                WredKey::Dscp => (usize::from(value), 1),
                WredKey::Precedence => (usize::from(value) * 8, 8),
            };
            let curve = in_packets(curve, rate);
            if curve.min_packets > curve.max_packets || curve.max_packets == 0 {
                return fail(format!(
                    "curve of {value}: needs 0 ≤ min ≤ max and max ≥ 1, but min is {} and max is {}",
                    curve.min_packets, curve.max_packets
                ));
            }
            if curve.mark_denominator == 0 {
                return fail(format!("curve of {value}: denominator is 0"));
            }
            let Some(range) = curves.get_mut(first..first + count) else {
                let what = match self.key {
                    WredKey::Dscp => "code point",
                    WredKey::Precedence => "precedence",
                };
                return fail(format!("{what} {value} does not exist"));
            };
            range.fill(curve);
        }
        let typical_transmission = rate.time_to_send(QUEUE_PACKET).unwrap_or(Duration::MAX);
        Ok(WredParams {
            curves,
            exponential_weight,
            typical_transmission,
            ecn: self.ecn,
        })
    }
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
