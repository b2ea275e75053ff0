//! An interface of the gateway: opened, closed when it fails, opened again when it is back.

use super::offloads::Changed;
use crate::af_packet::AfPacketPort;
use crate::af_xdp::{AfXdpPort, BoundPort, Failed, Mode};
use crate::frame_memory::{FrameId, FrameMemory, PortBudget};
use crate::log;
use crate::metrics::InterfaceSnapshot;
use crate::port::{Arrival, Port, PortCounters, Unsent};
use crate::sys::interface::{InterfaceState, Interfaces};
use slicewise_units::BitRate;
use std::io;
use std::os::fd::BorrowedFd;

/// How frames are received and sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PacketIo {
    /// The first of those below that works.
    #[default]
    Auto,
    /// AF_XDP, by the interface's driver or else generic.
    AfXdp,
    /// Packet sockets.
    AfPacket,
}

/// Why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none of this name.
    #[error("no interface `{name}` in this network namespace: `ip link` lists its interfaces")]
    Missing {
        /// The name.
        name: String,
    },
    /// A capability is missing.
    #[error(
        "`{name}`: {doing} without {capabilities}. Run it as root, or allow it: \
         setcap {words}+ep $(command -v slicewise)"
    )]
    NotPermitted {
        /// The interface.
        name: String,
        /// Operation that failed.
        doing: &'static str,
        /// Capabilities that it needs.
        capabilities: &'static str,
        /// The same, as `setcap` writes it.
        words: &'static str,
    },
    /// A system call failed.
    #[error("`{name}`: {doing}: {error}")]
    Failed {
        /// The interface.
        name: String,
        /// Operation that failed.
        doing: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// Port through which an interface is opened.
#[derive(Debug)]
enum Open {
    AfXdp(Box<AfXdpPort>),
    AfPacket(Box<AfPacketPort>),
}

impl Open {
    fn port(&mut self) -> &mut dyn Port {
        match self {
            Self::AfXdp(port) => port.as_mut(),
            Self::AfPacket(port) => port.as_mut(),
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::AfXdp(port) => port.descriptors().collect(),
            Self::AfPacket(port) => vec![port.descriptor()],
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::AfXdp(port) => match port.mode() {
                Mode::Native => "af_xdp_native",
                Mode::Generic => "af_xdp_generic",
            },
            Self::AfPacket(_) => "af_packet",
        }
    }
}

/// An interface of the gateway.
#[derive(Debug)]
pub(super) struct Interface {
    name: String,
    packet_io: PacketIo,
    open: Option<Open>,
    /// Result of [`bind`](Self::bind).
    bound: Option<Result<BoundPort, Failed>>,
    /// Its last known state.
    state: Option<InterfaceState>,
    /// Rate at which it sends, as far as it tells.
    line_rate: Option<BitRate>,
    /// Memory that it may hold.
    budget: PortBudget,
    /// Why it could not be opened last time, so that this is logged only once.
    trouble: String,
    /// Of ports that were closed since.
    counted: PortCounters,
    /// Frames that they did not send and that have not been reported yet.
    unsent: Unsent,
    changed: Changed,
}

impl Interface {
    pub(super) fn new(name: &str, packet_io: PacketIo) -> Self {
        Self {
            name: name.to_owned(),
            packet_io,
            open: None,
            bound: None,
            state: None,
            line_rate: None,
            budget: PortBudget::full(0),
            trouble: String::new(),
            counted: PortCounters::default(),
            unsent: Unsent::default(),
            changed: Changed::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn line_rate(&self) -> Option<BitRate> {
        self.line_rate
    }

    /// See whether it is there; returns the longest IP packet it carries.
    pub(super) fn find(&mut self, system: &Interfaces) -> Result<u32, OpenError> {
        let state = system.state(&self.name).map_err(|error| {
            if error.raw_os_error() == Some(libc::ENODEV) {
                OpenError::Missing {
                    name: self.name.clone(),
                }
            } else {
                self.failed("cannot read its state", error)
            }
        })?;
        self.state = Some(state);
        Ok(state.mtu_bytes)
    }

    /// Receive queues that frame memory is lent to, as far as is known before it is opened.
    pub(super) fn receive_queues(&self, system: &Interfaces) -> u32 {
        match self.packet_io {
            PacketIo::AfPacket => 0,
            PacketIo::Auto | PacketIo::AfXdp => system.receive_queues(&self.name),
        }
    }

    /// Set how much of the memory it may hold from now on.
    pub(super) const fn set_budget(&mut self, budget: PortBudget) {
        self.budget = budget;
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> OpenError {
        OpenError::Failed {
            name: self.name.clone(),
            doing,
            error,
        }
    }

    /// Begin to open it, as far as that takes time and no memory.
    pub(super) fn bind(&mut self, system: &Interfaces, memory: &FrameMemory) {
        if self.packet_io != PacketIo::AfPacket
            && let Some(state) = &self.state
        {
            let queues = system.receive_queues(&self.name);
            self.bound = Some(AfXdpPort::bind(state, queues, self.budget, memory));
        }
    }

    /// Open it. An interface that is down is opened, too: frames come when it is up.
    pub(super) fn open(
        &mut self,
        system: &Interfaces,
        memory: &mut FrameMemory,
    ) -> Result<(), OpenError> {
        self.find(system)?;
        let Some(state) = self.state else {
            return Ok(());
        };
        if system.has_address(&self.name) {
            let help = "the host itself answers and forwards, too: remove its addresses";
            log::warn("has_address", &[("interface", &self.name), ("so", &help)]);
        }
        let mut open = match self.packet_io {
            PacketIo::AfPacket => self.open_af_packet(&state)?,
            PacketIo::AfXdp => self.open_af_xdp(system, memory)?,
            PacketIo::Auto => match self.open_af_xdp(system, memory) {
                Ok(open) => open,
                Err(error) => {
                    log::info(
                        "no_af_xdp",
                        &[("interface", &self.name), ("reason", &error)],
                    );
                    self.open_af_packet(&state)?
                }
            },
        };
        self.line_rate = system.line_rate(&self.name);
        let keeps_tags = matches!(open, Open::AfPacket(_));
        self.changed.turn_off(system, &self.name, keeps_tags);
        let queue = open.descriptors().len();
        log::info(
            "interface_open",
            &[
                ("interface", &self.name),
                ("packet_io", &open.name()),
                ("queues", &queue),
                ("largest_frame", &open.port().largest_frame(0)),
            ],
        );
        self.open = Some(open);
        self.trouble.clear();
        Ok(())
    }

    fn open_af_packet(&self, state: &InterfaceState) -> Result<Open, OpenError> {
        let port = AfPacketPort::open(state).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => OpenError::NotPermitted {
                name: self.name.clone(),
                doing: "cannot receive all frames",
                capabilities: "CAP_NET_RAW, and CAP_NET_ADMIN to turn offloads off",
                words: "cap_net_raw,cap_net_admin,cap_sys_nice",
            },
            _ => self.failed("cannot open a packet socket", error),
        })?;
        Ok(Open::AfPacket(Box::new(port)))
    }

    fn open_af_xdp(
        &mut self,
        system: &Interfaces,
        memory: &mut FrameMemory,
    ) -> Result<Open, OpenError> {
        if self.bound.is_none() {
            self.bind(system, memory);
        }
        let bound = self.bound.take();
        let bound =
            bound.ok_or_else(|| self.failed("is not there", io::ErrorKind::NotFound.into()))?;
        let port = bound.and_then(|bound| bound.attach(memory));
        let port = port.map_err(|failed| match failed.error.kind() {
            io::ErrorKind::PermissionDenied => OpenError::NotPermitted {
                name: self.name.clone(),
                doing: failed.doing,
                capabilities: "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
                words: "cap_net_raw,cap_net_admin,cap_bpf,cap_sys_nice",
            },
            _ => self.failed(failed.doing, failed.error),
        })?;
        Ok(Open::AfXdp(Box::new(port)))
    }

    /// Returns the descriptors to wait for.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.open
            .as_ref()
            .map(Open::descriptors)
            .unwrap_or_default()
    }

    pub(super) fn address(&self) -> [u8; 6] {
        self.state.map_or([0; 6], |state| state.address)
    }

    /// A descriptor reports an error: find out what it is and whether it matters.
    pub(super) fn on_error(&mut self, memory: &mut FrameMemory) {
        let errors: Vec<io::Error> = self
            .descriptors()
            .into_iter()
            .filter_map(|descriptor| crate::sys::socket::take_error(descriptor).err())
            .collect();
        if let Some(error) = errors.first() {
            self.close(&error.to_string(), memory);
        }
    }

    /// It is of no use for now.
    pub(super) fn close(&mut self, reason: &str, memory: &mut FrameMemory) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        self.counted = self.counted.plus(open.port().counters());
        open.port().close(memory);
        self.unsent = self.unsent.plus(open.port().take_unsent());
        log::warn(
            "interface_closed",
            &[("interface", &self.name), ("reason", &reason)],
        );
    }

    /// Check whether it is still the interface that was opened; open it if it is closed.
    pub(super) fn check(&mut self, system: &Interfaces, memory: &mut FrameMemory) {
        if let Some(open) = &mut self.open {
            // What it did not take at once is tried again, also where nothing more is sent.
            open.port().room(memory);
        }
        let before = self.state;
        match system.state(&self.name) {
            Err(error) => {
                self.state = None;
                self.close(&error.to_string(), memory);
                self.log_trouble(&error.to_string());
                return;
            }
            Ok(state) => {
                self.state = Some(state);
                if before.is_none_or(|before| before.is_running != state.is_running) {
                    self.line_rate = system.line_rate(&self.name);
                    let event = if state.is_running {
                        "link_up"
                    } else {
                        "link_down"
                    };
                    log::info(event, &[("interface", &self.name)]);
                }
                let is_same = before.is_some_and(|before| {
                    before.index == state.index && before.mtu_bytes == state.mtu_bytes
                });
                if self.open.is_some() && !is_same {
                    self.close("it was created again or has another MTU", memory);
                }
            }
        }
        if self.open.is_none()
            && self.state.is_some_and(|state| state.is_up)
            && let Err(error) = self.open(system, memory)
        {
            self.log_trouble(&error.to_string());
        }
    }

    fn log_trouble(&mut self, trouble: &str) {
        if self.trouble != trouble {
            trouble.clone_into(&mut self.trouble);
            let so = "the gateway tries again every 250 ms";
            log::warn(
                "interface_unusable",
                &[("interface", &self.name), ("reason", &trouble), ("so", &so)],
            );
        }
    }

    /// Begin to close it, as far as that takes time and no memory.
    pub(super) fn shut(&mut self) {
        if let Some(Open::AfXdp(port)) = &mut self.open {
            port.shut();
        }
    }

    /// Close it and leave it as it was found.
    pub(super) fn restore(&mut self, system: &Interfaces, memory: &mut FrameMemory) {
        self.close("the gateway stops", memory);
        self.changed.restore(system, &self.name);
    }

    /// Its losses, summed over all times it was opened.
    pub(super) fn counters(&mut self) -> PortCounters {
        let now = self.open.as_mut().map(|open| open.port().counters());
        self.counted.plus(now.unwrap_or_default())
    }

    pub(super) fn snapshot(&mut self) -> InterfaceSnapshot {
        let counters = self.counters();
        InterfaceSnapshot {
            name: self.name.clone(),
            packet_io: self.open.as_ref().map_or("closed", Open::name),
            is_open: self.is_open(),
            counters,
        }
    }
}

impl Port for Interface {
    fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        match &mut self.open {
            Some(Open::AfXdp(port)) => port.receive(memory, arrivals),
            Some(Open::AfPacket(port)) => port.receive(memory, arrivals),
            None => Ok(()),
        }
    }

    fn room(&mut self, memory: &mut FrameMemory) -> usize {
        match &mut self.open {
            Some(Open::AfXdp(port)) => port.room(memory),
            Some(Open::AfPacket(port)) => port.room(memory),
            None => usize::MAX,
        }
    }

    fn transmit(&mut self, memory: &mut FrameMemory, frames: &[FrameId]) -> io::Result<()> {
        match &mut self.open {
            Some(open) => open.port().transmit(memory, frames),
            None => {
                frames.iter().for_each(|&frame| memory.release(frame));
                Ok(())
            }
        }
    }

    fn take_unsent(&mut self) -> Unsent {
        let of_closed = std::mem::take(&mut self.unsent);
        match &mut self.open {
            Some(open) => of_closed.plus(open.port().take_unsent()),
            None => of_closed,
        }
    }

    /// Unlimited for a closed interface, whose MTU may be different when it is back.
    fn largest_frame(&self, ethertype: u16) -> u32 {
        match &self.open {
            Some(Open::AfXdp(port)) => port.largest_frame(ethertype),
            Some(Open::AfPacket(port)) => port.largest_frame(ethertype),
            None => u32::MAX,
        }
    }

    fn is_open(&self) -> bool {
        self.open.is_some() && self.state.is_some_and(|state| state.is_up)
    }

    fn close(&mut self, memory: &mut FrameMemory) {
        self.close("closed", memory);
    }
}
