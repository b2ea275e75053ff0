//! Behaviour of a host beside the standards, by profile, and what follows from it for one connection.

use crate::timers::Ticks;
use slicewise_traffic::transport::{CongestionControl, TcpProfile, TransportParams};
use slicewise_units::Duration;

/// `tcp_limit_output_bytes` of Linux 4.15 and of today (Documentation/networking/ip-sysctl).
const LIMIT_OUTPUT_415_BYTES: u64 = 262_144;
const LIMIT_OUTPUT_BYTES: u64 = 4 << 20;
/// A burst, and what waits below the socket, are as long as the pacing rate sends in this time (J. Corbet, "TSO sizing
/// and the FQ scheduler", LWN 2013: one millisecond).
const BURST_TIME: Duration = Duration::from_millis(1);
/// The same of TCP Prague (`prague_burst_shift` of Linux's `tcp_prague`: a quarter of a millisecond).
const BURST_TIME_PRAGUE: Duration = Duration::from_micros(250);
/// `tcp_tso_rtt_log` 9.
const BURST_RTT: Duration = Duration::from_micros(512);
/// Of Debian's and Ubuntu's kernels (`CONFIG_HZ=250`).
const TICK: Duration = Duration::from_millis(4);
/// A receiver answers at least every second full segment, and no later than this (RFC 5681, section 4.2, allows
/// 500 ms; tcp(7) and RFC 1122: Linux begins at 40 ms).
const ACK_DELAY_LINUX: Duration = Duration::from_millis(40);
const ACK_DELAY_RFC: Duration = Duration::from_millis(200);
/// Acknowledgements that a Linux receiver sends at once when a connection begins (tcp(7), `TCP_QUICKACK`).
const QUICK_ACKS: u32 = 16;
/// Initial window of the receiver: `tcp_rmem`, middle value, of which half is the window (`tcp_adv_win_scale` 1).
const INITIAL_RECEIVE_WINDOW: u64 = 65_536;

/// Segments that are acknowledged at once where nothing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Immediate {
    /// Every second full segment (RFC 5681, section 4.2).
    SecondFull,
    /// Segments longer than a full one, and a short one where this end does not answer: Linux before 6.6.
    Short,
    /// The same, and a full segment that ends what was written: Linux since 6.6 ("tcp: fix delayed ACKs for MSS boundary
    /// condition").
    Pushed,
}

/// A connection's constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// Most bytes of data in a frame.
    pub mss_bytes: u32,
    /// Congestion control.
    pub congestion: CongestionControl,
    /// Beyond the window before its last reduction, CUBIC's estimate of Reno's window grows no faster than before. RFC 9438, section 4.3,
    /// lets it grow as Reno's; Linux 6.18 does not (measured).
    pub keeps_alpha: bool,
    /// Ask for ECN (RFC 3168).
    pub ecn: bool,
    /// Understand selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Initial congestion window (RFC 6928).
    pub initial_window_bytes: u64,
    /// Most bytes of data handed down at once: more than [`Self::mss_bytes`] only with segmentation offload.
    pub burst_bytes: u32,
    /// Bursts no longer than the pacing rate sends in this time; `None`: as long as windows allow.
    pub burst_time: Option<Duration>,
    /// On short paths bursts are longer: by all of [`Self::burst_bytes`], halved for each of these in the smallest round trip
    /// (ip-sysctl, `tcp_tso_rtt_log`); `None`: they are not.
    pub burst_rtt: Option<Duration>,
    /// A burst takes no more than this part of the window, and is waited for (ip-sysctl, `tcp_tso_win_divisor`); 0: it
    /// is not.
    pub burst_divisor: u64,
    /// Most bytes handed down and not yet on the wire; `None`: no limit.
    pub below_socket_bytes: Option<u64>,
    /// Bursts leave at the pacing rate, not when acknowledgements arrive.
    pub pacing: bool,
    /// When timers expire that are not for pacing.
    pub ticks: Ticks,
    /// Segments that are acknowledged at once.
    pub immediate: Immediate,
    /// Longest delay of an acknowledgement.
    pub ack_delay: Duration,
    /// Acknowledgements sent at once when data begins to flow.
    pub quick_acks: u32,
    /// Receive offload: data of several frames reaches TCP as one segment.
    pub receive_offload: bool,
    /// Shortest retransmission time-out.
    pub min_rto: Duration,
    /// [`Self::min_rto`] bounds the term of variation instead of the sum (P. Sarolahti, A. Kuznetsov, "Congestion
    /// Control in Linux TCP", USENIX 2002).
    pub min_rto_above_srtt: bool,
    /// The receiver's window grows from here…
    pub initial_receive_window_bytes: u64,
    /// …to here.
    pub receive_window_bytes: u64,
    /// Most bytes that the sender keeps.
    pub send_buffer_bytes: u64,
    /// Retransmissions in a row after which a connection fails (`tcp_retries2`).
    pub retries: u32,
    /// The same of a SYN (`tcp_syn_retries`).
    pub syn_retries: u32,
}

impl Behaviour {
    /// Returns the behaviour of a host, for IPv4; IPv6 takes 20 bytes more of the MTU.
    #[must_use]
    pub fn new(params: &TransportParams, ip_bytes: u32) -> Self {
        let headers = ip_bytes + TransportParams::TCP_BYTES;
        let mss_bytes = params.mtu_bytes.saturating_sub(headers).max(1);
        let is_linux = params.profile != TcpProfile::Rfc;
        let is_prague = params.congestion == CongestionControl::Prague;
        // RFC 6928: ten segments, and no more than 14,600 bytes where those are long.
        let ten = u64::from(mss_bytes) * 10;
        let initial_window_bytes = ten.min(u64::from(mss_bytes * 2).max(14_600));
        // Half of the buffer is for what the kernel keeps beside the data (ip-sysctl, tcp_adv_win_scale).
        let share = if is_linux { 2 } else { 1 };
        let receive_window_bytes = (params.receive_buffer_bytes / share).max(u64::from(mss_bytes));
        let initial_receive_window_bytes = match params.profile {
            TcpProfile::Rfc => receive_window_bytes,
            TcpProfile::Linux | TcpProfile::Linux415 => {
                INITIAL_RECEIVE_WINDOW.min(receive_window_bytes)
            }
        };
        Self {
            mss_bytes,
            congestion: params.congestion,
            keeps_alpha: is_linux,
            ecn: params.ecn || params.congestion.is_scalable(),
            sack: true,
            initial_window_bytes: if is_linux { ten } else { initial_window_bytes },
            burst_bytes: if is_linux {
                (TransportParams::OFFLOAD_BYTES / mss_bytes).max(1) * mss_bytes
            } else {
                mss_bytes
            },
            burst_time: is_linux.then_some(if is_prague {
                BURST_TIME_PRAGUE
            } else {
                BURST_TIME
            }),
            burst_rtt: (params.profile == TcpProfile::Linux && !is_prague).then_some(BURST_RTT),
            burst_divisor: if is_linux { 3 } else { 0 },
            below_socket_bytes: match params.profile {
                TcpProfile::Linux => Some(LIMIT_OUTPUT_BYTES),
                TcpProfile::Linux415 => Some(LIMIT_OUTPUT_415_BYTES),
                TcpProfile::Rfc => None,
            },
            pacing: params.is_paced(),
            ticks: Ticks {
                length: if is_linux { TICK } else { Duration::ZERO },
                phase: Duration::ZERO,
            },
            immediate: match params.profile {
                TcpProfile::Rfc => Immediate::SecondFull,
                TcpProfile::Linux415 => Immediate::Short,
                TcpProfile::Linux => Immediate::Pushed,
            },
            ack_delay: if is_linux {
                ACK_DELAY_LINUX
            } else {
                ACK_DELAY_RFC
            },
            quick_acks: if is_linux { QUICK_ACKS } else { 0 },
            receive_offload: is_linux,
            min_rto: params.min_rto,
            min_rto_above_srtt: is_linux,
            initial_receive_window_bytes,
            receive_window_bytes,
            send_buffer_bytes: params.send_buffer_bytes.max(u64::from(mss_bytes)),
            retries: 15,
            syn_retries: 6,
        }
    }

    /// Returns true if slow start may send at once all that a long acknowledgement allows: data is paced, or bursts are
    /// the host's way (RFC 9406, section 4.3, limits other hosts).
    #[must_use]
    pub const fn sends_bursts(&self) -> bool {
        self.pacing || self.burst_bytes > self.mss_bytes
    }
}
