//! Excess is shared by weight to within the bound of `docs/mechanisms/guaranteed.md`, over every interval.

use super::rig::{LARGEST_FRAME, Rig, arrival, best_effort, guaranteed, params};
use proptest::prelude::*;
use slicewise_dataplane::guaranteed::SliceId;
use slicewise_model::SliceParams;
use slicewise_units::{Duration, Instant};

const LINK: u64 = 1_000_000_000;

/// Members of one level that take turns without pause, slices or tenants. Checks the bound for each pair of them over every
/// interval in which both keep their weights.
struct Shares {
    members: Vec<Member>,
    /// Smallest weight of all that take turns.
    lightest: u64,
    pairs: Vec<Pair>,
}

struct Member {
    weight: u64,
    bytes: u64,
    progress: Progress,
}

/// How far a member is from a turn that its weight decided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Its weight changed, or it has not sent yet.
    Changed,
    /// It sent: its old turn has begun.
    Sent,
    /// Another sent since: its old turn is over.
    Over,
    /// It sent again.
    Settled,
}

struct Pair {
    members: [usize; 2],
    /// Bytes of both when the first interval began.
    start: Option<[u64; 2]>,
    /// Least and largest difference since then, times both weights.
    range: [i128; 2],
}

impl Shares {
    fn new(weights: &[u32], others: &[u32]) -> Self {
        let members = weights.iter().map(|&weight| Member {
            weight: weight.into(),
            bytes: 0,
            progress: Progress::Changed,
        });
        let pairs = (0..weights.len()).flat_map(|one| {
            (one + 1..weights.len()).map(move |other| Pair {
                members: [one, other],
                start: None,
                range: [0; 2],
            })
        });
        let lightest = weights.iter().chain(others).min();
        Self {
            members: members.collect(),
            lightest: u64::from(*lightest.unwrap()),
            pairs: pairs.collect(),
        }
    }

    fn change_weight(&mut self, member: usize, weight: u32) {
        self.members[member].weight = weight.into();
        self.members[member].progress = Progress::Changed;
        self.lightest = self.lightest.min(weight.into());
        for pair in &mut self.pairs {
            if pair.members.contains(&member) {
                pair.start = None;
            }
        }
    }

    /// A frame of `sender` was sent as excess.
    fn on_sent(&mut self, sender: usize, bytes: u64) {
        for (number, member) in self.members.iter_mut().enumerate() {
            member.progress = match (member.progress, number == sender) {
                (Progress::Changed, true) => Progress::Sent,
                (Progress::Sent, false) => Progress::Over,
                (Progress::Over, true) => Progress::Settled,
                (progress, _) => progress,
            };
        }
        self.members[sender].bytes += bytes;
        for pair in &mut self.pairs {
            let [one, other] = pair.members.map(|member| &self.members[member]);
            if [one, other].map(|member| member.progress) != [Progress::Settled; 2] {
                continue;
            }
            let sent = [one.bytes, other.bytes];
            let Some(start) = pair.start else {
                (pair.start, pair.range) = (Some(sent), [0; 2]);
                continue;
            };
            let [one_sent, other_sent] = [0, 1].map(|n| i128::from(sent[n] - start[n]));
            let [one, other, lightest] = [one.weight, other.weight, self.lightest].map(i128::from);
            let difference = one_sent * other - other_sent * one;
            pair.range[0] = pair.range[0].min(difference);
            pair.range[1] = pair.range[1].max(difference);
            let bound = i128::from(LARGEST_FRAME) * (2 * one * other + (one + other) * lightest);
            assert!(
                (pair.range[1] - pair.range[0]) * lightest < bound,
                "{:?} of weights {one} and {other} beside {lightest}: {:?}",
                pair.members,
                pair.range
            );
        }
    }
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![
        1..=4u32,
        1..=64u32,
        1..=65_535u32,
        prop::sample::select(vec![1, 32_767, 32_768, 65_535]),
    ]
}

fn with_weight(slice: SliceParams, weight: u32) -> SliceParams {
    SliceParams { weight, ..slice }
}

/// A slice of a given weight, perhaps with a guarantee of a few percent of the link.
fn slice(weight: u32, has_guarantee: bool) -> SliceParams {
    if has_guarantee {
        let small = guaranteed(30_000_000, LARGEST_FRAME, Duration::from_millis(20));
        return with_weight(small, weight);
    }
    best_effort(weight)
}

/// Slices that always have frames, and others that come and go.
struct Contention {
    rig: Rig,
    /// The first of them always have frames.
    slices: Vec<SliceParams>,
    busy: usize,
    /// How many sent frames were seen.
    seen: usize,
}

impl Contention {
    fn new(tenants: &[u32], busy: &[SliceParams], others: &[SliceParams]) -> Self {
        let slices = [busy, others].concat();
        Self {
            rig: Rig::new(&params(tenants), &slices, LINK),
            busy: busy.len(),
            slices,
            seen: 0,
        }
    }

    fn now(&self) -> u64 {
        self.rig.link.free_at().nanos()
    }

    fn arrive(&mut self, slice: usize, bytes: u64) {
        let arrival = arrival(self.now(), slice as u32, bytes);
        self.rig.arrive(arrival).unwrap();
    }

    /// Send a frame; `size` is that of the frames that arrive before. Returns the slices and bytes of those sent as excess.
    fn send(&mut self, size: u64) -> Vec<(usize, u64)> {
        for slice in 0..self.busy {
            while self.rig.scheduler.slice_backlog(SliceId::new(slice as u32)) < 3 {
                self.arrive(slice, size);
            }
        }
        let now = self.now();
        self.rig.send_until(now + 1);
        let sent = &self.rig.sent[self.seen..];
        let excess = sent.iter().filter(|sent| !sent.guaranteed);
        let excess = excess
            .map(|sent| (sent.slice as usize, sent.bytes))
            .collect();
        self.seen = self.rig.sent.len();
        excess
    }

    fn change_weight(&mut self, slice: usize, weight: u32) {
        self.slices[slice].weight = weight;
        let (id, now) = (SliceId::new(slice as u32), Instant::from_nanos(self.now()));
        let params = self.slices[slice];
        self.rig
            .scheduler
            .change_slice(id, &params, &self.rig.pool, now)
            .unwrap();
    }
}

/// What happens before a frame is sent.
#[derive(Debug, Clone)]
struct Step {
    /// Size of the frames that arrive.
    size: u64,
    /// A number of one of the slices that come and go, which gets a frame.
    visitor: Option<usize>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sizes = prop_oneof![Just(60), Just(LARGEST_FRAME), 60..=LARGEST_FRAME];
    let step = (sizes, prop::option::of(0..8usize));
    let step = step.prop_map(|(size, visitor)| Step { size, visitor });
    prop::collection::vec(step, 20..200)
}

/// Frames that are sent in one case.
const FRAMES: usize = 3_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn slices_share_within_the_bound(
        busy in prop::collection::vec((weight(), any::<bool>()), 2..6),
        visitors in prop::collection::vec((weight(), any::<bool>()), 0..4),
        steps in steps(),
        changes in prop::collection::vec((0..FRAMES, 0..5usize, weight()), 0..4),
        follows in prop::option::of(0..2usize),
    ) {
        let weights = |slices: &[(u32, bool)]| -> Vec<u32> {
            slices.iter().map(|&(weight, _)| weight).collect()
        };
        let params = |slices: &[(u32, bool)]| -> Vec<SliceParams> {
            slices.iter().map(|&(weight, guarantee)| slice(weight, guarantee)).collect()
        };
        let mut shares = Shares::new(&weights(&busy), &weights(&visitors));
        let mut contention = Contention::new(&[1], &params(&busy), &params(&visitors));
        let mut last = 0;
        for (n, step) in steps.iter().cycle().take(FRAMES).enumerate() {
            for &(_, slice, weight) in changes.iter().filter(|(at, _, _)| *at == n) {
                let slice = slice % busy.len();
                contention.change_weight(slice, weight);
                shares.change_weight(slice, weight);
            }
            // Some visitors come at any time, and some only while a certain slice has its turn.
            if let Some(visitor) = step.visitor
                && visitor < visitors.len()
                && follows.is_none_or(|slice| slice == last)
            {
                contention.arrive(busy.len() + visitor, step.size);
            }
            for (slice, bytes) in contention.send(step.size) {
                last = slice;
                if slice < busy.len() {
                    shares.on_sent(slice, bytes);
                }
            }
        }
    }

    #[test]
    fn tenants_share_within_the_bound(
        tenants in prop::collection::vec((weight(), 1..4usize), 2..5),
        visitors in prop::collection::vec(weight(), 0..3),
        steps in steps(),
        changes in prop::collection::vec((0..FRAMES, 0..4usize, weight()), 0..4),
    ) {
        let busy_weights: Vec<u32> = tenants.iter().map(|&(weight, _)| weight).collect();
        let weights = [&busy_weights[..], &visitors].concat();
        let of_tenant = |tenant: usize, weight| SliceParams {
            tenant: tenant as u32,
            ..best_effort(weight)
        };
        let slices = tenants.iter().enumerate();
        let busy: Vec<SliceParams> = slices
            .flat_map(|(tenant, &(_, count))| (0..count).map(move |n| of_tenant(tenant, 1 + 7 * n as u32)))
            .collect();
        let others: Vec<SliceParams> = (tenants.len()..weights.len())
            .map(|tenant| of_tenant(tenant, 1))
            .collect();
        let mut shares = Shares::new(&busy_weights, &visitors);
        let mut contention = Contention::new(&weights, &busy, &others);
        for (n, step) in steps.iter().cycle().take(FRAMES).enumerate() {
            for &(_, tenant, weight) in changes.iter().filter(|(at, _, _)| *at == n) {
                let tenant = tenant % tenants.len();
                contention.rig.scheduler.set_tenant_weight(tenant as u32, weight);
                shares.change_weight(tenant, weight);
            }
            if let Some(visitor) = step.visitor
                && visitor < visitors.len()
            {
                contention.arrive(busy.len() + visitor, step.size);
            }
            for (slice, bytes) in contention.send(step.size) {
                let tenant = contention.slices[slice].tenant as usize;
                if tenant < tenants.len() {
                    shares.on_sent(tenant, bytes);
                }
            }
        }
    }
}

/// Longest run of frames of one slice among those sent.
fn longest_run(senders: &[usize]) -> usize {
    senders
        .chunk_by(|one, next| one == next)
        .map(<[usize]>::len)
        .max()
        .unwrap_or(0)
}

fn senders(contention: &mut Contention, frames: usize) -> Vec<usize> {
    (0..frames)
        .flat_map(|_| contention.send(LARGEST_FRAME))
        .map(|(slice, _)| slice)
        .collect()
}

#[test]
fn slices_of_weight_10_000_alternate_within_two_frames() {
    let mut contention = Contention::new(&[1], &[best_effort(10_000); 2], &[best_effort(1)]);
    assert!(longest_run(&senders(&mut contention, 1_000)) <= 2);
    // A light slice makes turns longer only while it has frames.
    contention.arrive(2, LARGEST_FRAME);
    let busy = senders(&mut contention, 45_000);
    assert!(busy.contains(&2));
    assert!(longest_run(&senders(&mut contention, 1_000)) <= 2);
}

#[test]
fn tenants_of_weight_10_000_alternate_within_two_frames() {
    let slices = [0, 1].map(|tenant| SliceParams {
        tenant,
        ..best_effort(1)
    });
    let mut contention = Contention::new(&[10_000, 10_000], &slices, &[]);
    assert!(longest_run(&senders(&mut contention, 1_000)) <= 2);
}

/// A light slice takes turns only while slice 0 has its own: of two frames that arrive just before, its guarantee sends one at
/// once and the other just after.
#[test]
fn a_light_slice_that_comes_and_goes_within_a_round_gives_no_other_an_advantage() {
    let light = with_weight(guaranteed(80_000_000, 60, Duration::from_millis(20)), 1);
    let mut contention = Contention::new(&[1], &[best_effort(64); 2], &[light]);
    let mut bytes = [0; 3];
    for _ in 0..60_000 {
        for (slice, sent) in contention.send(LARGEST_FRAME) {
            bytes[slice] += sent;
            if slice == 1 {
                contention.arrive(2, 60);
                contention.arrive(2, 60);
            }
        }
    }
    let bound = LARGEST_FRAME * (2 * 64 + 2);
    assert!(bytes[0].abs_diff(bytes[1]) < bound, "{bytes:?}");
    assert_eq!(bytes[2], 0, "its guarantee sends all its frames");
}
