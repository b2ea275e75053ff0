//! The transport of an application.

use super::Checker;
use crate::file::{Placed, Span};
use crate::params::{CongestionControl, SourceHeaders, StudyLink, TcpProfile, TransportParams};
use crate::spec::{Positive, Short, TransportProtocol};
use crate::{problem, settings};
use slicewise_units::ByteCount;

/// Bytes of a TCP header without options: what the MSS is counted behind (RFC 9293, section 3.7.1; RFC 6691).
const TCP_HEADER: u32 = 20;
/// Least data of a segment, bytes: what the smallest maximum of IPv4 leaves (RFC 791).
const MIN_SEGMENT: u32 = 16;
/// The largest window, bytes (RFC 7323, section 2.3).
const MAX_WINDOW: u64 = 1 << 30;

/// A transport by name, or with settings.
pub(crate) type Transport = Short<TransportProtocol, Placed<TransportSpec>>;

settings! {
    /// The transport of an application's connections.
    struct TransportSpec as "TransportSpec" {
        /// Which transport. Default tcp.
        protocol: TransportProtocol,
        /// Whose TCP: `linux` (default, a host of today), `linux-4.15`, or `rfc` (the RFCs, without offloads and pacing).
        profile: TcpProfile,
        /// Congestion control: `new_reno` (or `reno`), `cubic`, `dctcp`, `bbr`, `prague`. Default cubic, and new_reno for the profile
        /// `rfc`.
        congestion: Option<CongestionControl>,
        /// Explicit congestion notification: packets are ECN-capable, and the sender answers to marks. Default no; always with
        /// `dctcp` and `prague`.
        ecn: Option<bool>,
        /// Data leaves at the pacing rate, as with Linux's `fq`, and not as acknowledgements arrive. Default false; always with
        /// `bbr` and `prague`.
        pacing: bool,
        /// Maximum segment size, without the headers of IP and TCP, as both ends announce it. Default: what the link's MTU
        /// leaves.
        mss: Option<ByteCount>,
        /// Most bytes that a receiver keeps for its application. Default 6 MiB.
        receive_buffer: Option<ByteCount>,
        /// Most bytes that a sender keeps until they are acknowledged. Default 4 MiB.
        send_buffer: Option<ByteCount>,
        /// Shortest retransmission time-out. Default 200 ms, and 1 s for the profile `rfc`.
        min_rto: Option<Positive>,
    }
}

impl TransportSpec {
    /// Returns true if packets are ECN-capable.
    pub(super) fn uses_ecn(&self) -> bool {
        let is_scalable = self.congestion.is_some_and(CongestionControl::is_scalable);
        self.ecn.unwrap_or(is_scalable)
    }
}

impl From<TransportProtocol> for Placed<TransportSpec> {
    fn from(protocol: TransportProtocol) -> Self {
        let mut spec = Self::default();
        spec.value.protocol = protocol;
        spec
    }
}

impl Checker<'_> {
    /// The transport of an application, written `at`, whose packets have these headers, on this link.
    pub(super) fn transport(
        &mut self,
        written: Option<&Transport>,
        at: Span,
        headers: &SourceHeaders,
        link: &StudyLink,
    ) -> TransportParams {
        let unwritten = Placed::default();
        let written = written.map_or(&unwritten, |short| &short.value);
        let spec = &written.value;
        let mut params = TransportParams {
            mtu_bytes: link.mtu_bytes,
            ..TransportParams::of(spec.profile)
        };
        params.congestion = spec.congestion.unwrap_or(params.congestion);
        params.ecn = spec.uses_ecn();
        params.pacing = spec.pacing || params.congestion == CongestionControl::Prague;
        if params.congestion.is_scalable()
            && !params.ecn
            && let Some(at) = written.place("ecn")
        {
            let name = match params.congestion {
                CongestionControl::Prague => "TCP Prague",
                _ => "DCTCP",
            };
            problem!(self.problems, at => "{name} answers to marks, and without ECN nothing is marked";
                "leave `ecn` out, or choose another `congestion`");
        }
        if params.congestion == CongestionControl::Bbr
            && params.ecn
            && let Some(at) = written.place("ecn")
        {
            problem!(self.problems, at => "BBR does not answer to marks (draft-ietf-ccwg-bbr), and packets that are ECN-capable \
                must be of a sender that does";
                "leave `ecn` out, or choose another `congestion`");
        }
        self.mtu(written, headers, &mut params);
        let headers = headers.ip_bytes() + TransportParams::TCP_BYTES;
        let segment = params.mtu_bytes.saturating_sub(headers);
        if segment < MIN_SEGMENT {
            let at = written.place("mss").unwrap_or(at);
            problem!(self.problems, at => "IP packets of at most {} B leave a segment {segment} B of data behind \
                {headers} B of headers: it takes {MIN_SEGMENT} B at least", params.mtu_bytes;
                "raise `mss`, or `link.mtu`");
        }
        let buffers = [
            (
                "receive_buffer",
                spec.receive_buffer,
                &mut params.receive_buffer_bytes,
            ),
            (
                "send_buffer",
                spec.send_buffer,
                &mut params.send_buffer_bytes,
            ),
        ];
        for (key, size, bytes) in buffers {
            let (Some(at), Some(size)) = (written.place(key), size) else {
                continue;
            };
            *bytes = size.bytes();
            if size.bytes() < u64::from(segment) {
                problem!(self.problems, at => "a buffer of {} B does not hold one segment, which has {segment} B of \
                    data: nothing would be sent", size.bytes();
                    "give it room for several segments, or leave it out");
            }
            if size.bytes() > MAX_WINDOW {
                problem!(self.problems, at => "a buffer of {} B is above 1 GiB, the largest window of \
                    TCP", size.bytes());
            }
        }
        params.min_rto = spec.min_rto.map_or(params.min_rto, |time| time.0);
        params
    }

    /// The largest packet, of the MSS where that is written.
    fn mtu(
        &mut self,
        written: &Placed<TransportSpec>,
        headers: &SourceHeaders,
        params: &mut TransportParams,
    ) {
        let (Some(at), Some(mss)) = (written.place("mss"), written.value.mss) else {
            return;
        };
        let headers = headers.ip_bytes() + TCP_HEADER;
        let packet = mss.bytes().saturating_add(headers.into());
        match u32::try_from(packet) {
            Ok(packet) if packet <= params.mtu_bytes => params.mtu_bytes = packet,
            _ => {
                let most = params.mtu_bytes.saturating_sub(headers);
                problem!(self.problems, at => "an MSS of {} B makes IP packets of {packet} B, above the link's MTU of \
                    {} B", mss.bytes(), params.mtu_bytes;
                    "these headers leave room for an MSS of {most} B, or raise `link.mtu`");
            }
        }
    }
}
