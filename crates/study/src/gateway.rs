//! The configuration of a gateway: a link, a policy, and two interfaces, in the words of a study.

use crate::check::Checker;
use crate::diagnostics::Diagnostics;
use crate::file::{self, FileError, Files, Node, Problems, Sources};
use crate::load::Opened;
use crate::spec::GatewayFileSpec;
use slicewise_model::{PolicyParams, Rate};
use slicewise_units::ByteCount;
use std::path::Path;

/// Memory for frames unless it is said.
pub const DEFAULT_MEMORY: ByteCount = ByteCount::new(256 << 20);
/// The port of metrics unless it is said.
pub const DEFAULT_METRICS_PORT: u16 = 9640;

/// What a gateway is to do.
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
    /// What is worth knowing although it is no mistake, each with its place; may be empty.
    pub warnings: Diagnostics,
}

/// One direction of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayDirection {
    /// The link that slices share.
    pub link: Rate,
    /// How they share it.
    pub policy: PolicyParams,
}

/// How a gateway receives and sends frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayPacketIo {
    /// AF_XDP where that works, else packet sockets.
    Auto,
    /// AF_XDP.
    AfXdp,
    /// Packet sockets.
    AfPacket,
}

impl GatewayConfig {
    /// Read the file at `path`.
    ///
    /// # Errors
    /// Everything found wrong with it, each with its place.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        let Opened {
            name,
            text,
            files,
            mut sources,
        } = Opened::at(path)?;
        read(&name, text, &files, &mut sources)
    }

    /// Read a configuration given as text; `file_name` is what messages call it.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(text: &str, file_name: &str, files: &dyn Files) -> Result<Self, Diagnostics> {
        if u64::try_from(text.len()).map_or(true, |length| length > file::MAX_FILE_BYTES) {
            let problem = FileError::TooLarge.to_string();
            return Err(Diagnostics::of_file(file_name, &problem));
        }
        read(file_name, text.to_owned(), files, &mut Sources::default())
    }
}

fn read(
    name: &str,
    text: String,
    files: &dyn Files,
    sources: &mut Sources,
) -> Result<GatewayConfig, Diagnostics> {
    let mut problems = Problems::default();
    let root = file::load(name, text, files, sources, &mut problems);
    let config = root
        .as_ref()
        .and_then(|root| checked(root, files, sources, &mut problems));
    match config {
        Some(mut config) if problems.is_empty() => {
            config.warnings = problems.into_warnings(sources);
            Ok(config)
        }
        _ => Err(problems.into_diagnostics(sources)),
    }
}

fn checked(
    root: &Node,
    files: &dyn Files,
    sources: &mut Sources,
    problems: &mut Problems,
) -> Option<GatewayConfig> {
    let spec: GatewayFileSpec = file::decode(root, problems)?;
    let mut checker = Checker {
        problems,
        sources,
        files,
        root,
    };
    checker.gateway(&spec)
}
