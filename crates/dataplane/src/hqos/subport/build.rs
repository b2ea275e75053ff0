//! A subport from its parameters.

use super::{Drops, GRINDERS, NONE, Pipe, Profile, Subport};
use crate::hqos::active::ActiveQueues;
use crate::hqos::credits::{Credits, Oversubscription};
use crate::hqos::place::{PIPE_QUEUES, class_of};
use crate::hqos::queues::Queues;
use crate::hqos::red::Red;
use slicewise_model::HqosParams;
use slicewise_model::hqos::{
    BEST_EFFORT, BEST_EFFORT_QUEUES, HqosCredits, HqosPipeParams, HqosSubportParams, QUEUES,
    TRAFFIC_CLASSES,
};

impl Subport {
    pub(in crate::hqos) fn new(port: &HqosParams, params: &HqosSubportParams) -> Self {
        let pipes = params.pipes as usize;
        let mut subport = Self {
            params: params.credits,
            credits: Credits::new(&params.credits),
            oversubscription: Oversubscription::new(0, 0, false),
            overhead: port.frame_overhead,
            profiles: Box::default(),
            profile_of: vec![0; pipes].into(),
            pipes: vec![Pipe::UNASSIGNED; pipes].into(),
            queues: Queues::of_pipes(pipes),
            drops: vec![Drops::default(); pipes * QUEUES].into(),
            always_fits: 0,
            largest_cost: 0,
            sizes: std::array::from_fn(|queue| u32::from(params.queue_sizes[class_of(queue)])),
            red: port.red.as_ref().map(|red| Red::new(red, pipes * QUEUES)),
            active: ActiveQueues::new(params.pipes * PIPE_QUEUES),
            grinders: Default::default(),
            groups: [NONE; GRINDERS],
            busy: 0,
            pipe_loop: NONE,
            is_exhausted: false,
        };
        subport.assign(port, params);
        subport
    }

    /// Give pipes their profiles.
    fn assign(&mut self, port: &HqosParams, params: &HqosSubportParams) {
        let mut offered = 0.0;
        let mut ranges = params.assigned.clone();
        ranges.sort_by_key(|range| range.first);
        let best_effort = port.pipe_profiles.iter().map(|pipe| pipe.best_effort_rate);
        // The library takes the period for milliseconds, but it is in bytes.
        let most = best_effort.max().unwrap_or(0);
        let watermark = params.credits.tc_period.wrapping_mul(most) / 1000;
        for range in ranges {
            let profile = &port.pipe_profiles[range.profile as usize];
            for pipe in range.first..=range.last {
                self.profile_of[pipe as usize] = range.profile.to_le_bytes()[0];
                self.pipes[pipe as usize] = Pipe {
                    credits: Credits::new(&profile.credits),
                    oversubscription_credits: watermark,
                    ..Pipe::UNASSIGNED
                };
                offered += best_effort_share(&profile.credits);
            }
        }
        let is_on = offered > best_effort_share(&params.credits);
        let min = u64::from(port.mtu);
        self.oversubscription = Oversubscription::new(min, watermark, is_on);
        let profiles = port.pipe_profiles.iter();
        self.profiles = profiles
            .map(|params| Profile {
                params: *params,
                longest: self.longest(params),
            })
            .collect();
        let longest = self.profiles.iter().flat_map(|profile| {
            let classes = profile.longest.into_iter().zip(params.queue_sizes);
            classes.filter_map(|(longest, size)| (size > 0).then_some(longest))
        });
        self.always_fits = longest.min().unwrap_or(0);
    }

    /// The most that a frame of each class in a pipe can cost and ever leave.
    fn longest(&self, pipe: &HqosPipeParams) -> [u64; TRAFFIC_CLASSES] {
        let over = self
            .oversubscription
            .most_credits(pipe.oversubscription_weight);
        std::array::from_fn(|class| {
            let both = [&self.params, &pipe.credits];
            let limits =
                both.map(|credits| credits.tb_size.min(credits.tc_credits_per_period[class]));
            let longest = limits[0].min(limits[1]);
            if class == BEST_EFFORT {
                longest.min(over)
            } else {
                longest
            }
        })
    }
}

impl Pipe {
    const UNASSIGNED: Self = Self {
        credits: Credits::none(),
        oversubscription_credits: 0,
        tokens: [0; BEST_EFFORT_QUEUES],
        period: 0,
    };
}

/// The part of the port's rate that best effort may have, in the precision of the library.
fn best_effort_share(credits: &HqosCredits) -> f64 {
    credits.tc_credits_per_period[BEST_EFFORT] as f64 / credits.tc_period as f64
}
