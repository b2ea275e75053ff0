//! A shaper in front of a modem that adds bytes to each frame.

use crate::support::changed;
use slicewise_sim::Simulator;
use slicewise_study::{Backend, RunFilter};

/// Frames of 142 B (L2), twice as many as the modem sends. The shaper has the rate of the modem.
const STUDY: &str = "
name: modem
link: {rate: 1 Gbit/s}
path: [shaper, modem]
devices:
  shaper: {model: port}
  modem: {model: port, port_rate: 10 Mbit/s, port_counts: MODEM, policy: {classes: [{name: class-default, queue_limit: 10000 packets}]}}
slices:
  all: {match: {vlan: 1}, share: 5 Mbit/s, headers: {vlan: 1}}
policies:
  shaped: {classes: [{name: class-default, queue_limit: 10000 packets, shape: {rate: 10 Mbit/s, burst: 1600 B, counts: SHAPER}}]}
scenarios:
  load: {sources: {a: {slice: all, pattern: cbr, rate: 20 Mbit/s, payload: 96 B}}}
repetitions: 1
duration: 1 s
measure: {queue_lengths: 5 ms}
";

/// The most frames that wait in the shaper and in the modem, and frames received.
fn waiting(modem: &str, shaper: &str) -> ([u32; 2], u64) {
    let study = changed(STUDY, &[("MODEM", modem), ("SHAPER", shaper)]);
    let run = &study.runs(&RunFilter::default()).unwrap()[0];
    let record = Simulator::default().run(&study, run).unwrap();
    let largest = |device| {
        let of_device = record.queues.iter().filter(|queue| queue.device == device);
        of_device.map(|queue| queue.largest_frames).max().unwrap()
    };
    (
        [largest(1), largest(2)],
        record.slices[0].whole.received_frames,
    )
}

#[test]
fn frames_wait_in_the_shaper_if_it_counts_what_the_modem_adds() {
    // Bytes of a frame of 142 B on the modem: with 8 B, and 124 + 40 B of the packet in 4 cells.
    for (modem, without, bytes) in [
        ("L2 + 8 B", "L2", 150),
        ("L3 + 40 B in ATM cells", "L3 + 40 B", 4 * 53),
    ] {
        let sent = 10_000_000 / 8 / bytes;
        let (counted, received) = waiting(modem, modem);
        assert!(
            counted[0] > 5_000 && counted[1] < 20,
            "{modem}: {counted:?}"
        );
        assert!(
            (sent - 20..=sent).contains(&received),
            "{modem}: {received}"
        );

        let (uncounted, received) = waiting(modem, without);
        assert!(uncounted[1] > 400, "{modem}: {uncounted:?}");
        assert!(
            (sent - 20..=sent).contains(&received),
            "{modem}: {received}"
        );
    }
}
