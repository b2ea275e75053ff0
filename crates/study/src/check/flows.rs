//! Sources of many flows.

use super::Checker;
use super::application::Count;
use super::traffic::{Place, Slice, SourceSpec};
use crate::file::Placed;
use crate::params::{SourceHeaders, SourceParams};
use crate::problem;
use crate::spec::PatternName;
use slicewise_units::BitRate;

/// Most flows of a source.
const MAX_FLOWS: u32 = 10_000;

impl Checker<'_> {
    /// Divides the rate of a source among its flows, each with a port of its own: their number, the rate of each, and the bits per second that are left over.
    pub(super) fn flows(
        &mut self,
        place: &Place<'_>,
        source: &Placed<SourceSpec>,
        slice: &Slice<'_>,
        (headers, rate): (&SourceHeaders, BitRate),
    ) -> Option<(u32, BitRate, u64)> {
        let (Some(Count(flows)), Some(at)) = (source.value.flows, source.place("flows")) else {
            return Some((1, rate, 0));
        };
        let first = headers.source_port;
        let bits = rate.bits_per_second();
        let each = BitRate::new(bits / u64::from(flows));
        let last = port_of(first, flows.saturating_sub(1));
        if source.value.pattern == Some(PatternName::Replay) {
            problem!(self.problems, at => "a replayed capture has its own packets: leave `flows` out");
        } else if flows > MAX_FLOWS {
            problem!(self.problems, at => "a source has at most {MAX_FLOWS} flows");
        } else if first == 0 {
            problem!(self.problems, at => "flows of a source differ by their source ports, and its protocol has none";
                "give the source `headers: {{protocol: udp}}`, or leave `flows` out");
        } else if last.is_none() {
            problem!(self.problems, at => "every flow has a source port of its own, and there are not {flows} of them \
                from {first} on";
                "give the source a lower `source_port` in its `headers`");
        } else if each == BitRate::ZERO {
            problem!(self.problems, at => "{rate} divided by {flows} flows is less than 1 bit/s for each";
                "raise `rate`, which is that of all flows together");
        } else {
            let last = SourceHeaders {
                source_port: last?,
                ..*headers
            };
            self.check_match(place, slice, &last);
            return Some((flows, each, bits % u64::from(flows)));
        }
        None
    }

    /// The flows of a source, of which the first `rest` send a bit per second more than the others.
    pub(super) fn divided(source: SourceParams, flows: u32, rest: u64) -> Vec<SourceParams> {
        if flows == 1 {
            return vec![source];
        }
        let (first, bits) = (source.headers.source_port, source.rate.bits_per_second());
        let flow = |flow: u32| SourceParams {
            // No source is named so.
            name: format!("{}#{}", source.name, flow + 1),
            rate: BitRate::new(bits + u64::from(u64::from(flow) < rest)),
            headers: SourceHeaders {
                source_port: port_of(first, flow).unwrap_or(first),
                ..source.headers
            },
            ..source.clone()
        };
        (0..flows).map(flow).collect()
    }
}

fn port_of(first: u16, flow: u32) -> Option<u16> {
    first.checked_add(u16::try_from(flow).ok()?)
}
