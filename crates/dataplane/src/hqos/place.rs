//! Which queue a frame belongs to, as in the sample application `qos_sched`.

use slicewise_model::HqosParams;
use slicewise_model::hqos::{BEST_EFFORT, COLOURS, QUEUES, TRAFFIC_CLASSES};
use slicewise_wire::{Headers, IpVersion};

/// [`QUEUES`] and [`BEST_EFFORT`], for positions of 32 bits.
pub(super) const PIPE_QUEUES: u32 = 16;
pub(super) const FIRST_BEST_EFFORT: u32 = 12;
/// The last colour. The address has two bits for it: the fourth value counts as this, too.
const RED: u32 = 2;
const _: () = assert!(RED as usize == COLOURS - 1);
const _: () = assert!(PIPE_QUEUES as usize == QUEUES && FIRST_BEST_EFFORT as usize == BEST_EFFORT);
/// A queue of a hierarchical scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HqosPlace {
    /// Its subport.
    pub subport: u32,
    /// Its pipe in the subport.
    pub pipe: u32,
    /// Its number in the pipe: 0 to 11 are traffic classes, 12 to 15 the queues of best effort.
    pub queue: u32,
    /// The colour of a frame for early detection: 0 green, 1 yellow, 2 red.
    pub colour: u32,
}

impl HqosPlace {
    /// In one word: queue (4 bits), pipe (16 bits), subport (4 bits), colour (2 bits).
    pub(crate) const fn packed(self) -> u32 {
        self.colour << 24 | self.subport << 20 | self.pipe << 4 | self.queue
    }

    pub(crate) const fn unpacked(word: u32) -> Self {
        Self {
            subport: word >> 20 & 15,
            pipe: word >> 4 & 0xffff,
            queue: word & 15,
            colour: word >> 24 & 3,
        }
    }

    /// Its number among the queues of its subport.
    pub(super) const fn index(self) -> u32 {
        self.pipe * PIPE_QUEUES + self.queue
    }

    /// Its traffic class.
    #[must_use]
    pub const fn class(self) -> usize {
        class_of(self.queue as usize)
    }
}

/// The traffic class of a queue of a pipe.
pub(super) const fn class_of(queue: usize) -> usize {
    if queue < BEST_EFFORT {
        queue
    } else {
        BEST_EFFORT
    }
}

/// Finds the place of a frame: the outer VLAN gives the subport and the inner VLAN the pipe, both modulo their number; the
/// last octet of the IPv4 destination, modulo the number of queues that a pipe has, gives the queue, and the two low bits
/// of its first octet the colour. What a frame does not have counts as 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HqosPlaces {
    subports: Box<[Queues]>,
}

/// The queues of the pipes of a subport.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Queues {
    pipes: u32,
    /// Queues of classes whose queue size is not 0.
    with_size: Box<[u8]>,
}

impl HqosPlaces {
    /// Returns the places of a scheduler.
    #[must_use]
    pub fn new(params: &HqosParams) -> Self {
        let subports = params.subports.iter();
        let queues = |sizes: [u16; TRAFFIC_CLASSES]| {
            let numbers = (0u8..).zip(0..QUEUES);
            let numbers = numbers.filter(move |(_, queue)| sizes[class_of(*queue)] > 0);
            numbers.map(|(number, _)| number).collect()
        };
        Self {
            subports: subports
                .map(|subport| Queues {
                    pipes: subport.pipes,
                    with_size: queues(subport.queue_sizes),
                })
                .collect(),
        }
    }

    /// The place of a frame with these headers.
    #[inline]
    #[must_use]
    pub fn of(&self, headers: &Headers) -> HqosPlace {
        // Both are powers of two, and best effort has queues.
        let subports = u32::try_from(self.subports.len()).unwrap_or(1);
        let subport = u32::from(headers.outer_vlan) & (subports - 1);
        let queues = &self.subports[subport as usize];
        let [.., first, _, _, last] = match headers.ip_version {
            IpVersion::V4 => headers.destination.to_be_bytes(),
            IpVersion::V6 | IpVersion::None => [0; 16],
        };
        let queue = usize::from(last) % queues.with_size.len().max(1);
        HqosPlace {
            subport,
            pipe: u32::from(headers.inner_vlan) & (queues.pipes - 1),
            queue: u32::from(queues.with_size[queue]),
            colour: u32::from(first & 3).min(RED),
        }
    }
}
