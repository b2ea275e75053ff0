//! Compares the traffic sent with what the sources specify, as far as that is known beforehand.

use crate::iperf3;
use crate::suitability::Offering;
use slicewise_stats::record::{RunRecord, SliceRecord};
use slicewise_study::{HostTiming, PatternParams, Periods, SizesParams, SourceParams, Study};
use slicewise_wire::PROTOCOL_UDP;

/// Traffic sent compared with the specification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Offered {
    /// Smallest share of its load that a slice sent, over slices with known load; at most 1.
    pub(crate) least_ratio: f64,
    /// The longest time beyond its period in which an iperf3 UDP source sent nothing, ns; only sources
    /// that are the first of their slices, since inter-arrival times are measured for those.
    pub(crate) longest_pause_ns: u64,
}

impl Offered {
    pub(crate) fn of(sent: &Offering, study: &Study, record: &RunRecord) -> Self {
        let mut offered = Self {
            least_ratio: 1.0,
            longest_pause_ns: 0,
        };
        for (index, slice) in record.slices.iter().enumerate() {
            let of_slice = sent.all().filter(|source| source.slice == index);
            let sources: Vec<&SourceParams> = of_slice.collect();
            if let Some(ratio) = sent_ratio(&sources, &study.hosts, slice) {
                offered.least_ratio = offered.least_ratio.min(ratio);
            }
            let first = sources.iter().min_by_key(|source| source.machine);
            if let Some(pause) = first.and_then(|first| pause(first, study, slice)) {
                offered.longest_pause_ns = offered.longest_pause_ns.max(pause);
            }
        }
        offered
    }
}

/// The share of its load that a slice sent; `None` if unknown or the load is zero.
fn sent_ratio(sources: &[&SourceParams], timing: &HostTiming, slice: &SliceRecord) -> Option<f64> {
    let owed: Option<f64> = sources.iter().map(|source| frames(source)).sum();
    let owed = owed.filter(|&frames| frames >= 1.0)?;
    let slack: f64 = sources.iter().map(|source| slack(source, timing)).sum();
    Some((slice.whole.sent_frames as f64 + slack) / owed)
}

/// The longest pause of an iperf3 UDP source beyond its period, ns (TCP pauses by design).
fn pause(source: &SourceParams, study: &Study, slice: &SliceRecord) -> Option<u64> {
    let is_steady =
        source.headers.protocol == PROTOCOL_UDP && iperf3::can_be(source, study.duration);
    let longest = slice.iat_sent.cdf.last()?.0;
    let period = iperf3::longest_period(source, &study.hosts);
    is_steady.then(|| longest.saturating_sub(period))
}

/// Packets that the source sends from its start to its stop; `None` if random (Poisson, a mix of sizes, random periods), from a
/// capture, or dependent on the network (TCP).
fn frames(source: &SourceParams) -> Option<f64> {
    let is_regular = source
        .on_off
        .is_none_or(|on_off| on_off.periods == Periods::Fixed);
    let is_known = is_regular
        && source.headers.protocol == PROTOCOL_UDP
        && source.sizes == SizesParams::Equal
        && matches!(source.pattern, PatternParams::Iperf3 | PatternParams::Cbr);
    let seconds = sending_seconds(source);
    is_known.then(|| seconds * packets_per_second(source))
}

/// Packets by which a punctual source may fall short: two periods of its timer or of its rate, and the
/// random part of its start.
fn slack(source: &SourceParams, timing: &HostTiming) -> f64 {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let timer = timing.timer_of(source.machine);
    let spans = 2.0 * seconds(timer.nanos()) + seconds(source.start_spread.nanos());
    2.0 + spans * packets_per_second(source)
}

fn packets_per_second(source: &SourceParams) -> f64 {
    let bits = f64::from(source.largest.counted_bytes.max(1)) * 8.0;
    source.rate.bits_per_second() as f64 / bits
}

/// Time the source is on, s.
fn sending_seconds(source: &SourceParams) -> f64 {
    let span = source.stop.nanos().saturating_sub(source.start.nanos());
    let Some(on_off) = source.on_off else {
        return span as f64 / 1e9;
    };
    let (on, off) = (on_off.on.nanos(), on_off.off.nanos());
    let cycle = on.saturating_add(off).max(1);
    let whole = (span / cycle).saturating_mul(on);
    (whole.saturating_add((span % cycle).min(on))) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn a_source_must_send_its_rate_while_it_is_on() {
        let sources = example::sources();
        let [voice, video, files] = sources.as_slice() else {
            panic!("the example has three sources");
        };
        // 2.5 s at 1 Mbit/s of L2.
        let l2_bits = f64::from(voice.largest.l2_bytes) * 8.0;
        assert!((frames(voice).unwrap() - 2.5e6 / l2_bits).abs() < 1e-6);
        // 13 times 100 ms, of 25.
        let second = packets_per_second(video);
        assert!((frames(video).unwrap() - 1.3 * second).abs() < 1e-6);
        assert_eq!(frames(files), None);
        let mut video = video.clone();
        video.on_off.as_mut().unwrap().periods = Periods::Exponential;
        assert_eq!(frames(&video), None, "random periods");
    }
}
