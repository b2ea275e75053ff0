//! Admitting one slice next to a million: one pass over the delay classes, however many slices they
//! hold.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use slicewise_model::{Admission, AdmissionParams, DelayRange, GuaranteeRequest, Rate};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};
use std::hint::black_box;

const SLICES: u64 = 1_000_000;

fn request(rate: u64, delay: Option<Duration>) -> GuaranteeRequest {
    GuaranteeRequest {
        rate: BitRate::new(rate),
        burst: ByteCount::new(1_522),
        delay,
        smallest_frame: ByteCount::ZERO,
    }
}

/// A million slices, in every class that can hold them, admitted one by one.
fn million() -> Admission {
    let range = DelayRange::new(Duration::from_micros(100), Duration::from_secs(5));
    let delays: Vec<Duration> = range.steps().collect();
    let mut admission = Admission::new(AdmissionParams {
        link: Rate::l2(BitRate::new(400_000_000_000)),
        accounting: Accounting::L2,
        largest_frame: ByteCount::new(1_522),
        buffer: Some(ByteCount::new(64_000_000_000)),
        delays: range,
    });
    let mut admitted = 0;
    for delay in delays.iter().cycle() {
        // Few slices fit into the short classes; the long ones take the rest.
        let fits = admission.try_admit(&request(100_000, Some(*delay))).is_ok();
        admitted += u64::from(fits);
        if admitted == SLICES {
            break;
        }
        if !fits {
            let longest = delays.last().copied();
            admission.try_admit(&request(100_000, longest)).unwrap();
            admitted += 1;
        }
    }
    admission
}

fn admission(c: &mut Criterion) {
    let mut million = million();
    let asked = request(100_000, Some(Duration::from_millis(500)));
    c.bench_function("admit and release one slice next to a million", |b| {
        b.iter(|| {
            let admitted = million.try_admit(black_box(&asked)).unwrap();
            million.release(admitted);
        });
    });
    let other = request(200_000, Some(Duration::from_millis(700)));
    c.bench_function("change one slice next to a million", |b| {
        b.iter_batched_ref(
            || asked,
            |asked| {
                let mut admitted = million.try_admit(black_box(asked)).unwrap();
                million.try_change(&mut admitted, &other).unwrap();
                million.release(admitted);
            },
            BatchSize::SmallInput,
        );
    });
    let too_much = request(399_000_000_000, Some(Duration::from_millis(500)));
    c.bench_function("refuse one slice next to a million", |b| {
        b.iter(|| million.try_admit(black_box(&too_much)).unwrap_err());
    });
}

criterion_group!(benches, admission);
criterion_main!(benches);
