//! Slices told apart by different headers, frames of each in random order, and what the measurements need.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use slicewise_model::{
    BurstSpec, ClassMap, ClassSpec, Condition, Discipline, GuaranteeSpec, IpPrefix, MatchMode,
    PolicyParams, PolicySpec, QueueLimitSpec, RateSpec,
};
use slicewise_units::{BitRate, ByteCount, Duration};
use slicewise_wire::{Headers, IpVersion};
use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An allocator that counts the bytes in use.
pub struct Counting;

/// Bytes in use.
pub static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// A million.
pub const MILLION: u32 = 1_000_000;

/// What tells slices apart.
#[derive(Clone, Copy)]
pub enum Kind {
    VlanPair,
    Ipv4,
    Ipv6,
    Teid,
    /// IPv4 destination prefixes of eight lengths.
    Prefixes,
}

pub const KINDS: [(&str, Kind); 5] = [
    ("VLAN pair", Kind::VlanPair),
    ("IPv4 destination", Kind::Ipv4),
    ("IPv6 destination", Kind::Ipv6),
    ("TEID", Kind::Teid),
    ("IPv4 prefixes /17-/24", Kind::Prefixes),
];

impl Kind {
    /// How many slices there can be.
    pub const fn most(self) -> u32 {
        match self {
            Self::Prefixes => 100_000,
            _ => MILLION,
        }
    }

    /// The class map of a slice.
    pub fn map(self, slice: u32) -> ClassMap {
        let destination = |address: IpAddr, length| {
            let prefix = IpPrefix::new(address, length).expect("the length fits");
            vec![Condition::Destination(prefix)]
        };
        let conditions = match self {
            Self::VlanPair => {
                let (outer, inner) = vlans(slice);
                vec![
                    Condition::OuterVlan(outer..=outer),
                    Condition::InnerVlan(inner..=inner),
                ]
            }
            Self::Ipv4 => destination(Ipv4Addr::from(0x0a00_0000 + slice).into(), 32),
            Self::Ipv6 => destination(Ipv6Addr::from(ipv6(slice)).into(), 128),
            Self::Teid => vec![Condition::GtpTeid(slice + 1..=slice + 1)],
            Self::Prefixes => {
                destination(Ipv4Addr::from(slice << 15).into(), 17 + (slice % 8) as u8)
            }
        };
        ClassMap {
            name: String::new(),
            mode: MatchMode::All,
            conditions,
        }
    }

    /// The class of a slice: a guarantee of 100 kbit/s.
    pub fn class(self, slice: u32) -> ClassSpec {
        let mut matches = self.map(slice);
        matches.name = format!("slice{slice}");
        ClassSpec {
            guarantee: Some(GuaranteeSpec {
                rate: RateSpec::Absolute(BitRate::new(100_000)),
                burst: Some(BurstSpec::Size(ByteCount::new(1_522))),
                delay: Some(Duration::from_millis(80)),
                smallest_frame: None,
            }),
            queue: QueueLimitSpec::Packets(64).into(),
            ..ClassSpec::new(matches)
        }
    }

    /// So many slices on a link.
    pub fn policy(self, slices: u32, link: BitRate) -> PolicyParams {
        let policy = PolicySpec {
            name: "slices".into(),
            classes: (0..slices).map(|slice| self.class(slice)).collect(),
            discipline: Discipline::Guaranteed,
            guaranteed: None,
            queues: Vec::new(),
        };
        policy.resolve(link).expect("all are admitted")
    }

    /// Headers of its frames.
    pub fn headers(self, slice: u32) -> Headers {
        let (outer_vlan, inner_vlan) = vlans(slice);
        let (ip_version, destination) = match self {
            Self::Ipv6 => (IpVersion::V6, ipv6(slice)),
            Self::Prefixes => (IpVersion::V4, (slice << 15).into()),
            _ => (IpVersion::V4, (0x0a00_0000 + slice).into()),
        };
        Headers {
            vlan_tags: 2,
            outer_vlan,
            inner_vlan,
            ip_version,
            destination,
            protocol: 17,
            has_ports: true,
            teid: NonZeroU32::new(slice + 1),
            ..Headers::default()
        }
    }

    /// The key of a slice in a hash map.
    pub fn key(self, h: &Headers) -> u128 {
        match self {
            Self::VlanPair => u128::from(h.outer_vlan) << 16 | u128::from(h.inner_vlan),
            Self::Ipv4 | Self::Ipv6 => h.destination,
            Self::Teid => h.teid.map_or(0, NonZeroU32::get).into(),
            Self::Prefixes => h.destination,
        }
    }
}

const fn vlans(slice: u32) -> (u16, u16) {
    ((slice / 1_000 + 1) as u16, (slice % 1_000 + 1) as u16)
}

const fn ipv6(slice: u32) -> u128 {
    0x2001_0db8 << 96 | (slice as u128 / 16) << 64 | (slice as u128 % 16 + 1)
}

/// Numbers below a limit, well mixed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }
}

/// A million frames, each slice as often as the others, in random order.
pub fn frames(kind: Kind, slices: u32) -> Vec<Headers> {
    let mut frames: Vec<Headers> = (0..MILLION).map(|n| kind.headers(n % slices)).collect();
    let mut random = Random(1);
    for last in (1..frames.len()).rev() {
        frames.swap(last, random.below(last + 1));
    }
    frames
}

/// Processor time of this thread in ns: other programs on the machine do not count.
pub fn clock() -> u64 {
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
    let mut time = [0; 2];
    // SAFETY: `time` has the layout of a `timespec` on 64-bit Linux and outlives the call.
    let failed = unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "the thread has a clock");
    time[0] as u64 * 1_000_000_000 + time[1] as u64
}
