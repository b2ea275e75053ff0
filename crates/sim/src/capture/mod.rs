//! Captures of simulated runs: what tcpdump would have written at the two hosts.

mod frame;

use crate::observer::{FlowId, Observer};
use crate::packet::Packet;
use crate::topology::FlowParams;
use frame::{Vantage, write_frame};
use slicewise_capture::RunMark;
pub use slicewise_capture::store::is_replaceable;
use slicewise_capture::write::{PcapngParams, PcapngWriter};
use slicewise_units::{Duration, Instant};
use slicewise_wire::Headers;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// When every captured run starts: 2020-01-01T00:00:00Z, in nanoseconds since the epoch.
pub const EPOCH_NS: u64 = 1_577_836_800_000_000_000;
/// Bytes kept of a frame by default: all headers of a packet with two VLAN
/// tags, IPv6, UDP and a sequence number.
pub const DEFAULT_SNAP_BYTES: u32 = 96;
/// Names of the files that a run is captured in.
pub const FILE_NAMES: [&str; 2] = ["sent.pcapng", "received.pcapng"];

/// Captures of a run, and where they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureParams {
    /// The folder of the two files; it is created if it does not exist.
    pub folder: PathBuf,
    /// Most bytes kept of a frame.
    pub snap_bytes: u32,
    /// How long traffic is offered.
    pub duration: Duration,
    /// The longest on/off cycle of the load; zero if the load is constant.
    pub cycle: Duration,
}

/// Writes every packet of a run into capture files, as real frames: one file of what the sender
/// sent, one of what the receiver received, as its host would have stamped it.
///
/// Between the two, a router has decremented the time to live and may have changed the code point.
/// Until [`Self::finish`] the files have temporary names, so that an incomplete file is not
/// mistaken for a complete one. Captures of an earlier simulation are replaced; any other file is
/// left alone.
#[derive(Debug)]
pub struct CaptureObserver {
    /// By index of the flow: its headers, and in a tunnel those around them.
    headers: Vec<(Headers, Option<Headers>)>,
    sent: CaptureFile,
    received: CaptureFile,
    /// The frame being written.
    frame: Vec<u8>,
    snap_bytes: u32,
    /// Why writing has stopped.
    failed: Option<CaptureError>,
}

/// Why a run could not be captured.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the capture {path}: {source}")]
pub struct CaptureError {
    /// The file or folder.
    pub path: String,
    /// Cause of the failure.
    pub source: io::Error,
}

impl CaptureError {
    fn new(path: &Path, source: io::Error) -> Self {
        Self {
            path: path.display().to_string(),
            source,
        }
    }
}

#[derive(Debug)]
struct CaptureFile {
    /// Its name once it is complete.
    path: PathBuf,
    writer: PcapngWriter<File>,
    vantage: Vantage,
}

impl CaptureObserver {
    /// Begin the two files of a run of `flows`.
    ///
    /// # Errors
    /// Where they cannot be made.
    pub fn create(params: &CaptureParams, flows: &[FlowParams]) -> Result<Self, CaptureError> {
        let folder = &params.folder;
        fs::create_dir_all(folder).map_err(|error| CaptureError::new(folder, error))?;
        let [sent, received] = FILE_NAMES.map(|name| folder.join(name));
        let sent = CaptureFile::create(sent, "sender", AT_SENDER, params)?;
        let received = CaptureFile::create(received, "receiver", AT_RECEIVER, params)
            .inspect_err(|_| sent.remove())?;
        Ok(Self {
            headers: flows
                .iter()
                .map(|flow| (flow.headers, flow.outer))
                .collect(),
            sent,
            received,
            frame: Vec::new(),
            snap_bytes: params.snap_bytes,
            failed: None,
        })
    }

    /// Write the remaining packets, and give the files their names.
    ///
    /// # Errors
    /// Where any packet of the run could not be written.
    pub fn finish(self) -> Result<(), CaptureError> {
        let files = [self.sent, self.received];
        if let Some(error) = self.failed {
            for file in &files {
                file.remove();
            }
            return Err(error);
        }
        files.into_iter().try_for_each(CaptureFile::finish)
    }

    #[inline]
    fn write(&mut self, packet: &Packet, at: Instant, end: fn(&mut Self) -> &mut CaptureFile) {
        let Some((headers, outer)) = self.headers.get(usize::from(packet.flow)).copied() else {
            debug_assert!(false, "a packet of no flow");
            return;
        };
        if self.failed.is_some() {
            return;
        }
        let mut frame = std::mem::take(&mut self.frame);
        let snap_bytes = self.snap_bytes;
        let file = end(self);
        write_frame(
            &mut frame,
            (&headers, outer.as_ref()),
            packet,
            &file.vantage,
            EPOCH_NS,
            snap_bytes,
        );
        let time_ns = EPOCH_NS.saturating_add(at.nanos());
        let result = file.writer.write_packet(time_ns, &frame, packet.l2_bytes);
        let failed = result.map_err(|error| CaptureError::new(&file.path, error));
        self.failed = failed.err();
        self.frame = frame;
    }
}

impl Observer for CaptureObserver {
    #[inline]
    fn on_sent(&mut self, _flow: &FlowId, packet: &Packet) {
        self.write(packet, packet.sent_at, |observer| &mut observer.sent);
    }

    #[inline]
    fn on_received(&mut self, _flow: &FlowId, packet: &Packet, at: Instant) {
        self.write(packet, at, |observer| &mut observer.received);
    }

    /// Nobody captures what is lost.
    #[inline]
    fn on_lost(&mut self, _flow: &FlowId, _packet: &Packet, _now: Instant) {}
}

impl CaptureFile {
    fn create(
        path: PathBuf,
        interface: &str,
        vantage: Vantage,
        params: &CaptureParams,
    ) -> Result<Self, CaptureError> {
        let mark = RunMark {
            start_ns: EPOCH_NS,
            duration_ns: params.duration.nanos(),
            cycle_ns: params.cycle.nanos(),
        };
        let head = PcapngParams {
            comment: &mark.to_string(),
            application: concat!("slicewise ", env!("CARGO_PKG_VERSION")),
            interface,
            snap_bytes: params.snap_bytes,
        };
        let writer = check_replaceable(&path)
            .and_then(|()| create_anew(&unfinished(&path)))
            .and_then(|file| PcapngWriter::new(file, &head));
        match writer {
            Ok(writer) => Ok(Self {
                path,
                writer,
                vantage,
            }),
            Err(error) => Err(CaptureError::new(&path, error)),
        }
    }

    fn finish(self) -> Result<(), CaptureError> {
        let Self { path, writer, .. } = self;
        let written = writer.finish().map(drop);
        written
            .and_then(|()| check_replaceable(&path))
            .and_then(|()| fs::rename(unfinished(&path), &path))
            .map_err(|error| {
                // What is not whole is worth nothing.
                let _ = fs::remove_file(unfinished(&path));
                CaptureError::new(&path, error)
            })
    }

    fn remove(&self) {
        let _ = fs::remove_file(unfinished(&self.path));
    }
}

/// An error if a file exists there that the simulator did not write.
fn check_replaceable(path: &Path) -> io::Result<()> {
    if is_replaceable(path)? {
        return Ok(());
    }
    let message = "a file that the simulator did not write has this name, and is left alone";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
}

/// A new file, in place of one that a killed process left.
fn create_anew(path: &Path) -> io::Result<File> {
    check_replaceable(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// The name of a file until it is complete.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("pcapng.part")
}

/// Locally administered addresses: a host on either side of a router with two ports.
const AT_SENDER: Vantage = Vantage {
    source_mac: [0x02, 0, 0, 0, 0, 0x01],
    destination_mac: [0x02, 0, 0, 0, 0, 0x0a],
    ttl: 64,
};
const AT_RECEIVER: Vantage = Vantage {
    source_mac: [0x02, 0, 0, 0, 0, 0x0b],
    destination_mac: [0x02, 0, 0, 0, 0, 0x02],
    ttl: 63,
};
