//! A port under Poisson arrivals is the queue M/D/1, of which the mean wait is known.

#![allow(clippy::cast_precision_loss, reason = "statistics")]

use crate::support::*;
use slicewise_model::Rate;
use slicewise_sim::Topology;
use slicewise_sim::endpoint::EndpointParams;
use slicewise_sim::link::LinkParams;
use slicewise_traffic::{Pace, Pattern, Poisson, Random, Sizes, Source};
use slicewise_units::{Accounting, BitRate, Duration, Instant};

/// 1494 B at 119.52 Mbit/s, counted without overhead.
const SERVICE_NS: f64 = 100_000.0;

/// Mean wait of the packets of one run, ns.
fn mean_wait(load: f64, seed: u64) -> f64 {
    let mut topology = Topology::default();
    let [sender, sink] = [(); 2].map(|()| topology.endpoint(EndpointParams::default()));
    let rate = Rate {
        rate: BitRate::new(119_520_000),
        accounting: Accounting::L2,
    };
    let device = device(&mut topology, Duration::ZERO);
    // Fast enough that packets do not queue before the port.
    let access = Rate {
        rate: BitRate::MAX,
        accounting: Accounting::L2,
    };
    join(
        &mut topology,
        sender,
        device,
        LinkParams {
            rate: access,
            propagation: Duration::ZERO,
            handover: slicewise_sim::link::Handover::LastBit,
        },
    );
    join_egress(
        &mut topology,
        device,
        plain_port(rate.rate),
        sink,
        LinkParams {
            rate,
            propagation: Duration::ZERO,
            handover: slicewise_sim::link::Handover::LastBit,
        },
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate"
    )]
    let offered = BitRate::new((119_520_000.0 * load) as u64);
    let pattern = Pattern::Poisson(Poisson::new(
        Pace::new(FRAME_BYTES, offered).unwrap().interval_ns(),
    ));
    let until = Instant::from_nanos(10_000_000_000);
    let random = Random::stream(seed, 0);
    let source = Source::new(
        pattern,
        Sizes::Equal(FRAME_BYTES),
        Instant::ZERO,
        Duration::ZERO,
        until,
        random,
    );
    let mut network = topology
        .build(vec![flow(0, [sender, sink], source)], Recorder::default())
        .unwrap();
    assert_eq!(network.run_until(Instant::MAX).in_flight, 0);
    let recorder = network.into_parts().0;
    assert_eq!(recorder.lost(), 0);
    let delays = recorder.delays(0);
    delays.iter().sum::<u64>() as f64 / delays.len() as f64 - SERVICE_NS
}

/// Pollaczek (1930) and Khinchine (1932): load × service / (2 × (1 − load)).
#[test]
fn the_mean_wait_is_that_of_pollaczek_and_khinchine() {
    for load in [0.3, 0.6, 0.8] {
        let theory = load * SERVICE_NS / (2.0 * (1.0 - load));
        let waits: Vec<f64> = (0..10).map(|seed| mean_wait(load, seed)).collect();
        let mean = waits.iter().sum::<f64>() / 10.0;
        let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / 9.0;
        // Student's t with 9 degrees of freedom: 3.25 for 99 %.
        let half_width = 3.25 * (variance / 10.0).sqrt();
        assert!(
            (mean - theory).abs() <= half_width,
            "{mean} ± {half_width}, theory {theory}"
        );
        assert!(
            half_width < 0.03 * theory,
            "the interval decides nothing: {half_width}"
        );
    }
}
