//! The delays of a set of guarantees, chosen together.
//!
//! Stated delays are reserved first. The other guarantees follow in the order of their defaults, each with its default or the smallest
//! delay that fits beside those before. If that leaves no room for one of them, all begin with the latest deadline instead and are
//! lowered in the same order: no set is refused that fits, and its order does not matter. What has to be refused is what does not fit
//! beside those before it.

use super::choice::choose;
use super::{Admission, GuaranteeParams, GuaranteeRequest, Refusal, Reservations};
use slicewise_units::Duration;

/// Some equal slices of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetMember {
    /// The guarantee that each asks for.
    pub request: GuaranteeRequest,
    /// How many there are.
    pub count: u64,
    /// The delay that they had before: where none is stated, they keep it while it fits.
    pub kept: Option<Duration>,
}

impl From<GuaranteeRequest> for SetMember {
    /// One slice that had no guarantee before.
    fn from(request: GuaranteeRequest) -> Self {
        Self {
            request,
            count: 1,
            kept: None,
        }
    }
}

/// The delay of each member, or why it is refused.
type Answers = Vec<Result<Duration, Refusal>>;

impl Admission {
    /// Admit the members of a set, each with all its slices, or refuse them.
    pub fn try_admit_set(&mut self, set: &[SetMember]) -> Vec<Result<GuaranteeParams, Refusal>> {
        admit(std::slice::from_mut(self), set)
    }
}

impl Reservations {
    /// As [`Admission::try_admit_set`], on every link or on none.
    pub fn try_admit_set(&mut self, set: &[SetMember]) -> Vec<Result<GuaranteeParams, Refusal>> {
        admit(&mut self.admissions, set)
    }
}

fn admit(links: &mut [Admission], set: &[SetMember]) -> Vec<Result<GuaranteeParams, Refusal>> {
    let before = links.to_vec();
    let mut answers = one_by_one(links, set, &in_order_of_defaults(links, set));
    if answers.iter().any(Result::is_err) {
        let [preferred, smallest] = [false, true].map(|smallest| lowered(&before, set, smallest));
        links.clone_from_slice(&before);
        answers = match preferred.or(smallest) {
            Some(answers) => {
                for (member, delay) in set.iter().zip(&answers) {
                    delay.iter().for_each(|delay| member.admit(links, *delay));
                }
                answers
            }
            None => one_by_one(links, set, &Vec::from_iter(0..set.len())),
        };
    }
    let answers = set.iter().zip(answers);
    answers
        .map(|(member, delay)| delay.map(|delay| member.request.with_delay(delay)))
        .collect()
}

/// Stated delays first; the others by their default, whatever their order in the set.
fn in_order_of_defaults(links: &[Admission], set: &[SetMember]) -> Vec<usize> {
    let mut order = Vec::from_iter(0..set.len());
    order.sort_by_key(|&index| {
        let SetMember { request, count, .. } = set[index];
        let unstated = links.first().filter(|_| request.delay.is_none());
        let amounts = (request.rate, request.burst, request.smallest_frame, count);
        unstated.map(|link| (request.default_delay(link.params.delays), amounts))
    });
    order
}

/// Each in this order, beside those before it.
fn one_by_one(links: &mut [Admission], set: &[SetMember], order: &[usize]) -> Answers {
    let mut answers = Vec::from_iter(set.iter().map(|_| Ok(Duration::ZERO)));
    for &index in order {
        let member = &set[index];
        let chosen = choose(links, &member.request, member.count, member.kept);
        chosen.iter().for_each(|delay| member.admit(links, *delay));
        answers[index] = chosen;
    }
    answers
}

/// All that fits with the latest deadline, then each with its preferred delay, or with the smallest. `None` if the buffer is too small.
fn lowered(before: &[Admission], set: &[SetMember], smallest: bool) -> Option<Answers> {
    // A longer delay needs more of the buffer: that is tested at the end.
    let mut links: Vec<Admission> = before.iter().map(Admission::without_buffer).collect();
    let mut answers = Answers::new();
    for member in set {
        let late = choose(&links, &member.request, member.count, None);
        let late = late.map(|delay| match (member.request.delay, links.first()) {
            (None, Some(link)) => link.params.delays.latest(),
            _ => delay,
        });
        late.iter()
            .for_each(|delay| member.admit(&mut links, *delay));
        answers.push(late);
    }
    for index in in_order_of_defaults(&links, set) {
        let member = &set[index];
        let Ok(delay) = &mut answers[index] else {
            continue;
        };
        if member.request.delay.is_some() {
            continue;
        }
        member.release(&mut links, *delay);
        let SetMember {
            request,
            count,
            kept,
        } = member;
        let chosen = if smallest {
            let latest = *delay;
            let each = links
                .iter()
                .map(|link| link.smallest_within(request, *count, latest));
            each.max().flatten()
        } else {
            choose(&links, request, *count, *kept).ok()
        };
        // With the latest deadline it fitted.
        *delay = chosen.unwrap_or(*delay);
        member.admit(&mut links, *delay);
    }
    let mut both = before.iter().zip(&links);
    let has_room = both.all(|(before, link)| match before.params.buffer {
        None => true,
        Some(_) => link.fits_buffer_of(before) && answers.iter().all(Result::is_ok),
    });
    has_room.then_some(answers)
}

impl SetMember {
    fn admit(&self, links: &mut [Admission], delay: Duration) {
        for link in links {
            let load = link.load(&self.request.with_delay(delay), self.count);
            link.add(&load);
        }
    }

    fn release(&self, links: &mut [Admission], delay: Duration) {
        for link in links {
            let load = link.load(&self.request.with_delay(delay), self.count);
            link.subtract(&load);
        }
    }
}
