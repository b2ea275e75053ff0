//! Packet I/O through AF_XDP sockets (<https://docs.kernel.org/networking/af_xdp.html>).
//!
//! A small program at the interface hands every frame to our sockets, one per receive queue. The kernel
//! writes frames into [`FrameMemory`] itself and sends them from there: a frame is not copied between
//! arriving and leaving. Both interfaces register the same memory, each separately, so that one can disappear
//! and return without the other.
//!
//! The program is attached through a link, which the kernel removes when the process ends: the interface then
//! works as before, however the gateway ended.

#![allow(unsafe_code)]

mod link;
mod program;
mod ring;
mod socket;
mod xsk_map;

use crate::bpf::Program;
use crate::frame_memory::{FRAME_BYTES_PER_CHUNK, FrameId, FrameMemory, PortBudget, chunks_of};
use crate::port::{Arrival, ETHERNET_BYTES, Port, PortCounters, TAG_BYTES};
use crate::sys::interface::InterfaceState;
use link::Link;
use socket::{Lent, SocketParams, XskSocket};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use xsk_map::XskMap;

/// How the program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In the interface's driver.
    Native,
    /// Behind the driver: works with any interface, and costs more.
    Generic,
}

/// Operation that failed, and why.
#[derive(Debug)]
pub struct Failed {
    /// Operation that was tried.
    pub doing: &'static str,
    /// Error of the operating system.
    pub error: io::Error,
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> Failed {
    move |error| Failed { doing, error }
}

fn unsupported(problem: String) -> Failed {
    let error = io::Error::new(io::ErrorKind::Unsupported, problem);
    failed("cannot use AF_XDP")(error)
}

/// Most receive queues of an interface.
const MOST_QUEUES: u32 = 64;

/// An interface through AF_XDP. Fields are dropped in order: the program goes before what it points at.
#[derive(Debug)]
pub struct AfXdpPort {
    link: Link,
    sockets: Vec<XskSocket>,
    /// Memory of sockets that are closed.
    lent: Vec<Lent>,
    _map: XskMap,
    /// Keeps the interface promiscuous.
    promiscuous: Option<OwnedFd>,
    mode: Mode,
    mtu_bytes: u32,
    /// The queue whose turn it is to be received from first.
    turn: usize,
}

/// An interface whose sockets are bound, and that no frames are taken from yet.
#[derive(Debug)]
pub struct BoundPort {
    sockets: Vec<XskSocket>,
    map: XskMap,
    program: Program,
    promiscuous: OwnedFd,
    interface: u32,
    mtu_bytes: u32,
}

impl BoundPort {
    /// Take all frames that arrive.
    ///
    /// # Errors
    /// If another program is attached, or the kernel has none for this interface.
    pub fn attach(mut self, memory: &mut FrameMemory) -> Result<AfXdpPort, Failed> {
        for socket in &mut self.sockets {
            socket.refill(memory);
        }
        let attached = Link::attach(&self.program, self.interface);
        match attached.map_err(failed("cannot attach the eBPF program")) {
            Ok((link, mode)) => Ok(AfXdpPort {
                link,
                sockets: self.sockets,
                lent: Vec::new(),
                _map: self.map,
                promiscuous: Some(self.promiscuous),
                mode,
                mtu_bytes: self.mtu_bytes,
                turn: 0,
            }),
            Err(error) => {
                for socket in self.sockets {
                    socket.close().take_back(memory);
                }
                Err(error)
            }
        }
    }
}

impl AfXdpPort {
    /// Take all frames that arrive at an interface's `queues`, whomever they are for, with the memory that it
    /// may hold.
    ///
    /// # Errors
    /// As [`bind`](Self::bind) and [`BoundPort::attach`].
    pub fn open(
        interface: &InterfaceState,
        queues: u32,
        budget: PortBudget,
        memory: &mut FrameMemory,
    ) -> Result<Self, Failed> {
        Self::bind(interface, queues, budget, memory)?.attach(memory)
    }

    /// Bind a socket to each of an interface's `queues`. The kernel needs some 10 ms for a large memory.
    ///
    /// # Errors
    /// Without the capabilities, without support by kernel or interface, or with too little memory for so many
    /// queues.
    pub fn bind(
        interface: &InterfaceState,
        queues: u32,
        budget: PortBudget,
        memory: &FrameMemory,
    ) -> Result<BoundPort, Failed> {
        if queues > MOST_QUEUES {
            return Err(unsupported(format!(
                "the interface has {queues} receive queues, and at most {MOST_QUEUES} are supported: \
                 reduce them with `ethtool -L`"
            )));
        }
        let largest = interface.mtu_bytes + ETHERNET_BYTES + 2 * TAG_BYTES;
        let receiving = budget.of_queue(queues, chunks_of(largest)).ok_or_else(|| {
            unsupported(format!(
                "too little frame memory is reserved for {queues} receive queues and an MTU of {}: start \
                 the gateway again, with more `memory`, or with fewer queues (`ethtool -L`)",
                interface.mtu_bytes
            ))
        })?;
        let promiscuous = open_promiscuous(interface.index)?;
        let map = XskMap::new(queues).map_err(failed("cannot create an eBPF map"))?;
        let program = program::load(&map).map_err(failed("cannot load the eBPF program"))?;
        let params = SocketParams {
            interface: interface.index,
            queue: 0,
            several_chunks: largest as usize > FRAME_BYTES_PER_CHUNK,
            receiving,
            sending: budget.transmit,
        };
        let bind = |queue| {
            let socket = XskSocket::bind(SocketParams { queue, ..params }, memory)
                .map_err(failed("cannot bind an AF_XDP socket"))?;
            map.set(queue, socket.descriptor())
                .map_err(failed("cannot enter a socket in the eBPF map"))?;
            Ok(socket)
        };
        let sockets = (0..queues).map(bind).collect::<Result<_, Failed>>()?;
        Ok(BoundPort {
            sockets,
            map,
            program,
            promiscuous,
            interface: interface.index,
            mtu_bytes: interface.mtu_bytes,
        })
    }

    /// How the program is attached.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Take the program away and close the sockets. For each the kernel waits some 10 ms until nobody uses it, so all are closed at the
    /// same time.
    pub fn shut(&mut self) {
        self.link.detach();
        let (sockets, promiscuous) = (self.sockets.drain(..), self.promiscuous.take());
        std::thread::scope(|scope| {
            let closing = sockets.map(|socket| scope.spawn(|| socket.close()));
            let closing: Vec<_> = closing.collect();
            drop(promiscuous);
            let closed = closing.into_iter().filter_map(|closed| closed.join().ok());
            self.lent.extend(closed);
        });
    }

    /// Readable when frames have arrived.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(XskSocket::descriptor)
    }
}

/// A packet socket that receives nothing, and keeps the interface promiscuous as long as it is open.
fn open_promiscuous(interface: u32) -> Result<OwnedFd, Failed> {
    let doing = "cannot receive frames for others";
    let socket = crate::sys::socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0);
    let socket = socket.map_err(failed(doing))?;
    crate::af_packet::become_promiscuous(socket.as_fd(), interface).map_err(failed(doing))?;
    Ok(socket)
}

impl Port for AfXdpPort {
    fn receive(&mut self, memory: &mut FrameMemory, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        let queues = self.sockets.len();
        for offset in 0..queues {
            let index = (self.turn + offset) % queues;
            if let Some(socket) = self.sockets.get_mut(index) {
                socket.receive(memory, arrivals);
            }
        }
        self.turn = (self.turn + 1) % queues.max(1);
        Ok(())
    }

    fn room(&mut self, memory: &mut FrameMemory) -> usize {
        match self.sockets.first_mut() {
            Some(socket) => socket.room(memory) / self.chunks_of_largest(),
            None => 0,
        }
    }

    fn transmit(&mut self, memory: &mut FrameMemory, frames: &[FrameId]) -> io::Result<()> {
        match self.sockets.first_mut() {
            Some(socket) => socket.transmit(memory, frames),
            None => Ok(()),
        }
    }

    fn largest_frame(&self, _ethertype: u16) -> u32 {
        self.mtu_bytes + ETHERNET_BYTES + TAG_BYTES
    }

    fn counters(&mut self) -> PortCounters {
        let sockets = self.sockets.iter().map(XskSocket::counters);
        sockets.fold(PortCounters::default(), PortCounters::plus)
    }

    fn close(&mut self, memory: &mut FrameMemory) {
        self.shut();
        for lent in self.lent.drain(..) {
            lent.take_back(memory);
        }
    }
}

impl AfXdpPort {
    /// Descriptors that a frame may take.
    fn chunks_of_largest(&self) -> usize {
        chunks_of(self.mtu_bytes + ETHERNET_BYTES + 2 * TAG_BYTES) as usize
    }
}
