//! The configuration of a gateway: a link, a policy, and two interfaces, in the words of a study.

use crate::diagnostics::Diagnostics;
use slicewise_model::{PolicyParams, Rate, ReallocatedPolicy};
use slicewise_units::ByteCount;
use std::path::PathBuf;

/// Memory for frames unless it is said.
pub const DEFAULT_MEMORY: ByteCount = ByteCount::new(256 << 20);
/// The port of metrics unless it is said.
pub const DEFAULT_METRICS_PORT: u16 = 9640;

/// Configuration of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// The two interfaces it forwards between.
    pub interfaces: [String; 2],
    /// From the first to the second, and back.
    pub directions: [GatewayDirection; 2],
    /// How frames are received and sent.
    pub packet_io: GatewayPacketIo,
    /// Maximum frame memory.
    pub memory: ByteCount,
    /// The port of the loopback interface that serves metrics; `None` for none.
    pub metrics_port: Option<u16>,
    /// The controller that it gets slices from.
    pub controller: Option<GatewayController>,
    /// Warnings, each with its place; may be empty.
    pub warnings: Diagnostics,
}

/// The controller of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayController {
    /// Its address.
    pub url: String,
    /// The gateway's name there.
    pub name: String,
    /// The name of its link there.
    pub link: String,
    /// The file with the token, if the controller asks for one.
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) of authorities to trust, instead of those of the system.
    pub certificate_authority: Option<PathBuf>,
    /// The file in which the gateway keeps its slices.
    pub state: PathBuf,
}

/// One direction of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayDirection {
    /// The link that slices share.
    pub link: Rate,
    /// How they share it.
    pub policy: PolicyParams,
    /// The loop that sets rates of the policy, if there is one.
    pub reallocated: Option<ReallocatedPolicy>,
}

/// How a gateway receives and sends frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GatewayPacketIo {
    /// AF_XDP where that works, else packet sockets.
    #[default]
    Auto,
    /// AF_XDP.
    AfXdp,
    /// Packet sockets.
    AfPacket,
}
