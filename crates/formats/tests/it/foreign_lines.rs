//! Lines of real configurations that are not modelled: without effect, left out on request, or refused; always told.

use insta::assert_snapshot;
use slicewise_formats::TextNote;
use slicewise_formats::ios::{self, IosPolicy};
use slicewise_model::{ClassSpec, PolicySpec, QueueLimitSpec, RateSpec};
use slicewise_units::{BitRate, Duration};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn running(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/running");
    fs::read_to_string(folder.join(name)).unwrap()
}

fn strict(text: &str) -> Result<IosPolicy, String> {
    let config = ios::parse(text).unwrap();
    config.policy(None).map_err(|error| error.to_string())
}

fn lenient(text: &str) -> IosPolicy {
    let config = ios::parse(text).unwrap().leniently();
    config
        .policy(None)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn listed(notes: &[TextNote]) -> String {
    let lines = notes
        .iter()
        .map(|note| format!("{}: {}", note.span.line, note.message));
    lines.collect::<Vec<_>>().join("\n")
}

/// The class of that name, at any depth.
fn class<'p>(policy: &'p PolicySpec, name: &str) -> &'p ClassSpec {
    fn find<'p>(policy: &'p PolicySpec, name: &str) -> Option<&'p ClassSpec> {
        policy.classes.iter().find_map(|class| match &class.child {
            _ if class.name == name => Some(class),
            Some(child) => find(child, name),
            None => None,
        })
    }
    find(policy, name).unwrap()
}

/// Numbers of the lines that notes list.
fn told(notes: &[TextNote]) -> BTreeSet<usize> {
    let mut told = BTreeSet::new();
    for note in notes {
        let lists = note.message.split(['(', ':']);
        let lists = lists.filter_map(|part| {
            let part = part.trim().trim_end_matches(')');
            part.strip_prefix("lines ").or(part.strip_prefix("line "))
        });
        for range in lists.flat_map(|list| list.split(", ")) {
            let (first, last) = range.split_once('–').unwrap_or((range, range));
            told.extend(first.parse::<usize>().unwrap()..=last.parse().unwrap());
        }
    }
    told
}

#[test]
fn every_line_that_is_not_used_is_told() {
    let mut configurations = 0;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/running");
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let text = text.replace("output FAST", "output SLOW");
        let policy = lenient(&text);
        let notes = [policy.notes, policy.unused].concat();
        let told = told(&notes);
        for (line, number) in text.lines().zip(1..) {
            // Comments, what a terminal adds, and attachments, which are told by their names.
            let is_command = line.trim().starts_with(|c: char| c.is_ascii_lowercase());
            let is_attached = line.trim().starts_with("service-policy ") && line.contains("put ");
            let is_said = policy.lines.contains(&number) || told.contains(&number);
            let is_prompt = line.contains(['#', '>']) || line.trim().starts_with("end");
            assert!(
                !is_command || is_attached || is_prompt || is_said,
                "line {number} is told nowhere: {line}\n{}",
                listed(&notes)
            );
        }
        configurations += 1;
    }
    assert!(configurations > 6);
}

#[test]
fn what_changes_no_result_is_left_out_with_a_note() {
    let policy = strict(&running("set-cos.cfg")).unwrap();
    assert_snapshot!(listed(&policy.notes), @"
    14: `set cos` changes no result here and is left out: classes cannot match what it marks (lines 14, 17, 20, 23)
    24: used: Parent-1Mbps (output of FastEthernet0/1); not used: REMARK (input of FastEthernet0/0)
    32: skipped 2 lines: interface
    ");
    assert_snapshot!(listed(&policy.unused), @"
    24: not needed by this policy: class map `REMARK-VOICE`, policy map `REMARK` (lines 9–10, 28–30)
    32: not about quality of service: lines 32, 34
    ");
    let text = "\
class-map match-any a
 match dscp ef
policy-map p
 class a
  set mpls experimental imposition 5
  account
  police cir 8000
   conform-action set-cos-transmit 5
   conform-action set-dscp-transmit af11
   exceed-action set-mpls-exp-transmit 0
  trust dscp
 class class-default
  drop
";
    let policy = strict(text).unwrap();
    assert_snapshot!(listed(&policy.notes), @"
    5: `set mpls` changes no result here and is left out: classes cannot match what it marks (line 5)
    6: `account` changes no result here and is left out: it only counts or records packets (line 6)
    8: `set-cos-transmit` changes no result here and is left out: classes cannot match what it marks (line 8)
    10: `set-mpls-exp-transmit` changes no result here and is left out: classes cannot match what it marks (line 10)
    11: `trust dscp` changes no result here and is left out: markings are always trusted (line 11)
    ");
    let written = ios::write(&policy.spec).unwrap();
    assert_snapshot!(written, @"
    class-map match-any a
     match dscp ef
    !
    policy-map p
     class a
      police cir 8000
       conform-action set-dscp-transmit af11
       exceed-action transmit
     class class-default
      police cir 8000
       conform-action drop
       exceed-action drop
    ");
}

#[test]
fn what_may_change_results_is_refused_and_left_out_on_request() {
    let text = running("branch-office.cfg");
    assert_snapshot!(strict(&text).unwrap_err(), @"
    50:17: protocol `rtp` is not recognised: expected `ip`, `ipv6`, `eigrp`, `gre`, `icmp`, `ipinip`, `ospf`, `tcp`, `udp`, `bgp`, `dhcp`, `dns`, `ntp`, `rip`, `snmp`, `ssh`, `syslog` or `telnet`; payloads are not inspected: match an `access-group` with the application's ports
    54:17: protocol `sip` is not recognised: expected `ip`, `ipv6`, `eigrp`, `gre`, `icmp`, `ipinip`, `ospf`, `tcp`, `udp`, `bgp`, `dhcp`, `dns`, `ntp`, `rip`, `snmp`, `ssh`, `syslog` or `telnet`; payloads are not inspected: match an `access-group` with the application's ports
    65:17: protocol `ftp` is not recognised: expected `ip`, `ipv6`, `eigrp`, `gre`, `icmp`, `ipinip`, `ospf`, `tcp`, `udp`, `bgp`, `dhcp`, `dns`, `ntp`, `rip`, `snmp`, `ssh`, `syslog` or `telnet`; payloads are not inspected: match an `access-group` with the application's ports
    114:3: `fair-queue` and `random-detect` in one class are not supported: expected one of them; early drop by class is not modelled in a queue by flow: leave out this line or line 113
    ");
    let policy = lenient(&text);
    assert_snapshot!(listed(&policy.notes), @"
    8: skipped 84 lines: interface, ip, router, line, aaa, service, vrf, clock and 15 more
    50: `match protocol rtp audio` is taken to match no packet, because headers do not tell
    54: `match protocol sip` is taken to match no packet, because headers do not tell
    65: `match protocol ftp` is taken to match no packet, because headers do not tell
    114: `random-detect` is left out: `fair-queue` and `random-detect` in one class are not supported
    115: used: WAN-SHAPE-50M (output of GigabitEthernet0/0/0); not used: GUEST-POLICE (input of GigabitEthernet0/0/1.300); LAN-MARK-IN (input of GigabitEthernet0/0/1.10, GigabitEthernet0/0/1.20)
    ");
    // No packet is of an application: as if the line were not there.
    let without: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("match protocol") && line.trim() != "random-detect")
        .collect();
    let without = strict(&without.join("\n")).unwrap();
    let headers = slicewise_wire::Headers {
        ip_version: slicewise_wire::IpVersion::V4,
        dscp: 46,
        ..slicewise_wire::Headers::EMPTY
    };
    for name in ["VOICE-RTP", "SIGNALING", "BULK"] {
        let [with, without] = [&policy.spec, &without.spec].map(|spec| class(spec, name));
        let matches = |class: &ClassSpec| class.matches.as_ref().unwrap().matches(&headers);
        assert_eq!(matches(with), matches(without), "{name}");
    }
}

/// A lenient reader leaves out what a policy may be judged without, and no rate.
#[test]
fn a_command_that_decides_a_rate_is_never_left_out() {
    let text = |command: &str| {
        format!(
            "class-map a\n match dscp ef\npolicy-map p\n class a\n  {command}\n class class-default\n"
        )
    };
    for (command, way_on) in [
        ("shape average 5m be 0", "shape average RATE"),
        ("shape min 10 max 20", "shape average RATE"),
        ("police rate 100 pps", "police cir RATE"),
        ("police aggregate AGG1", "police cir RATE"),
        ("police 8000 conform-color x", "police cir RATE"),
        (
            "police 8000\n   exceed-action policed-dscp-transmit",
            "set-dscp-transmit",
        ),
        ("priority strict", "priority KBPS"),
        ("priority queue 1", "priority KBPS"),
        ("bandwidth qos-reference 1000", "bandwidth KBPS"),
        ("bandwidth remaining ratio 10 of x", "bandwidth KBPS"),
        ("service-policy child more", "service-policy NAME"),
    ] {
        let config = ios::parse(&text(command)).unwrap().leniently();
        let error = config.policy(None).unwrap_err().to_string();
        assert!(error.contains(way_on), "{command}: {error}");
    }
    // Frames that ask for less are not simulated.
    let policy = strict(&text("shape average 9000\n  shape adaptive 8000")).unwrap();
    assert_snapshot!(listed(&policy.notes), @"6: `shape adaptive` changes no result here and is left out: no frame asks this device to send less (line 6)");
    assert!(class(&policy.spec, "a").shape.is_some());
}

#[test]
fn a_suffix_about_what_is_counted_is_left_out_and_the_rate_stays() {
    for (command, plain) in [
        (
            "shape average 5m account user-defined 20",
            "shape average 5m",
        ),
        ("shape peak 5000000 account", "shape peak 5000000"),
        (
            "shape average percent 20 20 ms account dot1q dot1q user-defined -4",
            "shape average percent 20 20 ms",
        ),
        ("bandwidth 1000 account dot1q aal5", "bandwidth 1000"),
        (
            "bandwidth percent 30 account qinq aal5 snap-rbe-dot1q",
            "bandwidth percent 30",
        ),
        (
            "bandwidth remaining ratio 10 account user-defined 4 atm",
            "bandwidth remaining ratio 10",
        ),
        ("priority percent 10 account", "priority percent 10"),
        ("priority account user-defined 4", "priority"),
        (
            "police cir 1000000 account user-defined -4 conform-action transmit exceed-action drop",
            "police cir 1000000 conform-action transmit exceed-action drop",
        ),
    ] {
        let text = |command: &str| {
            format!("class-map a\n match dscp ef\npolicy-map p\n class a\n  {command}\n")
        };
        let error = strict(&text(command)).unwrap_err();
        assert!(error.contains("rates count frames without FCS"), "{error}");
        let policy = lenient(&text(command));
        assert_eq!(policy.spec, strict(&text(plain)).unwrap().spec, "{command}");
        assert_eq!(policy.notes.len(), 1);
        assert!(
            policy.notes[0].message.starts_with("`account"),
            "{:?}",
            policy.notes
        );
    }
}

#[test]
fn what_is_left_out_names_what_to_write() {
    for command in [
        "random-detect 10 ms 30 ms",
        "queue-limit dscp cs6 percent 80",
        "queue-limit percent 50",
        "random-detect dscp-based\n  random-detect dscp 0 percent 80 100",
    ] {
        let text = format!("policy-map p\n class class-default\n  bandwidth 1000\n  {command}\n");
        let errors = match ios::parse(&text).unwrap().policy(None) {
            Err(ios::IosPolicyError::Text(errors)) => errors,
            other => panic!("{command}: {other:?}"),
        };
        let [error] = &errors[..] else {
            panic!("{command}: {errors:?}");
        };
        assert!(error.is_unmodelled, "{command}: {error}");
        assert!(
            error.help.as_ref().unwrap().starts_with("write "),
            "{command}: {error}"
        );
    }
}

#[test]
fn code_points_of_ipv4_have_two_forms() {
    for (read, same) in [
        ("dscp ipv4 ef af41", "ip dscp ef af41"),
        ("not precedence ipv4 5", "not ip precedence 5"),
    ] {
        let text = |line: &str| {
            format!(
                "class-map match-all a\n match {line}\npolicy-map p\n class a\n  bandwidth 1000\n"
            )
        };
        let [read, same] = [read, same].map(|line| strict(&text(line)).unwrap().spec);
        assert_eq!(read, same);
    }
}

#[test]
fn bursts_in_time_are_read_with_their_rate() {
    let text = |command: &str| format!("policy-map p\n class class-default\n  {command}\n");
    for (command, same) in [
        ("police cir 1m bc 10 ms", "police cir 1m bc 1500"),
        (
            "police cir 10m bc 10 ms be 20 ms",
            "police cir 10m bc 12500 be 25000",
        ),
        ("police rate 10 mbps burst 20 ms", "police 10m bc 25000"),
        ("police rate 10 mbps burst 20 kbytes", "police 10m bc 20000"),
        (
            "police rate 10 mbps burst 20 ms peak-rate 20 mbps peak-burst 40 ms",
            "police cir 10m bc 25000 pir 20m be 100000",
        ),
        // A peak burst has the time of the peak rate, wherever that is written.
        (
            "police rate 10 mbps peak-burst 40 ms peak-rate 20 mbps",
            "police cir 10m pir 20m be 100000",
        ),
        (
            "police rate percent 10 burst 100000 us",
            "police cir percent 10 bc 100 ms",
        ),
        ("shape average 200 mbps 4 ms", "shape average 200m 800000"),
        (
            "shape average 200 mbps 100 kbytes 0 us",
            "shape average 200m 800000 0",
        ),
    ] {
        let [read, same] = [command, same].map(|command| strict(&text(command)).unwrap().spec);
        assert_eq!(read, same, "{command}");
    }
    // That of a percentage has a size where the link is known: 20 ms of 40 Mbit/s.
    let policy = strict(&text("shape average percent 20 20 ms 0 ms")).unwrap();
    let params = policy.spec.resolve(BitRate::new(200_000_000)).unwrap();
    let shape = params.classes[0].shape.unwrap();
    assert_eq!(
        (shape.rate.rate.bits_per_second(), shape.burst.bytes()),
        (40_000_000, 100_000)
    );
    for command in [
        "shape average percent 20 20",
        "shape average percent 20 20 kbytes",
        "shape average percent 20 20 us",
        "police cir percent 20 bc 20 kbytes",
        "police cir percent 20 bc 2001",
        "police cir 1m bc 2001 ms",
        "shape average 5m 0 ms",
    ] {
        let error = strict(&text(command)).unwrap_err();
        assert!(error.contains("burst"), "{command}: {error}");
    }
}

/// None of these is a keyword that this crate knows.
#[test]
fn a_keyword_of_another_device_names_the_way_on_and_a_misspelling_is_a_mistake() {
    let text = |command: &str| {
        format!(
            "class-map a\n match dscp ef\npolicy-map p\n class a\n  bandwidth 1000\n  {command}\n"
        )
    };
    for command in [
        "queue-buffers ratio 10",
        "compression header ip",
        "random-detect discard-class-based",
        "set dscp cos table map",
        "fair-queue queue-limit 10",
    ] {
        let text = text(command);
        let errors = match ios::parse(&text).unwrap().policy(None) {
            Err(ios::IosPolicyError::Text(errors)) => errors,
            other => panic!("{command}: {other:?}"),
        };
        assert!(
            errors.iter().all(|error| error.is_unmodelled),
            "{command}: {errors:?}"
        );
        let policy = lenient(&text);
        let expected = strict(&text.replace(command, "")).unwrap();
        assert_eq!(policy.spec, expected.spec, "{command}");
        assert!(
            policy
                .notes
                .iter()
                .any(|note| note.message.contains(command.get(..40).unwrap_or(command))),
            "{command}"
        );
    }
    for command in [
        "bandwith 2000",
        "random-detect dscp-base",
        "shape averge 8000",
        "priority 0",
    ] {
        let config = ios::parse(&text(command)).unwrap().leniently();
        assert!(config.policy(None).is_err(), "{command}");
    }
}

#[test]
fn a_criterion_that_cannot_be_matched_is_met_by_no_packet() {
    let text = "\
ipv6 access-list SIX
 permit ipv6 any any
class-map match-all both
 match dscp ef
 match cos 5
class-map match-all not-web
 match dscp ef
 match not protocol http
class-map match-any six
 match access-group name SIX
policy-map p
 class both
  bandwidth 1000
 class not-web
  bandwidth 2000
 class six
  bandwidth 3000
";
    let policy = lenient(text);
    let headers = slicewise_wire::Headers {
        ip_version: slicewise_wire::IpVersion::V4,
        dscp: 46,
        ..slicewise_wire::Headers::EMPTY
    };
    let is_met = ["both", "not-web", "six"].map(|name| {
        class(&policy.spec, name)
            .matches
            .as_ref()
            .unwrap()
            .matches(&headers)
    });
    assert_eq!(is_met, [false, true, false]);
    assert_snapshot!(listed(&policy.notes), @"
    1: skipped 2 lines: ipv6
    5: `match cos 5` is taken to match no packet, because headers do not tell
    8: `match not protocol http` is taken to match every packet, because headers do not tell
    10: `match access-group SIX` is taken to match no packet, because headers do not tell
    ");
}

#[test]
fn early_drop_in_a_queue_by_flow_is_left_out_on_request() {
    let text = running("clinic.cfg");
    assert_snapshot!(strict(&text).unwrap_err(), @"10:3: `fair-queue` and `random-detect` in one class are not supported: expected one of them; early drop by class is not modelled in a queue by flow: leave out this line or line 9");
    let policy = lenient(&text);
    let default = class(&policy.spec, "class-default");
    assert!(default.queue.flow_queue().is_some() && default.queue.wred().is_none());
    assert_snapshot!(listed(&policy.notes), @"
    10: `random-detect` is left out: `fair-queue` and `random-detect` in one class are not supported
    15: skipped 1 line: interface
    ");
}

#[test]
fn thresholds_and_units_of_other_systems_are_read() {
    let policy = strict(&running("mpls-vpn.cfg")).unwrap();
    let wred = class(&policy.spec, "c").queue.wred().unwrap();
    let ms = |ms| QueueLimitSpec::Time(Duration::from_millis(ms));
    let thresholds: Vec<_> = wred
        .curves
        .iter()
        .map(|(_, curve)| (curve.min, curve.max))
        .collect();
    assert_eq!(thresholds, [(ms(400), ms(500)), (ms(200), ms(250))]);
    // Of 1500 B at the 1 Mbit/s of the parent's shaper.
    let params = policy.spec.resolve(BitRate::new(10_000_000)).unwrap();
    let child = params.classes[0].child.as_ref().unwrap();
    let curve = &child.classes[1].queue.wred().unwrap().curves[16];
    assert_eq!((curve.min_packets, curve.max_packets), (33, 41));

    let ecn = strict(&running("wred-ecn.cfg")).unwrap();
    assert!(class(&ecn.spec, "video").queue.wred().unwrap().ecn);

    let policy = strict(&running("xr.cfg")).unwrap();
    let mbit = |mbit: u64| RateSpec::Absolute(BitRate::new(mbit * 1_000_000));
    let shape = class(&policy.spec, "class-default").shape.unwrap();
    assert_eq!(shape.rate, mbit(400));
    assert_eq!(
        class(&policy.spec, "GOLD").police.as_ref().unwrap().cir,
        mbit(100)
    );
}

#[test]
fn types_of_queueing_are_ordinary_policies() {
    let text = "\
class-map type queuing match-any q1
 match dscp ef
policy-map type queuing out
 class type queuing q1
  priority level 1
 class type queuing class-default
  bandwidth remaining percent 100
policy-map type inspect firewall
 class type inspect web
interface Ethernet1/1
 service-policy type queuing output out
";
    let policy = strict(text).unwrap();
    assert_eq!(policy.spec.name, "out");
    assert!(class(&policy.spec, "q1").priority.is_some());
    assert_eq!(policy.attached.len(), 1);
}
