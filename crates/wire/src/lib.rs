//! Frame views: the header fields the data plane needs, and those measurement needs in addition.
//!
//! [`Headers`] is the parsed form the classifier matches on. A live or captured frame is parsed into
//! it once, by [`parse_frame`]; the simulator's sources make it directly, once per flow.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ethertype;
mod headers;
mod parse;
mod write;

pub use ethertype::EtherType;
pub use headers::{Ecn, Headers, IpVersion, TrafficClass};
pub use parse::{
    ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_MPLS, ETHERTYPE_MPLS_UPSTREAM,
    ETHERTYPE_PPPOE_SESSION, Fragment, GTP_U_PORT, Layer, LinkType, PROTOCOL_ICMP, PROTOCOL_ICMPV6,
    PROTOCOL_SCTP, PROTOCOL_TCP, PROTOCOL_UDP, ParseEnd, ParsedFrame, TcpFlags, TcpHeader, Tunnel,
    parse_frame, parse_innermost,
};
pub use write::{put_checksum, put_gtp_u, put_ip, put_udp};
