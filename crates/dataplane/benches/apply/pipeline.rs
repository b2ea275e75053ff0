//! Changes through a pipeline in which frames of every slice wait, and frames come and go between changes.
//!
//! Processor time of the thread, so that other programs do not count: what a change delays packets by on a processor
//! of its own. Includes page faults, and about 0.3 µs for reading the clock.

use crate::kinds::{Kind, Random, clock};
use slicewise_dataplane::{
    Change, Conditioning, Frame, NewSlice, Pipeline, PipelineParams, SliceChange, Step, Verdict,
};
use slicewise_model::{Colour, PolicyParams, SliceParams};
use slicewise_units::{BitRate, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

const KIND: Kind = Kind::VlanPair;
const LINK: BitRate = BitRate::new(400_000_000_000);
const SLICES: u32 = 100_000;
/// Added on top, so that everything that grows does.
const MORE: u32 = 40_000;
const CHANGES: u32 = 50_000;
/// Slices that the gateway changes at once.
const AT_ONCE: usize = 4;
/// Slices that go by one policy, and come by the other.
const EXCHANGED: usize = 20_000;
/// Virtual time between changes, ns.
const GAP: u64 = 1_000;

fn policy(slices: u32) -> PolicyParams {
    KIND.policy(slices, LINK)
}

fn slice_params() -> SliceParams {
    let class = policy(1).classes.swap_remove(0);
    class.slice.expect("it is a slice")
}

fn name(slice: u32) -> String {
    format!("slice{slice}")
}

fn add(slice: u32, params: SliceParams) -> SliceChange {
    SliceChange::Add(Box::new(NewSlice {
        name: name(slice),
        matches: KIND.map(slice),
        params,
        conditioning: Conditioning::default(),
        flow_queue: None,
        is_of_policy: false,
    }))
}

struct Run {
    pipeline: Pipeline,
    now: u64,
    handle: u64,
}

impl Run {
    fn new(slices: u32) -> Self {
        let mut run = Self::with(policy(slices));
        (0..slices).for_each(|slice| run.offer(slice));
        run
    }

    fn with(policy: PolicyParams) -> Self {
        let params = PipelineParams {
            policy,
            port_shaper: None,
            seed: 1,
        };
        let pipeline = Pipeline::new(&params, Instant::ZERO).expect("it can be built");
        Self {
            pipeline,
            now: 0,
            handle: 0,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    fn offer(&mut self, slice: u32) {
        self.handle += 1;
        let frame = Frame {
            handle: self.handle,
            lengths: FrameLengths {
                l2_bytes: 64,
                l3_offset: 22,
            },
            traffic_class: TrafficClass::DEFAULT,
            colour: Colour::Green,
        };
        let now = self.now();
        let _: Verdict = self.pipeline.on_frame(frame, &KIND.headers(slice), now);
    }

    /// A few frames come and go.
    fn forward(&mut self, random: &mut Random) {
        self.now += GAP;
        for _ in 0..4 {
            self.offer(random.below(SLICES as usize) as u32);
            let now = self.now();
            let _: Option<Frame> = self.pipeline.poll_egress(now);
        }
    }

    /// Until no frame waits.
    fn drain(&mut self) {
        while self.pipeline.backlog() > 0 || self.pipeline.is_removing() {
            self.now += GAP;
            let now = self.now();
            let _: Option<Frame> = self.pipeline.poll_egress(now);
            while self.pipeline.poll_removed(now).is_some() {}
        }
    }

    fn time(&mut self, times: &mut Vec<u64>, change: SliceChange) -> bool {
        let now = self.now();
        // The first system call after a while does what the kernel has postponed.
        std::hint::black_box(clock());
        let start = clock();
        let changed = self.pipeline.change_slice(change, now);
        times.push(clock() - start);
        changed.is_ok()
    }
}

/// Prepare on a thread of its own, as the gateway does: what that frees is nothing that others allocate from. Returns how long
/// it took, too.
fn beside<T: Send>(prepare: impl FnOnce() -> T + Send) -> (T, u64) {
    let timed = || {
        let start = clock();
        let prepared = prepare();
        (prepared, clock() - start)
    };
    let prepared = std::thread::scope(|scope| scope.spawn(timed).join());
    prepared.expect("it does not panic")
}

fn print(what: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "{what:<34} {:>8.2} {:>8.2} {:>8.2} {:>8.2}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// As in the gateway: no thread waits until the kernel has what was freed.
fn keep_what_is_freed() {
    /// `mi_option_purge_delay`.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: sets a number.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

/// Times of single changes, and of whole policies.
pub fn report() {
    keep_what_is_freed();
    println!("\nµs per change of a pipeline with {SLICES} slices, each with a frame that waits");
    println!(
        "{:<34} {:>8} {:>8} {:>8} {:>8}",
        "", "median", "99 %", "99.9 %", "most"
    );
    single_changes();
    slice_by_slice();
    whole_policies();
}

/// Another rate for every slice: half of it, and then the old one again. And other slices instead of a fifth of them.
fn slice_by_slice() {
    let before = policy(SLICES);
    let mut slower = before.clone();
    for slice in slower
        .classes
        .iter_mut()
        .filter_map(|class| class.slice.as_mut())
    {
        if let Some(guarantee) = &mut slice.guarantee {
            guarantee.rate = BitRate::new(guarantee.rate.bits_per_second() / 2);
        }
    }
    let mut others = before.clone();
    for (slice, class) in (SLICES..).zip(others.classes.iter_mut().take(EXCHANGED)) {
        class.name = name(slice);
        class.matches = Some(KIND.map(slice));
    }
    let mut delays = before.clone();
    set_delays(&mut delays);
    time_steps("delays", [&delays, &before], SLICES as usize);
    time_steps("rates", [&slower, &before], SLICES as usize);
    time_steps("slices come and go", [&others, &before], 2 * EXCHANGED);
}

/// A shorter delay for each slice.
fn set_delays(policy: &mut PolicyParams) {
    let slices = policy.classes.iter_mut();
    let slices = slices.filter_map(|class| class.slice.as_mut()?.guarantee.as_mut());
    for guarantee in slices {
        guarantee.delay = guarantee.delay - Duration::from_micros(1);
    }
}

/// Steps to each of two policies in turn.
fn time_steps(what: &str, policies: [&PolicyParams; 2], expected: usize) {
    let (mut run, mut random) = (Run::new(SLICES), Random(1));
    let [mut prepared_in, mut changed_in] = [const { Vec::new() }; 2];
    for policy in policies {
        let basis = run.pipeline.basis();
        let (steps, took) = beside(move || basis.diff(policy).expect("slices alone differ"));
        prepared_in.push(took);
        assert_eq!(steps.len(), expected);
        for some in steps.chunks(AT_ONCE) {
            run.forward(&mut random);
            let (some, now) = (some.to_vec(), run.now());
            std::hint::black_box(clock());
            let start = clock();
            for step in some {
                let Step::Slice(change) = step else {
                    unreachable!("tenants stay")
                };
                let changed = run.pipeline.change_slice(change, now);
                assert!(changed.is_ok(), "the link has room for both");
            }
            changed_in.push(clock() - start);
            while run.pipeline.poll_removed(now).is_some() {}
        }
        run.drain();
    }
    print(&format!("{what}: prepare"), prepared_in);
    print(&format!("{what}: {AT_ONCE} at once"), changed_in);
}

fn single_changes() {
    let (mut run, mut random) = (Run::new(SLICES), Random(1));
    let [mut added, mut changed, mut removed, mut grown] = [const { Vec::new() }; 4];
    let params = slice_params();
    for round in 0..CHANGES {
        run.forward(&mut random);
        let slice = random.below(SLICES as usize) as u32;
        let heavier = SliceParams {
            weight: 1 + round % 7,
            ..params
        };
        let name = name(slice);
        let _ = run.time(
            &mut changed,
            SliceChange::Change {
                name,
                params: heavier,
            },
        );
        run.forward(&mut random);
        let gone = random.below(SLICES as usize) as u32;
        let name = self::name(gone);
        let _ = run.time(&mut removed, SliceChange::Remove { name });
        run.forward(&mut random);
        // Those that were removed before, and whose frames have left, come back.
        let _ = run.time(
            &mut added,
            add(random.below(SLICES as usize) as u32, params),
        );
        let now = run.now();
        let _ = run.pipeline.poll_removed(now);
    }
    for slice in SLICES..SLICES + MORE {
        assert!(run.time(&mut grown, add(slice, params)), "it is admitted");
        run.forward(&mut random);
    }
    print("change one", changed);
    print("remove one", removed);
    print("add one", added);
    print(&format!("add {MORE} more"), grown);
}

fn whole_policies() {
    for waiting in [false, true] {
        let (mut prepared_in, mut committed_in) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let mut run = Run::new(SLICES);
            if !waiting {
                run.drain();
            }
            let now = run.now();
            let basis = run.pipeline.basis();
            let (mut policy, _) = beside(|| policy(SLICES));
            policy.name = "another".into();
            let (prepared, took) = beside(move || basis.prepare(Change::Policy(policy), now));
            prepared_in.push(took);
            let prepared = prepared.expect("it can be built");
            std::hint::black_box(clock());
            let start = clock();
            let replaced = run.pipeline.commit(prepared, now);
            committed_in.push(clock() - start);
            drop(replaced.expect("nothing came in between"));
        }
        let what = if waiting { "all wait" } else { "none waits" };
        print(&format!("whole policy, {what}: prepare"), prepared_in);
        print(&format!("whole policy, {what}: commit"), committed_in);
    }
}
