//! When a subport in which no frame may leave has to be asked again. The library is asked all the time.

use super::{BEST_EFFORT, FramePool, QUEUES, RoundRobin, Step, Subport, class_of};
use crate::hqos::place::{FIRST_BEST_EFFORT, PIPE_QUEUES};

impl Subport {
    /// The time of the port at which to call again after a call that sent nothing: a frame may leave then, or the period of
    /// traffic classes ends that a visit would renew. Not after `time` means now.
    pub(in crate::hqos) fn next_time(&self, pool: &FramePool, time: u64) -> u64 {
        let mut next = u64::MAX;
        for grinder in &self.grinders {
            if matches!(grinder.step, Step::Fetch | Step::Send) {
                let queue = grinder.first + u32::from(grinder.chosen);
                next = next.min(self.head_leaves_at(queue, pool));
            }
        }
        for (first, bits) in self.active.groups() {
            next = next.min(self.credits.period_end());
            let mut rest = bits;
            while rest != 0 && next > time {
                let queue = first + rest.trailing_zeros();
                let number = queue / PIPE_QUEUES;
                let pipe = &self.pipes[number as usize];
                next = next.min(pipe.credits.period_end());
                let mut head = queue;
                rest &= rest - 1;
                if class_of(queue as usize % QUEUES) == BEST_EFFORT {
                    let best_effort = number * PIPE_QUEUES + FIRST_BEST_EFFORT;
                    let queues = (bits >> (best_effort - first)).to_le_bytes()[0] & 15;
                    let chosen = RoundRobin::load(pipe.tokens, queues).choose();
                    head = best_effort + u32::from(chosen);
                    rest &= !(15 << (best_effort - first));
                }
                next = next.min(self.head_leaves_at(head, pool));
            }
            if next <= time {
                break;
            }
        }
        next
    }

    /// The time of the port at which credits suffice for the first frame of a queue, if none are spent until then.
    fn head_leaves_at(&self, queue: u32, pool: &FramePool) -> u64 {
        let Some(lengths) = pool.lengths(self.queues[queue].head) else {
            return u64::MAX;
        };
        let cost = u64::from(lengths.l2_bytes) + u64::from(self.overhead);
        let class = class_of(queue as usize % QUEUES);
        let pipe = &self.pipes[queue as usize / QUEUES];
        let params = &self.profile(queue / PIPE_QUEUES).params.credits;
        let own = pipe.credits.suffice_at(params, class, cost);
        let common = self.credits.suffice_at(&self.params, class, cost);
        let has_period = pipe.period == self.oversubscription.period();
        if class == BEST_EFFORT && cost > pipe.oversubscription_credits && has_period {
            return own.max(common).max(self.credits.period_end());
        }
        own.max(common)
    }
}
