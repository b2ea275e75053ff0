//! What an event costs: taken from the queue and replaced by its successor, with few events
//! pending (a study of a handful of flows) and many (thousands of timers); beside the standard
//! library's binary heap.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use slicewise_sim::event::{Event, EventQueue};
use slicewise_traffic::Random;
use slicewise_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

const STEPS: u64 = 100_000;

/// The hold model (Jones 1986): each event schedules one at a random later time.
fn tree_of_minima(pending: u32, random: &mut Random) -> Option<Instant> {
    let mut queue = EventQueue::new((0..pending).map(Event::Departure).collect())?;
    for index in 0..pending {
        queue.schedule(Instant::from_nanos(random.below(1_000_000)), index);
    }
    let mut last = Instant::ZERO;
    for _ in 0..STEPS {
        let (now, event) = queue.pop()?;
        let later = Duration::from_nanos(random.below(1_000_000));
        let Event::Departure(place) = event else {
            return None;
        };
        queue.schedule(now.saturating_add(later), place);
        last = now;
    }
    Some(last)
}

fn binary_heap(pending: u32, random: &mut Random) -> Option<Instant> {
    let mut heap = BinaryHeap::with_capacity(pending as usize);
    for index in 0..pending {
        heap.push(Reverse((random.below(1_000_000), u64::from(index), index)));
    }
    let mut last = 0;
    for step in 0..STEPS {
        let mut top = heap.peek_mut()?;
        let Reverse((now, _, index)) = *top;
        *top = Reverse((
            now + random.below(1_000_000),
            u64::from(pending) + step,
            index,
        ));
        last = now;
    }
    Some(Instant::from_nanos(last))
}

fn event_queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("event_queue");
    group
        .throughput(Throughput::Elements(STEPS))
        .sample_size(20);
    for pending in [4, 12, 100, 10_000] {
        let mut random = Random::stream(1, 0);
        group.bench_function(BenchmarkId::new("tree_of_minima", pending), |bencher| {
            bencher.iter(|| black_box(tree_of_minima(pending, &mut random)));
        });
        group.bench_function(BenchmarkId::new("binary_heap", pending), |bencher| {
            bencher.iter(|| black_box(binary_heap(pending, &mut random)));
        });
    }
    group.finish();
}

criterion_group!(benches, event_queue);
criterion_main!(benches);
