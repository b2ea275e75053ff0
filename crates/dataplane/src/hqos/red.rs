//! Random early detection as the library computes it (`rte_red.h`): an average in fixed point with 10 + n bits of
//! fraction, where n is the weight of the curve.

use crate::frame::DropReason;
use slicewise_model::hqos::{HqosRed, HqosRedCurve};

/// Bits of fraction.
const SCALING: u32 = 10;
/// Bytes of port time that a small packet is taken to last while a queue is idle.
const IDLE_STEP: u64 = 1 << 22;
/// -log2(1 - 2^-n) for the weights n from 1 to 12, times 1024.
const DECAY: [u32; 12] = [1024, 425, 197, 95, 47, 23, 12, 6, 3, 1, 1, 1];
/// 2^-(n/16), times 1024.
const POWERS: [u32; 16] = [
    1024, 981, 939, 899, 861, 825, 790, 756, 724, 693, 664, 636, 609, 583, 558, 535,
];

/// Early detection of the queues of a subport.
#[derive(Debug)]
pub(super) struct Red {
    curves: HqosRed,
    queues: Box<[Average]>,
}

/// The average of a queue.
#[derive(Debug, Clone, Copy, Default)]
struct Average {
    /// With the fraction.
    packets: u32,
    /// Packets since the last drop.
    count: u32,
    /// When the queue became empty.
    empty_at: u64,
}

/// The library's random numbers. One is used until a packet is dropped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random {
    seed: u32,
    value: u32,
}

impl Random {
    /// Of the seed, the low 32 bits count.
    pub(super) fn new(seed: u64) -> Self {
        let [a, b, c, d, ..] = seed.to_le_bytes();
        let seed = u32::from_le_bytes([a, b, c, d]);
        let mut random = Self { seed, value: 0 };
        random.next();
        random
    }

    fn next(&mut self) {
        self.seed = self.seed.wrapping_mul(214_013).wrapping_add(2_531_011);
        self.value = self.seed >> 10;
    }
}

impl Red {
    pub(super) fn new(curves: &HqosRed, queues: usize) -> Self {
        Self {
            curves: curves.clone(),
            queues: vec![Average::default(); queues].into(),
        }
    }

    /// A packet arrives at a queue of a class in which `waiting` packets wait.
    ///
    /// # Errors
    /// The reason to drop it.
    pub(super) fn on_arrival(
        &mut self,
        queue: usize,
        (class, colour): (usize, usize),
        waiting: u32,
        (time, random): (u64, &mut Random),
    ) -> Result<(), DropReason> {
        let (Some(curve), average) = (&self.curves[class][colour], &mut self.queues[queue]) else {
            return Ok(());
        };
        let weight = u32::from(curve.weight);
        if waiting == 0 {
            average.count = average.count.wrapping_add(1);
            let steps = time.saturating_sub(average.empty_at) / IDLE_STEP;
            average.packets = (average.packets >> SCALING).wrapping_mul(decayed(weight, steps));
            return Ok(());
        }
        average.packets = average
            .packets
            .wrapping_add(waiting << SCALING)
            .wrapping_sub(average.packets >> weight);
        let scaled = |packets: u16| u32::from(packets) << (weight + SCALING);
        if average.packets >= scaled(curve.max_packets) {
            average.count = 0;
            return Err(DropReason::RedForced);
        }
        if average.packets >= scaled(curve.min_packets) && is_dropped(curve, *average, random) {
            average.count = 0;
            return Err(DropReason::RedEarly);
        }
        average.count = average.count.wrapping_add(1);
        Ok(())
    }

    pub(super) fn state_bytes(&self) -> usize {
        size_of_val(&*self.curves) + size_of_val(&*self.queues)
    }

    /// A queue has become empty.
    pub(super) fn on_empty(&mut self, queue: usize, time: u64) {
        self.queues[queue].empty_at = time;
    }
}

/// 1024 × (1 - 2^-weight)^steps.
fn decayed(weight: u32, steps: u64) -> u32 {
    let (Ok(steps), Some(decay)) = (u16::try_from(steps), DECAY.get(weight as usize - 1)) else {
        return 0;
    };
    let exponent = u32::from(steps) * decay;
    let power = POWERS[(exponent >> 6 & 15) as usize];
    match exponent >> SCALING {
        0 => power,
        shift @ 1..SCALING => (power + (1 << (shift - 1))) >> shift,
        _ => 0,
    }
}

/// Between the thresholds: with a probability that rises with the average, and with the packets since the last drop.
fn is_dropped(curve: &HqosRedCurve, average: Average, random: &mut Random) -> bool {
    let weight = u32::from(curve.weight);
    let min = u32::from(curve.min_packets) << (weight + SCALING);
    let range = u32::from(curve.max_packets - curve.min_packets);
    let whole = (2 * range * u32::from(curve.inverse_probability)) << SCALING;
    let part = (average.packets - min) >> weight;
    let counted = average.count.wrapping_mul(part);
    if whole <= counted {
        return true;
    }
    let is_dropped = random.value % (whole - counted) < part;
    if is_dropped {
        random.next();
    }
    is_dropped
}

#[cfg(test)]
mod tests {
    use super::{HqosRedCurve, IDLE_STEP, Random, Red, SCALING};
    use slicewise_model::hqos::TRAFFIC_CLASSES;

    #[test]
    fn the_average_decays_from_the_time_at_which_the_queue_became_empty() {
        let curve = HqosRedCurve {
            min_packets: 32,
            max_packets: 64,
            inverse_probability: 10,
            weight: 1,
        };
        let mut red = Red::new(&Box::new([[Some(curve); 3]; TRAFFIC_CLASSES]), 1);
        let mut random = Random::new(1);
        for _ in 0..20 {
            red.on_arrival(0, (0, 0), 16, (0, &mut random)).unwrap();
        }
        // With one bit for the weight beside the fraction.
        let average = red.queues[0].packets >> SCALING;
        assert_eq!(average, 32);
        let empty_at = 5 * IDLE_STEP;
        red.on_empty(0, empty_at);
        let now = empty_at + 2 * IDLE_STEP;
        red.on_arrival(0, (0, 0), 0, (now, &mut random)).unwrap();
        assert_eq!(red.queues[0].packets, average << SCALING >> 2);
    }
}
