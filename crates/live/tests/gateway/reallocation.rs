//! A loop over rates of the gateway, between real interfaces. Needs root; says so and passes where it cannot.

use crate::support::{Endpoint, FLOODED_PORT, Gateway, Testbed, udp};
use slicewise_live::metrics::Samples;
use std::time::{Duration, Instant};

const DIRECTION: (&str, &str) = ("direction", "left>right");

/// Every test of this file.
pub fn all() {
    a_loop_lends_what_a_class_leaves_and_ends_with_a_reload();
}

/// Send best effort at more than the link until the metrics are so; returns them.
fn flooded_until(
    testbed: &Testbed,
    gateway: &Gateway,
    (source, sink): (&mut Endpoint, &mut Endpoint),
    is_so: impl Fn(&Samples) -> bool,
) -> Samples {
    let start = Instant::now();
    let burst: Vec<_> = (0..40).map(|n| udp(&[], FLOODED_PORT, 1_500, n)).collect();
    while start.elapsed() < Duration::from_secs(60) {
        source.send(&burst);
        sink.receive(40, Duration::from_millis(20));
        match gateway.metrics(testbed) {
            Some(samples) if is_so(&samples) => return samples,
            _ => {}
        }
    }
    panic!("it never came to that: {:#?}", gateway.metrics(testbed));
}

fn rate(samples: &Samples, class: &str) -> f64 {
    let name = "slicewise_reallocated_rate_bits_per_second";
    samples.sum(name, &[DIRECTION, ("class", class)])
}

fn sent_bits(samples: &Samples) -> f64 {
    let class = [DIRECTION, ("class", "bulk")];
    samples.sum("slicewise_class_sent_bytes_total", &class) * 8.0
}

fn a_loop_lends_what_a_class_leaves_and_ends_with_a_reload() {
    let Some(testbed) = Testbed::new("lent", 1_500) else {
        return;
    };
    let (mut source, mut sink) = (testbed.endpoint("source"), testbed.endpoint("sink"));
    let mut gateway = Gateway::start(&testbed, "af_packet 10000000 lent 0");
    let mut ends = (&mut source, &mut sink);
    // The other class asks for nothing, and keeps a frame in each interval.
    let lent = |samples: &Samples| rate(samples, "bulk") > 9_000_000.0;
    let before = flooded_until(&testbed, &gateway, (ends.0, ends.1), lent);
    assert!(rate(&before, "critical") < 1_000_000.0);
    // Shaped to what is written it would send half as much.
    let (from, start) = (sent_bits(&before), Instant::now());
    let is_sent = |samples: &Samples| {
        let seconds = start.elapsed().as_secs_f64();
        seconds > 0.5 && sent_bits(samples) - from > 7_000_000.0 * seconds
    };
    flooded_until(&testbed, &gateway, (ends.0, ends.1), is_sent);
    let commits = |samples: &Samples| samples.sum("slicewise_reallocation_commits_total", &[]);
    // Silence takes it back.
    let back = gateway.wait_until(&testbed, |samples| rate(samples, "bulk") == 5_000_000.0);
    assert!(commits(&back) >= 2.0);
    assert!(back.sum("slicewise_reallocation_lateness_seconds_count", &[]) > commits(&back));

    gateway.signal("HUP");
    gateway.wait_for("event=reloaded");
    gateway.wait_until(&testbed, |samples| rate(samples, "bulk") == 0.0);
    gateway.signal("HUP");
    gateway.wait_for("event=reloaded");
    ends = (&mut source, &mut sink);
    let again = flooded_until(&testbed, &gateway, ends, lent);
    assert!(commits(&again) > commits(&back), "it counts on");
    gateway.signal("TERM");
    assert!(gateway.wait());
}
