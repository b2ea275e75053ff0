//! Effects of an impaired link on frames: loss, bit errors, varying delay.
//!
//! Loss follows the two-state channel of E. N. Gilbert ("Capacity of a burst-noise channel", Bell System
//! Technical Journal 39, 1960) and E. O. Elliott ("Estimates of error rates for codes on burst-noise channels", Bell
//! System Technical Journal 42, 1963), whose state may change with each frame, as in Linux's netem.
//!
//! Every flow has its own channel and random numbers. The losses of a flow therefore do not depend on the
//! traffic of others, under any policy: an impairment never looks like the influence of one slice on another.

use crate::packet::Packet;
use slicewise_study::{DelayDistribution, DelayVariationParams, ImpairmentParams, LossParams};
use slicewise_traffic::Random;
use slicewise_units::{Duration, Instant};
use std::ops::Add;

/// Streams of a source's seed that sources themselves draw from; those of links come after.
const SOURCE_STREAMS: u64 = 2;
/// Streams for each link: loss, bit errors, delay.
const LINK_STREAMS: u64 = 3;
/// Bytes of an Ethernet frame in which bit errors are detected: at least 60, plus the FCS.
const SHORTEST_BYTES: u32 = 60;
const FCS_BYTES: u32 = 4;

/// Impairments of one direction of a link.
#[derive(Debug, Clone)]
pub struct Impairments {
    params: ImpairmentParams,
    channels: Vec<Channel>,
}

/// The state of the link for one flow.
#[derive(Debug, Clone)]
struct Channel {
    is_bad: bool,
    loss: Random,
    bit_errors: Random,
    delay: Random,
    /// When the last frame is delivered.
    last_at: Instant,
    lost: Lost,
}

/// Frames that a link lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Lost without a bit error.
    pub at_random: u64,
    /// Lost because of a bit error.
    pub by_bit_errors: u64,
}

impl Add for Lost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            at_random: self.at_random + other.at_random,
            by_bit_errors: self.by_bit_errors + other.by_bit_errors,
        }
    }
}

impl Impairments {
    /// Of link number `link` on the way, for a flow of each seed.
    #[must_use]
    pub fn new(params: ImpairmentParams, seeds: impl Iterator<Item = u64>, link: u64) -> Self {
        let first = SOURCE_STREAMS + LINK_STREAMS * link;
        let channel = |seed| {
            let [mut loss, bit_errors, delay] =
                [0, 1, 2].map(|stream| Random::stream(seed, first + stream));
            // As if it had been in use for long, so that the first frames lose no less than others.
            let is_bad = params.loss.is_some_and(|params| {
                let all = u64::from(params.to_bad_ppm) + u64::from(params.to_good_ppm);
                loss.below(all) < u64::from(params.to_bad_ppm)
            });
            Channel {
                is_bad,
                loss,
                bit_errors,
                delay,
                last_at: Instant::ZERO,
                lost: Lost::default(),
            }
        };
        Self {
            params,
            channels: seeds.map(channel).collect(),
        }
    }

    /// When a frame is delivered that would arrive at `at` without impairment; `None` if it is lost.
    pub(crate) fn on_frame(&mut self, packet: &Packet, at: Instant) -> Option<Instant> {
        let params = &self.params;
        let channel = self.channels.get_mut(usize::from(packet.flow))?;
        // A frame draws from every stream, so that none depends on what another impairment does.
        let is_lost = params.loss.is_some_and(|loss| channel.loses(&loss));
        let has_error = params.bit_errors_per_1e15 > 0 && {
            let probability = error_probability(params.bit_errors_per_1e15, packet.l2_bytes);
            channel.bit_errors.chance(probability)
        };
        let late = params.delay_variation.map(|variation| {
            let late = later_by(&variation, &mut channel.delay);
            (late, variation.reorder)
        });
        if is_lost {
            channel.lost.at_random += 1;
            return None;
        }
        if has_error {
            channel.lost.by_bit_errors += 1;
            return None;
        }
        let Some((late, reorder)) = late else {
            return Some(at);
        };
        let mut at = at.saturating_add(late);
        if !reorder {
            at = at.max(channel.last_at);
            channel.last_at = at;
        }
        Some(at)
    }

    /// Returns true if frames may be delivered in another order than they were sent.
    pub(crate) fn varies_delay(&self) -> bool {
        self.params.delay_variation.is_some()
    }

    /// Losses of each flow.
    pub fn lost(&self) -> impl Iterator<Item = Lost> {
        self.channels.iter().map(|channel| channel.lost)
    }
}

impl Channel {
    /// Returns true if the next frame is lost; then the state may change.
    fn loses(&mut self, params: &LossParams) -> bool {
        let (lost_ppm, change_ppm) = if self.is_bad {
            (params.in_bad_ppm, params.to_good_ppm)
        } else {
            (params.in_good_ppm, params.to_bad_ppm)
        };
        let [is_lost, changes] =
            [lost_ppm, change_ppm].map(|ppm| self.loss.below(1_000_000) < u64::from(ppm));
        self.is_bad ^= changes;
        is_lost
    }
}

/// The probability that one bit or more of a frame is wrong: 1 − (1 − ratio)^bits.
///
/// Computed in software, because the last bit of a platform's functions may differ from another's.
#[expect(clippy::cast_precision_loss, reason = "a probability")]
fn error_probability(per_1e15: u64, l2_bytes: u32) -> f64 {
    let bytes = l2_bytes.max(SHORTEST_BYTES) + FCS_BYTES;
    let ratio = per_1e15 as f64 * 1e-15;
    -libm::expm1(f64::from(bytes) * 8.0 * libm::log1p(-ratio))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the width, which is not negative"
)]
fn later_by(params: &DelayVariationParams, random: &mut Random) -> Duration {
    let width = params.up_to.nanos();
    let nanos = match params.distribution {
        DelayDistribution::Uniform => random.below(width.saturating_add(1)),
        DelayDistribution::Normal => loop {
            // One draw in 370 is beyond an end, and drawn again.
            let part = 0.5 + random.normal() / 6.0;
            if (0.0..=1.0).contains(&part) {
                break libm::round(part * width as f64) as u64;
            }
        },
    };
    Duration::from_nanos(nanos)
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "statistics")]
mod tests {
    use super::*;
    use slicewise_wire::TrafficClass;

    fn packet(flow: u16, l2_bytes: u32) -> Packet {
        Packet {
            sent_at: Instant::ZERO,
            queued_at: Instant::ZERO,
            sequence: 0,
            l2_bytes,
            flow,
            l3_offset: 14,
            traffic_class: TrafficClass::DEFAULT,
        }
    }

    /// Which of so many frames of 1,000 bytes a link loses.
    fn losses(params: ImpairmentParams, seed: u64, frames: usize) -> Vec<bool> {
        let mut link = Impairments::new(params, std::iter::once(seed), 0);
        (0..frames)
            .map(|_| link.on_frame(&packet(0, 1_000), Instant::ZERO).is_none())
            .collect()
    }

    fn of_loss(loss: LossParams) -> ImpairmentParams {
        ImpairmentParams {
            loss: Some(loss),
            ..ImpairmentParams::default()
        }
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn independent_loss_has_its_share_and_no_memory_for_20_seeds() {
        for seed in 0..20 {
            let losses = losses(of_loss(LossParams::independent(20_000)), seed, 100_000);
            let deviation = (0.02f64 * 0.98 / 1e5).sqrt();
            assert!((share(&losses) - 0.02).abs() < 4.4 * deviation);
            let after_one = losses.windows(2).filter(|pair| pair[0]);
            let again: Vec<bool> = after_one.map(|pair| pair[1]).collect();
            let deviation = (0.02f64 * 0.98 / again.len() as f64).sqrt();
            assert!((share(&again) - 0.02).abs() < 4.4 * deviation);
        }
    }

    /// Lengths of the runs of losses.
    fn bursts(losses: &[bool]) -> Vec<f64> {
        let runs = losses.chunk_by(|one, other| one == other);
        runs.filter(|run| run[0])
            .map(|run| run.len() as f64)
            .collect()
    }

    /// A Gilbert channel loses p / (p + r) of its frames, in bursts of 1 / r on average, whose lengths are
    /// geometric.
    #[test]
    fn bursty_loss_has_its_mean_and_the_length_of_its_bursts() {
        let loss = LossParams {
            to_bad_ppm: 2_500,
            to_good_ppm: 250_000,
            in_good_ppm: 0,
            in_bad_ppm: 1_000_000,
        };
        let exact = 2_500.0 / 252_500.0;
        assert!((loss.mean() - exact).abs() < 1e-12);
        let all: Vec<bool> = (0..20)
            .flat_map(|seed| losses(of_loss(loss), seed, 200_000))
            .collect();
        let bursts = bursts(&all);
        let mean = bursts.iter().sum::<f64>() / bursts.len() as f64;
        // A geometric length of mean 4 has the variance 12.
        let deviation = (12.0 / bursts.len() as f64).sqrt();
        assert!((mean - 4.0).abs() < 4.4 * deviation, "{mean}");
        // Successive frames are correlated by 1 − p − r, which widens the variance of the share.
        let correlation = 1.0 - 0.2525;
        let widened = exact * (1.0 - exact) * (1.0 + correlation) / (1.0 - correlation);
        let deviation = (widened / all.len() as f64).sqrt();
        assert!(
            (share(&all) - exact).abs() < 4.4 * deviation,
            "{}",
            share(&all)
        );
    }

    #[test]
    fn each_state_of_the_channel_loses_its_own_share() {
        let loss = LossParams {
            to_bad_ppm: 100_000,
            to_good_ppm: 300_000,
            in_good_ppm: 10_000,
            in_bad_ppm: 500_000,
        };
        let exact = 0.75 * 0.01 + 0.25 * 0.5;
        assert!((loss.mean() - exact).abs() < 1e-12);
        let all: Vec<bool> = (0..20)
            .flat_map(|seed| losses(of_loss(loss), seed, 50_000))
            .collect();
        // At most four times the variance of independent losses: the correlation of states is 0.6.
        let deviation = (4.0 * exact * (1.0 - exact) / all.len() as f64).sqrt();
        assert!(
            (share(&all) - exact).abs() < 4.4 * deviation,
            "{}",
            share(&all)
        );
    }

    /// A channel that starts in its good state would lose none of its first frames.
    #[test]
    fn the_first_frame_is_lost_as_often_as_any() {
        let loss = LossParams {
            to_bad_ppm: 1_000,
            to_good_ppm: 1_000,
            in_good_ppm: 0,
            in_bad_ppm: 1_000_000,
        };
        let firsts: Vec<bool> = (0..2_000)
            .map(|seed| losses(of_loss(loss), seed, 1)[0])
            .collect();
        assert!((share(&firsts) - 0.5).abs() < 4.4 * 0.5 / 2_000f64.sqrt());
    }

    #[test]
    fn long_frames_have_bit_errors_more_often() {
        // A frame of 1,496 bytes and its FCS are 12,000 bits.
        let probability = error_probability(10_000_000_000, 1_496);
        assert!((probability - (1.0 - (-12_000.0 * 1e-5f64).exp())).abs() < 1e-6);
        // A short frame is padded to 64 bytes.
        assert!((error_probability(1, 20) / 512e-15 - 1.0).abs() < 1e-9);
        let params = ImpairmentParams {
            bit_errors_per_1e15: 10_000_000_000,
            ..ImpairmentParams::default()
        };
        let exact = error_probability(10_000_000_000, 1_000);
        for seed in 0..20 {
            let deviation = (exact * (1.0 - exact) / 1e5).sqrt();
            let share = share(&losses(params, seed, 100_000));
            assert!((share - exact).abs() < 4.4 * deviation, "{share} {exact}");
        }
    }

    #[test]
    fn a_flow_loses_the_same_frames_whatever_others_send() {
        let params = of_loss(LossParams::independent(100_000));
        let alone = |link| {
            let mut link = Impairments::new(params, std::iter::once(7), link);
            (0..1_000)
                .map(|_| link.on_frame(&packet(0, 60), Instant::ZERO).is_none())
                .collect::<Vec<bool>>()
        };
        let mut link = Impairments::new(params, [7, 8].into_iter(), 1);
        let beside: Vec<bool> = (0..1_000)
            .map(|frame| {
                for _ in 0..frame % 3 {
                    link.on_frame(&packet(1, 60), Instant::ZERO);
                }
                link.on_frame(&packet(0, 60), Instant::ZERO).is_none()
            })
            .collect();
        assert_eq!(alone(1), beside);
        assert_ne!(alone(1), alone(0), "the other link has numbers of its own");
    }

    /// Delays, us, of frames sent every microsecond.
    fn delays(distribution: DelayDistribution, reorder: bool) -> Vec<f64> {
        let params = ImpairmentParams {
            delay_variation: Some(DelayVariationParams {
                up_to: Duration::from_micros(600),
                distribution,
                reorder,
            }),
            ..ImpairmentParams::default()
        };
        let mut link = Impairments::new(params, std::iter::once(3), 0);
        (0..100_000u64)
            .map(|frame| {
                let sent = Instant::from_nanos(frame * 1_000);
                let at = link.on_frame(&packet(0, 60), sent).unwrap();
                at.saturating_since(sent).nanos() as f64 / 1e3
            })
            .collect()
    }

    #[test]
    fn delay_varies_as_its_distribution_says() {
        for (distribution, variance) in [
            (DelayDistribution::Uniform, 600.0 * 600.0 / 12.0),
            // Of a normal one cut off at three standard deviations: 0.9733 of that of the whole.
            (DelayDistribution::Normal, 0.9733 * 100.0 * 100.0),
        ] {
            let delays = delays(distribution, true);
            assert!(delays.iter().all(|delay| (0.0..=600.0).contains(delay)));
            let mean = delays.iter().sum::<f64>() / 1e5;
            assert!(
                (mean - 300.0).abs() < 4.4 * (variance / 1e5f64).sqrt(),
                "{mean}"
            );
            let measured = delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 1e5;
            assert!(
                (measured / variance - 1.0).abs() < 0.02,
                "{measured} {variance}"
            );
        }
    }

    #[test]
    fn frames_of_a_flow_stay_in_order_unless_they_may_overtake() {
        for (reorder, in_order) in [(false, true), (true, false)] {
            let delays = delays(DelayDistribution::Uniform, reorder);
            let arrivals: Vec<f64> = (0u32..)
                .zip(&delays)
                .map(|(n, d)| f64::from(n) + d)
                .collect();
            assert_eq!(arrivals.is_sorted(), in_order);
            assert!(delays.iter().all(|delay| (0.0..=600.0).contains(delay)));
        }
    }
}
