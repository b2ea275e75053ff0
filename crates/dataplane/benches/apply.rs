//! ns per change of a slice: added, changed and removed while others are backlogged, in a scheduler alone and through a
//! pipeline; and how long the commit of a whole policy takes.
//!
//! `cargo bench -p slicewise-dataplane --bench apply`
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
#![allow(unsafe_code, reason = "the processor time of a thread")]

#[path = "classifier/kinds.rs"]
mod kinds;
#[path = "apply/pipeline.rs"]
mod pipeline;

use criterion::{BatchSize, Criterion, criterion_group};
use slicewise_dataplane::Frame;
use slicewise_dataplane::guaranteed::{Guaranteed, SliceId};
use slicewise_dataplane::queue::{FramePool, QueuedFrame};
use slicewise_model::{
    Colour, DelayRange, GuaranteeParams, GuaranteedParams, QueueLimitParams, SliceParams,
    TenantParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration, FrameLengths, Instant};
use slicewise_wire::TrafficClass;

const SLICES: u32 = 1_000_000;
/// Stride between slices, so that each is as cold in the cache as in practice.
const STRIDE: u32 = 7_919;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn slice(rate: u64) -> SliceParams {
    SliceParams {
        guarantee: Some(GuaranteeParams {
            rate: BitRate::new(rate),
            burst: ByteCount::new(3_044),
            delay: Duration::from_millis(1),
            smallest_frame: ByteCount::ZERO,
        }),
        maximum: None,
        weight: 1,
        tenant: 0,
        queue_limit: QueueLimitParams {
            packets: 64,
            bytes: ByteCount::new(u64::MAX),
            hysteresis: 0,
        },
    }
}

fn changes(criterion: &mut Criterion) {
    let params = GuaranteedParams {
        accounting: Accounting::L2,
        largest_frame: ByteCount::new(1_522),
        delays: DelayRange::new(Duration::from_micros(10), Duration::from_millis(10)),
        tenants: vec![TenantParams {
            name: "all".into(),
            weight: 1,
        }],
    };
    let mut scheduler = Guaranteed::new(&params, SLICES as usize + 1);
    let mut pool = FramePool::with_capacity(2 * SLICES);
    for number in 0..SLICES {
        let id = scheduler
            .add_slice(&slice(50_000), Instant::ZERO)
            .expect("the tenant exists");
        let queued = QueuedFrame::new(
            &Frame {
                handle: u64::from(number),
                lengths: FrameLengths {
                    l2_bytes: 1_500,
                    l3_offset: 14,
                },
                traffic_class: TrafficClass::DEFAULT,
                colour: Colour::Green,
            },
            0,
            Instant::ZERO,
            0,
        );
        for _ in 0..2 {
            scheduler
                .try_enqueue(id, queued, &mut pool)
                .expect("there is room");
        }
    }
    let mut group = criterion.benchmark_group("apply");
    let now = Instant::ZERO;
    group.bench_function("add and remove a slice next to a million", |bencher| {
        bencher.iter(|| {
            let id = scheduler
                .add_slice(&slice(50_000), now)
                .expect("the tenant exists");
            scheduler.remove_slice(id, now)
        });
    });
    let mut next = 0;
    group.bench_function("change one of a million backlogged slices", |bencher| {
        bencher.iter_batched(
            || {
                next = (next + STRIDE) % SLICES;
                (SliceId::new(next), slice(50_000 + u64::from(next)))
            },
            |(id, slice)| scheduler.change_slice(id, &slice, &pool, now),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, changes);

fn main() {
    pipeline::report();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
