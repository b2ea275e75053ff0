//! How many packets a source owes in a run, where that is known beforehand.

use crate::iperf3::UDP;
use slicewise_study::{HostParams, PatternParams, SourceParams};

/// Packets that the source sends from its start to its stop; `None` for what depends on chance (Poisson), on a
/// capture, or on the network (TCP).
pub(crate) fn frames(source: &SourceParams) -> Option<f64> {
    let is_known = source.headers.protocol == UDP
        && matches!(source.pattern, PatternParams::Iperf3 | PatternParams::Cbr);
    let seconds = sending_seconds(source);
    is_known.then(|| seconds * packets_per_second(source))
}

/// Packets by which a punctual source may fall short: two periods of its timer or of its rate, and the
/// random part of its start.
pub(crate) fn slack(source: &SourceParams, timing: &HostParams) -> f64 {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let spans = 2.0 * seconds(timing.timer.nanos()) + seconds(source.start_spread.nanos());
    2.0 + spans * packets_per_second(source)
}

fn packets_per_second(source: &SourceParams) -> f64 {
    let bits = f64::from(source.counted_bytes.max(1)) * 8.0;
    source.rate.bits_per_second() as f64 / bits
}

/// How long the source is on.
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
    fn a_source_owes_its_rate_while_it_is_on() {
        let sources = example::sources();
        let [voice, video, files] = sources.as_slice() else {
            panic!("the example has three sources");
        };
        // 2.5 s at 1 Mbit/s of L2.
        let l2_bits = f64::from(voice.l2_bytes) * 8.0;
        assert!((frames(voice).unwrap() - 2.5e6 / l2_bits).abs() < 1e-6);
        // 13 times 100 ms, of 25.
        let second = packets_per_second(video);
        assert!((frames(video).unwrap() - 1.3 * second).abs() < 1e-6);
        assert_eq!(frames(files), None);
    }
}
