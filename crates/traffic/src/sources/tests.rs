use super::*;
use crate::{Departure, Recorded};
use crate::{OnOffParams, PacketSize, Periods, SourceHeaders};
use slicewise_capture::write::{PcapngParams, PcapngWriter};
use slicewise_units::BitRate;
use slicewise_wire::Ecn;
use std::net::{IpAddr, Ipv4Addr};

fn capture_writer() -> PcapngWriter<Vec<u8>> {
    let params = PcapngParams {
        comment: "",
        application: "",
        interface: "",
        snap_bytes: 96,
    };
    PcapngWriter::new(Vec::new(), &params).unwrap()
}

const HOST: HostTiming = HostTiming {
    timer: Duration::from_millis(1),
    clock_drift_ppb: 1_000_000,
    timer_slack: Duration::from_micros(50),
    send_cost: Duration::from_micros(15),
    interrupt_moderation: Duration::ZERO,
};

fn params(pattern: PatternParams) -> SourceParams {
    SourceParams {
        name: "voice".to_owned(),
        machine: 0,
        host: None,
        slice: 0,
        headers: SourceHeaders {
            vlan: None,
            inner_vlan: None,
            source: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            destination: IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1)),
            protocol: 17,
            source_port: 1024,
            destination_port: 5201,
            dscp: 46,
            ecn: Ecn::NotEct,
            tunnel: None,
        },
        largest: PacketSize {
            payload_bytes: 1250,
            l2_bytes: 1292,
            counted_bytes: 1250,
        },
        sizes: SizesParams::Equal,
        rate: BitRate::new(10_000_000),
        pattern,
        on_off: None,
        start: Duration::from_millis(5),
        stop: Duration::from_millis(105),
        start_spread: Duration::from_millis(1),
    }
}

fn departures(mut source: Source) -> Vec<u64> {
    std::iter::from_fn(|| source.next_departure())
        .map(|departure| departure.at.nanos())
        .collect()
}

fn replay_of(pcap: PathBuf) -> PatternParams {
    let sha256 = [0; 32];
    PatternParams::Replay { pcap, sha256 }
}

#[test]
fn the_same_seed_gives_the_same_departures_and_another_others() {
    for pattern in [
        PatternParams::Iperf3,
        PatternParams::Cbr,
        PatternParams::Poisson,
    ] {
        let params = params(pattern);
        let times =
            |sources: &Sources, seed| departures(sources.source(&params, &HOST, seed).unwrap());
        let one = Sources::new();
        let first = times(&one, 7);
        assert!((50..150).contains(&first.len()), "{}", first.len());
        assert!(first[0] >= 5_000_000 && first[first.len() - 1] < 105_000_000);
        assert_eq!(times(&one, 7), first);
        assert_eq!(times(&Sources::new(), 7), first);
        assert_ne!(times(&one, 8), first);
    }
}

/// When a source of 40 s without any randomness sends on each of two machines.
fn on_two_machines(pattern: &PatternParams) -> [Vec<u64>; 2] {
    let hosts = HostTiming {
        timer_slack: Duration::ZERO,
        ..HOST
    };
    [0, 1].map(|machine| {
        let params = SourceParams {
            machine,
            start: Duration::ZERO,
            stop: Duration::from_secs(40),
            start_spread: Duration::ZERO,
            // A packet lasts 0.735 of the timer's milliseconds.
            rate: BitRate::new(13_600_000),
            ..params(pattern.clone())
        };
        departures(Sources::new().source(&params, &hosts, 1).unwrap())
    })
}

#[test]
fn the_timers_of_two_machines_drift_apart_while_iperf3_keeps_its_rate() {
    let times = on_two_machines(&PatternParams::Iperf3);
    for (times, tick) in times.iter().zip([1_001_000, 1_002_000]) {
        // Every packet leaves at a tick, or 15 us after another one of it.
        assert!(times.iter().all(|at| [0, 15_000].contains(&(at % tick))));
        let exact = 40 * 13_600_000 / 10_000;
        assert!(
            (exact - 2..=exact).contains(&times.len()),
            "{}",
            times.len()
        );
    }
    // As many ticks apart as 40 s have milliseconds, times 0.1 %.
    let ticks = times.map(|times| times.last().unwrap() / 1_001_000);
    assert!((39_900..40_000).contains(&ticks[0]), "{ticks:?}");
}

#[test]
fn equal_streams_of_constant_bit_rate_pass_each_other_within_the_tolerance_of_a_crystal() {
    let [one, other] = on_two_machines(&PatternParams::Cbr);
    let exact = 40 * 13_600_000 / 10_000;
    let least = exact - exact * 100 / 1_000_000 - 1;
    for times in [&one, &other] {
        assert!((least..exact).contains(&times.len()), "{}", times.len());
    }
    let apart = one.iter().zip(&other).map(|(a, b)| a.abs_diff(*b));
    assert!(apart.max().unwrap() > 735_000, "not by a packet in 40 s");
}

#[test]
fn a_source_pauses_as_the_study_says() {
    let mut params = params(PatternParams::Cbr);
    params.start_spread = Duration::ZERO;
    params.on_off = Some(OnOffParams {
        on: Duration::from_millis(10),
        off: Duration::from_millis(30),
        periods: Periods::Fixed,
    });
    let times = departures(Sources::new().source(&params, &HOST, 1).unwrap());
    // Ten packets, a millisecond each, from 5, 45 and 85 ms.
    assert_eq!(times.len(), 30);
    assert_eq!(
        [times[0], times[10], times[20]],
        [5_000_000, 45_000_000, 85_000_000]
    );
}

#[test]
fn periods_at_random_are_the_same_at_every_rate_and_for_every_pattern() {
    let begins = |pattern, mbits: u64| {
        let mut params = params(pattern);
        params.start_spread = Duration::ZERO;
        params.rate = BitRate::new(mbits * 1_000_000);
        params.on_off = Some(OnOffParams {
            on: Duration::from_millis(5),
            off: Duration::from_millis(5),
            periods: Periods::Exponential,
        });
        let times = departures(Sources::new().source(&params, &HOST, 1).unwrap());
        let pauses = times
            .windows(2)
            .filter(|pair| pair[1] - pair[0] > 4_000_000);
        pauses.map(|pair| pair[1]).collect::<Vec<_>>()
    };
    let steady = begins(PatternParams::Cbr, 400);
    assert!(steady.len() > 3, "{steady:?}");
    assert_eq!(begins(PatternParams::Cbr, 800), steady);
    // Its first packet comes a gap after the beginning.
    let poisson = begins(PatternParams::Poisson, 800);
    assert_eq!(poisson.len(), steady.len());
    let late = poisson
        .iter()
        .zip(&steady)
        .map(|(poisson, steady)| poisson - steady);
    assert!(late.max().unwrap() < 1_000_000);
}

#[test]
fn what_was_sent_is_sent_again_whatever_the_study_says() {
    let times = |nanos: &[u64]| {
        let packet = |at: &u64| Recorded {
            at: Duration::from_nanos(*at),
            ip_bytes: 100,
        };
        Timeline::since_start(nanos.iter().map(packet).collect())
    };
    let named = |name: &str, nanos| (name.to_owned(), times(nanos));
    let sent = [named("silent", &[]), named("voice", &[7, 5, 900_000_000])];
    let sources = Sources::as_sent(sent.into());
    let mut paused = params(PatternParams::Cbr);
    paused.on_off = Some(OnOffParams {
        on: Duration::from_nanos(1),
        off: Duration::from_secs(1),
        periods: Periods::Fixed,
    });
    let mut sent = |name: &str, sources: &Sources| {
        paused.name = name.to_owned();
        departures(sources.source(&paused, &HOST, 1).unwrap())
    };
    assert_eq!(sent("silent", &sources), [0; 0]);
    assert_eq!(sent("voice", &sources), [5, 7, 900_000_000]);
    assert_eq!(sent("other", &sources), sent("other", &Sources::new()));
}

const MIX: [(u32, u32); 3] = [(64, 7), (576, 4), (1448, 1)];

/// A source of 2 s of sizes drawn by weight, counting payload.
fn mixed(pattern: PatternParams) -> SourceParams {
    let size = |payload_bytes| PacketSize {
        payload_bytes,
        l2_bytes: payload_bytes + 42,
        counted_bytes: payload_bytes,
    };
    SourceParams {
        largest: size(1448),
        sizes: SizesParams::Mix(
            MIX.map(|(bytes, weight)| WeightedSize {
                size: size(bytes),
                weight,
            })
            .to_vec(),
        ),
        start: Duration::ZERO,
        stop: Duration::from_secs(2),
        ..params(pattern)
    }
}

fn packets(params: &SourceParams, seed: u64) -> Vec<Departure> {
    let mut source = Sources::new().source(params, &HOST, seed).unwrap();
    std::iter::from_fn(|| source.next_departure()).collect()
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn a_mix_keeps_its_rate_by_the_bytes_of_each_packet() {
    for pattern in [PatternParams::Iperf3, PatternParams::Cbr] {
        for seed in 0..20 {
            let packets = packets(&mixed(pattern.clone()), seed);
            let sizes: std::collections::BTreeSet<u32> =
                packets.iter().map(|packet| packet.l2_bytes).collect();
            assert_eq!(sizes, MIX.map(|(bytes, _)| bytes + 42).into());
            let bits: u64 = packets
                .iter()
                .map(|packet| u64::from(packet.l2_bytes - 42) * 8)
                .sum();
            // 10 Mbit/s for 2 s less the random start, but for one packet, a tick and slower clocks.
            let off = bits as f64 - 20e6;
            assert!((-25_000.0..=11_584.0).contains(&off), "{pattern:?}: {off}");
        }
    }
    // The gap after a packet of constant bit rate is what it lasts.
    let packets = packets(&mixed(PatternParams::Cbr), 1);
    for pair in packets.windows(2) {
        let lasts = f64::from(pair[0].l2_bytes - 42) * 800.0;
        let gap = pair[1].at.saturating_since(pair[0].at).nanos() as f64;
        assert!((gap / lasts - 1.0).abs() < 1.2e-4, "{gap} {lasts}");
    }
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn the_sizes_of_a_mix_do_not_move_poisson_arrivals_and_these_have_the_rate_on_average() {
    let mix = mixed(PatternParams::Poisson);
    let mut count = 0.0;
    for seed in 0..20 {
        let mixed = packets(&mix, seed);
        let mut reversed = mix.clone();
        let SizesParams::Mix(sizes) = &mut reversed.sizes else {
            unreachable!()
        };
        sizes.reverse();
        let times = |packets: &[Departure]| packets.iter().map(|p| p.at).collect::<Vec<_>>();
        let other = packets(&reversed, seed);
        assert_eq!(times(&mixed), times(&other));
        assert_ne!(mixed, other);
        count += mixed.len() as f64;
    }
    // 12 packets for 7 × 64 + 4 × 576 + 1448 bytes, at 10 Mbit/s for 20 times 2 s.
    let exact = 20.0 * 20e6 * 12.0 / (4_200.0 * 8.0);
    assert!(
        (count - exact).abs() < 4.4 * exact.sqrt(),
        "{count} {exact}"
    );
}

#[test]
fn a_capture_is_replayed_with_the_lengths_of_its_ip_packets_behind_headers_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("recorded.pcapng");
    let mut writer = capture_writer();
    // Frames of IPv4 with a VLAN tag, of which the first is padded to 64 bytes with its FCS.
    for (time_ns, ip_bytes, wire_bytes) in [(1, 28u16, 60), (2, 1500, 1518), (3, 300, 318)] {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 7, 8, 0, 0x45, 0]);
        frame.extend(ip_bytes.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.resize(42, 0);
        writer.write_packet(time_ns, &frame, wire_bytes).unwrap();
    }
    std::fs::write(&pcap, writer.finish().unwrap()).unwrap();
    let mut replay = params(replay_of(pcap));
    replay.sizes = SizesParams::Capture;
    replay.headers.protocol = 6;
    replay.largest = PacketSize {
        payload_bytes: 1460,
        l2_bytes: 1514,
        counted_bytes: 1514,
    };
    let lengths: Vec<u32> = packets(&replay, 1).iter().map(|p| p.l2_bytes).collect();
    // 28 bytes have no room for the headers of IPv4 and TCP, which are 40.
    assert_eq!(lengths, [54, 1514, 314]);

    replay.largest.l2_bytes = 1513;
    let error = Sources::new().source(&replay, &HOST, 1).unwrap_err();
    let text = error.to_string();
    let (_, why) = text.split_once(": ").unwrap();
    insta::assert_snapshot!(why, @"holds an IP packet of 1500 B, above the link's MTU of 1499 B: it was captured before it was segmented or after packets were merged; capture with offloads off (`ethtool -K INTERFACE gro off gso off tso off`), raise `link.mtu`, or give the source a `payload`");
}

#[test]
fn refuses_what_would_never_send() {
    let sources = Sources::new();
    let refused = |params: &SourceParams| sources.source(params, &HOST, 1).unwrap_err();
    let mut never = params(PatternParams::Poisson);
    never.rate = BitRate::ZERO;
    let error = refused(&never);
    assert!(matches!(error, SourceError::RateZero(_)));
    insta::assert_snapshot!(error, @"source `voice` has a rate of zero");
    never = params(PatternParams::Cbr);
    never.on_off = Some(OnOffParams {
        on: Duration::ZERO,
        off: Duration::from_secs(1),
        periods: Periods::Fixed,
    });
    insta::assert_snapshot!(refused(&never), @"source `voice` is never on");
}

#[test]
fn a_capture_to_replay_is_read_once_and_named_where_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("recorded.pcapng");
    let replay = params(replay_of(pcap.clone()));
    let sources = Sources::new();
    let refused = || sources.source(&replay, &HOST, 1).unwrap_err();
    assert!(
        matches!(refused(), SourceError::Unopened { path, .. } if path == pcap),
        "it is not there"
    );
    std::fs::write(&pcap, b"GIF89a\0\0").unwrap();
    assert!(
        matches!(refused(), SourceError::Replay { path, .. } if path == pcap),
        "it is no capture"
    );

    let mut writer = capture_writer();
    for time_ns in [100, 400, 900] {
        writer.write_packet(time_ns, &[0; 20], 20).unwrap();
    }
    std::fs::write(&pcap, writer.finish().unwrap()).unwrap();
    let times = departures(sources.source(&replay, &HOST, 1).unwrap());
    assert_eq!(times.len(), 3);
    assert_eq!([times[1] - times[0], times[2] - times[0]], [300, 800]);
    std::fs::remove_file(&pcap).unwrap();
    assert_eq!(
        departures(sources.source(&replay, &HOST, 1).unwrap()),
        times
    );
}
