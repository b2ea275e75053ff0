//! Properties of an interface, and the offloads that would hand us frames no wire carries.

use super::checked;
use super::socket;
use slicewise_units::BitRate;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// An interface at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceState {
    /// Its number, which changes when an interface is deleted and created again.
    pub index: u32,
    /// Administratively up.
    pub is_up: bool,
    /// Up and running; the kernel may report this up to a second late.
    pub is_running: bool,
    /// Longest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Its own address.
    pub address: [u8; 6],
}

/// An offload: frames are changed before we see them, or are left unfinished when they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Generic receive offload: several segments as one frame.
    Gro,
    /// Large receive offload: the same, in hardware.
    Lro,
    /// VLAN tags taken out of frames by the interface.
    VlanReceive,
    /// Transport checksums filled in by the interface.
    TransmitChecksum,
    /// TCP segmentation offload (TSO): several segments sent as one, cut up by the interface.
    TransmitSegmentation,
    /// Generic segmentation offload (GSO): the same, cut up by the kernel just before the interface.
    Segmentation,
    /// VLAN tags (802.1Q) put into frames by the interface.
    VlanTransmit,
}

/// How `SIOCETHTOOL` (`linux/ethtool.h`) reaches an offload.
#[derive(Debug, Clone, Copy)]
enum Control {
    /// Commands of its own.
    Commands { get: u32, set: u32 },
    /// A bit of the flags.
    Flag(u32),
}

const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

impl Offload {
    const fn control(self) -> Control {
        match self {
            Self::Gro => Control::Commands {
                get: 0x2b,
                set: 0x2c,
            },
            Self::TransmitChecksum => Control::Commands {
                get: 0x16,
                set: 0x17,
            },
            Self::TransmitSegmentation => Control::Commands {
                get: 0x1e,
                set: 0x1f,
            },
            Self::Segmentation => Control::Commands {
                get: 0x23,
                set: 0x24,
            },
            Self::VlanTransmit => Control::Flag(1 << 7),
            Self::VlanReceive => Control::Flag(1 << 8),
            Self::Lro => Control::Flag(1 << 15),
        }
    }
}

/// Offloads that let virtual interfaces pass frames that no wire carries. Segmentation goes before checksums, which it
/// needs.
const NOT_ON_A_WIRE: [Offload; 6] = [
    Offload::TransmitSegmentation,
    Offload::Segmentation,
    Offload::TransmitChecksum,
    Offload::VlanTransmit,
    Offload::Gro,
    Offload::Lro,
];

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct EthtoolCommand {
    command: u32,
    supported: u32,
    advertising: u32,
    /// Lower half of the rate, Mbit/s.
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autoneg: u8,
    mdio_support: u8,
    max_tx_packets: u32,
    max_rx_packets: u32,
    /// Upper half of the rate.
    speed_hi: u16,
    mdix: [u8; 2],
    partner_advertising: u32,
    reserved: [u32; 2],
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct EthtoolChannels {
    command: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Asks the kernel about interfaces, by name.
#[derive(Debug)]
pub struct Interfaces(OwnedFd);

impl Interfaces {
    /// Of the network namespace that this thread is in.
    ///
    /// # Errors
    /// Where the process has too many descriptors.
    pub fn new() -> io::Result<Self> {
        socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).map(Self)
    }

    /// The interface as it is now.
    ///
    /// # Errors
    /// `ENODEV` if there is no interface with this name.
    pub fn state(&self, name: &str) -> io::Result<InterfaceState> {
        let index = self.request(name, libc::SIOCGIFINDEX)?;
        // SAFETY: this request fills this member.
        let index = unsafe { index.ifr_ifru.ifru_ifindex };
        let flags = self.request(name, libc::SIOCGIFFLAGS)?;
        // SAFETY: this request fills this member.
        let flags = i32::from(unsafe { flags.ifr_ifru.ifru_flags });
        let mtu = self.request(name, libc::SIOCGIFMTU)?;
        // SAFETY: this request fills this member.
        let mtu = unsafe { mtu.ifr_ifru.ifru_mtu };
        let hardware = self.request(name, libc::SIOCGIFHWADDR)?;
        // SAFETY: this request fills this member.
        let hardware = unsafe { hardware.ifr_ifru.ifru_hwaddr };
        if hardware.sa_family != libc::ARPHRD_ETHER {
            let problem = format!("`{name}` is not an Ethernet interface");
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        let mut address = [0; 6];
        for (to, from) in address.iter_mut().zip(hardware.sa_data) {
            *to = from.cast_unsigned();
        }
        Ok(InterfaceState {
            index: u32::try_from(index).unwrap_or(0),
            is_up: flags & libc::IFF_UP != 0,
            is_running: flags & libc::IFF_RUNNING != 0,
            mtu_bytes: u32::try_from(mtu).unwrap_or(0),
            address,
        })
    }

    /// Returns true if the kernel itself has an IPv4 address there, and so would answer in addition to us.
    #[must_use]
    pub fn has_address(&self, name: &str) -> bool {
        self.request(name, libc::SIOCGIFADDR).is_ok()
    }

    /// Queues that frames are received on.
    #[must_use]
    pub fn receive_queues(&self, name: &str) -> u32 {
        let mut channels = EthtoolChannels {
            command: ETHTOOL_GCHANNELS,
            ..EthtoolChannels::default()
        };
        match self.ethtool(name, &raw mut channels) {
            Ok(()) => (channels.rx + channels.combined).max(1),
            // It does not tell, as most virtual interfaces do not: they have one.
            Err(_) => 1,
        }
    }

    /// Rate at which the interface sends (L1); `None` if it has no link, or does not tell.
    #[must_use]
    pub fn line_rate(&self, name: &str) -> Option<BitRate> {
        let mut command = EthtoolCommand {
            command: ETHTOOL_GSET,
            ..EthtoolCommand::default()
        };
        self.ethtool(name, &raw mut command).ok()?;
        let megabits = u32::from(command.speed_hi) << 16 | u32::from(command.speed);
        let is_known = megabits != 0 && megabits != u32::MAX;
        is_known.then(|| BitRate::new(u64::from(megabits) * 1_000_000))
    }

    /// Returns true if an offload is on.
    ///
    /// # Errors
    /// Where the interface does not tell.
    pub fn offload(&self, name: &str, offload: Offload) -> io::Result<bool> {
        let (command, mask) = match offload.control() {
            Control::Commands { get, .. } => (get, u32::MAX),
            Control::Flag(flag) => (ETHTOOL_GFLAGS, flag),
        };
        Ok(self.ethtool_value(name, command, 0)? & mask != 0)
    }

    /// Turn an offload on or off.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or where the interface cannot.
    pub fn set_offload(&self, name: &str, offload: Offload, on: bool) -> io::Result<()> {
        let (command, value) = match offload.control() {
            Control::Commands { set, .. } => (set, u32::from(on)),
            Control::Flag(flag) => {
                let flags = self.ethtool_value(name, ETHTOOL_GFLAGS, 0)?;
                let flags = if on { flags | flag } else { flags & !flag };
                (ETHTOOL_SFLAGS, flags)
            }
        };
        self.ethtool_value(name, command, value).map(|_| ())
    }

    /// Make an interface send and hand over only frames that could be on a wire: one segment
    /// each, with its checksum, and with its VLAN tags (802.1Q) in the frame. Between virtual
    /// interfaces the kernel skips all three, and packet sockets at the other end see frames that no real
    /// network carries.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or where one of them cannot be turned off; it says which.
    pub fn send_as_on_a_wire(&self, name: &str) -> io::Result<()> {
        for offload in NOT_ON_A_WIRE {
            let turn_off = || {
                if !self.offload(name, offload)? {
                    return Ok(());
                }
                self.set_offload(name, offload, false)?;
                if self.offload(name, offload)? {
                    // Answered with success, and not done: a driver may insist.
                    return Err(io::ErrorKind::Unsupported.into());
                }
                Ok(())
            };
            turn_off().map_err(|error: io::Error| {
                let problem = format!("{offload:?} of `{name}` cannot be turned off: {error}");
                io::Error::new(error.kind(), problem)
            })?;
        }
        Ok(())
    }

    fn ethtool_value(&self, name: &str, command: u32, data: u32) -> io::Result<u32> {
        let mut value = EthtoolValue { command, data };
        self.ethtool(name, &raw mut value)?;
        Ok(value.data)
    }

    fn ethtool<T>(&self, name: &str, command: *mut T) -> io::Result<()> {
        let mut request = named(name)?;
        request.ifr_ifru.ifru_data = command.cast();
        // SAFETY: `command` is to a live structure of the size its command says.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SIOCETHTOOL as libc::Ioctl,
                &raw mut request,
            )
        };
        checked(result).map(|_| ())
    }

    fn request<T: TryInto<libc::Ioctl>>(&self, name: &str, code: T) -> io::Result<libc::ifreq> {
        let mut request = named(name)?;
        let code = code.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: these requests read the name in, and write a member of, one live `ifreq`.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), code, &raw mut request) };
        checked(result).map(|_| request)
    }
}

/// A request about the interface of this name.
fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: plain old data; zero is the null pointer in its union.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Ok(request)
}
