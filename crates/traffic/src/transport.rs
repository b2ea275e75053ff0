//! Parameters of a transport: which host's TCP it is, and what is set otherwise.

use slicewise_units::Duration;

/// A TCP transport, as the connections of an application use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportParams {
    /// Whose TCP.
    pub profile: TcpProfile,
    /// Congestion control.
    pub congestion: CongestionControl,
    /// Both ends use ECN (RFC 3168). DCTCP and Prague always do.
    pub ecn: bool,
    /// Data leaves at the pacing rate, as with Linux's `fq`, and not as acknowledgements arrive. BBR always does.
    pub pacing: bool,
    /// Largest IP packet, headers included.
    pub mtu_bytes: u32,
    /// Most bytes that the receiver keeps for its application: what the window grows to.
    pub receive_buffer_bytes: u64,
    /// Most bytes that the sender keeps until they are acknowledged.
    pub send_buffer_bytes: u64,
    /// Shortest retransmission time-out.
    pub min_rto: Duration,
}

/// Whose TCP: what a host does beside the standards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpProfile {
    /// A Linux host of today.
    #[default]
    Linux,
    /// Linux 4.15.
    Linux415,
    /// The RFCs, without offloads, pacing or limits below the socket.
    Rfc,
}

/// How a sender answers to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CongestionControl {
    /// New Reno: RFC 5681 and RFC 6582.
    NewReno,
    /// CUBIC: RFC 9438, with HyStart++ (RFC 9406).
    #[default]
    Cubic,
    /// DCTCP: RFC 8257.
    Dctcp,
    /// BBR, version 3: draft-ietf-ccwg-bbr.
    Bbr,
    /// TCP Prague: draft-briscoe-iccrg-prague-congestion-control.
    Prague,
}

impl CongestionControl {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::NewReno,
        Self::Cubic,
        Self::Dctcp,
        Self::Bbr,
        Self::Prague,
    ];

    /// Returns true if it answers to the share of packets that is marked, so that it always uses ECN.
    #[must_use]
    pub const fn is_scalable(self) -> bool {
        matches!(self, Self::Dctcp | Self::Prague)
    }
}

impl TransportParams {
    /// Bytes of the TCP header with the time stamps that every segment carries (RFC 7323).
    pub const TCP_BYTES: u32 = 32;

    /// Bytes that segmentation offload hands to an adapter at once, which cuts them into frames: 64 KiB of an IPv4 packet, less headers.
    pub const OFFLOAD_BYTES: u32 = 65_536 - 1 - 20 - Self::TCP_BYTES;

    /// Returns true if data leaves at the pacing rate.
    #[must_use]
    pub const fn is_paced(&self) -> bool {
        let paces = matches!(
            self.congestion,
            CongestionControl::Bbr | CongestionControl::Prague
        );
        self.pacing || paces
    }

    /// Most frames that leave in a row because nothing paces them: a burst of segmentation offload on a short path, else the ten segments
    /// of an initial window (RFC 6928); 1 with pacing.
    #[must_use]
    pub fn unpaced_burst_frames(&self) -> u32 {
        let segment = self.mtu_bytes.saturating_sub(20 + Self::TCP_BYTES).max(1);
        if self.is_paced() {
            return 1;
        }
        match self.profile {
            TcpProfile::Linux => (Self::OFFLOAD_BYTES / segment).max(10),
            TcpProfile::Linux415 | TcpProfile::Rfc => 10,
        }
    }

    /// A host of this profile with its defaults: CUBIC, or New Reno for [`TcpProfile::Rfc`]; MTU 1500; Linux's
    /// largest buffers (`tcp_rmem`, `tcp_wmem`); 200 ms of least time-out, or 1 s for [`TcpProfile::Rfc`] (RFC 6298).
    #[must_use]
    pub const fn of(profile: TcpProfile) -> Self {
        let (congestion, min_rto) = match profile {
            TcpProfile::Linux | TcpProfile::Linux415 => (CongestionControl::Cubic, 200),
            TcpProfile::Rfc => (CongestionControl::NewReno, 1_000),
        };
        Self {
            profile,
            congestion,
            ecn: false,
            pacing: false,
            mtu_bytes: 1_500,
            receive_buffer_bytes: 6 << 20,
            send_buffer_bytes: 4 << 20,
            min_rto: Duration::from_millis(min_rto),
        }
    }
}
