//! `slicewise analyse`: what it says of captures, files and arguments that are damaged, wrong or missing.

use crate::support::{
    self, MEASURED, MS, PAIR, START_NS, analysed, both_ways, frame, frames, later, packets, pair,
    pcap, with, words,
};
use slicewise_capture::write::{PcapngParams, PcapngWriter};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn a_file_that_is_no_capture_is_refused_and_told_what_it_is() {
    let sandbox = pair();
    sandbox.write("empty.pcap", "");
    sandbox.write("letter.txt", "Dear all, captures are attached.");
    sandbox.write("folder/tx.pcap", "");
    let mut stderr = String::new();
    for file in words("folder empty.pcap letter.txt missing.pcap none*.pcap [.pcap") {
        stderr += &sandbox.refused(2, &["analyse", "--sent", "tx.pcap", "--received", file]);
    }
    insta::assert_snapshot!(stderr, @"
    error: folder: is a directory: name the capture files in it, as in `DIR/*.pcap`
    error: empty.pcap: byte 0: the file is empty; leave it out, or capture again
    error: letter.txt: byte 0: neither pcap nor pcapng, but text; capture with `tcpdump -w FILE`, which writes pcap
    error: missing.pcap: no such file
    error: none*.pcap: no file matches
    error: [.pcap: invalid range pattern
    ");
    assert!(!sandbox.path("results/captures/report.html").exists());
}

#[test]
fn what_lies_before_damage_is_reported_and_marked_incomplete() {
    let sandbox = pair();
    let sound = fs::read(sandbox.path("rx.pcap")).unwrap();
    sandbox.write("rx.pcap", &sound[..sound.len() - 10]);
    let (stderr, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(stderr, @"note: rx.pcap could not be read beyond byte 9992: the file ends after 102 of the 112 bytes of a packet. The figures cover only what precedes it.");
    // What was sent after the damage is unknown.
    assert_eq!(frames(&record, 0), [89, 89, 0]);
    let incomplete = &record["capture"]["points"][1]["incomplete"][0];
    let last_record = sound.len() - 16 - 96;
    assert_eq!(incomplete["offset_bytes"], last_record);
    assert!(
        sandbox
            .read("out/report.html")
            .contains("rx.pcap could not be read beyond byte")
    );

    let mut huge = sound.clone();
    huge.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ]);
    sandbox.write("rx.pcap", huge);
    let (stderr, record) = analysed(&sandbox, &["--replace"]);
    insta::assert_snapshot!(stderr, @"note: rx.pcap could not be read beyond byte 10 112: a packet header states 4294967295 captured bytes (at most 262144 are possible): the file is damaged from here on. The figures cover only what precedes it.");
    assert_eq!(frames(&record, 0), [90, 90, 0]);
}

#[test]
fn packets_of_an_interface_that_was_not_described_are_no_packets() {
    let sandbox = pair();
    let params = PcapngParams {
        comment: "",
        application: "",
        interface: "",
        snap_bytes: 96,
    };
    let mut writer = PcapngWriter::new(Vec::new(), &params).unwrap();
    for packet in packets(5) {
        writer
            .write_packet(START_NS + packet.at_ns, &frame(&packet), 142)
            .unwrap();
    }
    let bytes = writer.finish().unwrap();
    let length = |at: usize| u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    let section = length(0);
    let without = [&bytes[..section], &bytes[section + length(section)..]].concat();
    sandbox.write("rx.pcap", without);
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the received side holds no packets (rx.pcap: byte 32: a packet refers to interface 0, but only 0 interfaces were described before it: its link type and time unit are unknown; the packets before that were read)");
}

#[test]
fn records_out_of_order_are_counted_in_a_note() {
    let sandbox = pair();
    let mut sent = packets(100);
    sent.swap(40, 41);
    sandbox.write("tx.pcap", pcap(&sent));
    let (stderr, record) = analysed(&sandbox, &[]);
    insta::assert_snapshot!(stderr, @"note: At sent, 1 packet was recorded out of order, by up to 1 ms: packets were sorted by time.");
    assert_eq!(frames(&record, 0), [100, 90, 10]);
}

#[test]
fn files_of_different_link_layers_are_of_one_point() {
    let sandbox = pair();
    let sent = packets(100);
    // Raw IP: what comes behind the Ethernet header.
    let mut raw = pcap(&[]);
    raw[20..24].copy_from_slice(&101_u32.to_le_bytes());
    for packet in &later(&sent[50..90], 2 * MS) {
        let ip = &frame(packet)[14..];
        let at = START_NS + packet.at_ns;
        let nanos = u32::try_from(at % 1_000_000_000).unwrap();
        let seconds = u32::try_from(at / 1_000_000_000).unwrap();
        let length = u32::try_from(ip.len()).unwrap();
        for word in [seconds, nanos, length, length] {
            raw.extend(word.to_le_bytes());
        }
        raw.extend(ip);
    }
    sandbox.write("rx.pcap", pcap(&later(&sent[..50], 2 * MS)));
    sandbox.write("raw.pcap", raw);
    let more = ["raw.pcap", "--out", "out"];
    let (_, stderr) = sandbox.succeeded(&with(&PAIR, &more));
    assert_eq!(stderr, "");
    assert_eq!(frames(&sandbox.record("out"), 0), [100, 90, 10]);
}

#[test]
fn captures_that_have_nothing_to_do_with_each_other_are_refused() {
    let sandbox = pair();
    let mut other = packets(20);
    other.iter_mut().for_each(|packet| packet.number += 1000);
    sandbox.write("rx.pcap", pcap(&other));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the two sides share no packet: 100 were sent and 20 received, none of them equal. Are the captures from the same run? Are the clocks of the two ends far apart? Is there address translation, or a tunnel, between them?");
    sandbox.write("rx.pcap", pcap(&[]));
    insta::assert_snapshot!(sandbox.refused(2, &PAIR), @"error: the received side holds no packets");
    assert!(!sandbox.path("results/captures/report.html").exists());
}

#[test]
fn a_file_given_twice_is_refused_by_whatever_name() {
    let sandbox = pair();
    let twice =
        |sent, received| sandbox.refused(2, &["analyse", "--sent", sent, "--received", received]);
    insta::assert_snapshot!(twice("tx.pcap", "tx.pcap"), @"error: tx.pcap: given twice; each measuring point needs its own files");
    insta::assert_snapshot!(twice("tx.pcap", "./tx.pcap"), @"error: ./tx.pcap: given twice; each measuring point needs its own files");
    insta::assert_snapshot!(twice("-", "-"), @"error: -: given twice; each measuring point needs its own files");
}

#[test]
fn ends_that_are_exchanged_are_told() {
    let sandbox = pair();
    let exchanged = words("analyse --sent rx.pcap --received tx.pcap --out out");
    let (_, stderr) = sandbox.succeeded(&exchanged);
    insta::assert_snapshot!(stderr, @"
    note: The two clocks disagree: each of 90 frames arrived before it was sent, by 2 ms at worst. No delays are reported or judged; by the method of floor of delay, one direction (Moon, Skelly & Towsley 1999) the receiving clock was 2 ms behind the sending one at the start, and drifted by 0 parts per million. `--accept-clock-estimate` corrects delays by that, if the smallest delay is zero (delays are relative to the smallest, not one-way delays).
    note: Every frame arrived before it was sent: if both ends share one clock, the two captures have been exchanged.
    note: 10 frames were seen at the receiving end only: sent before the capture at the sending end began, missed by it, sent by another host, or changed on the way.
    ");
    // Here packets went both ways, three of four from tx to rx.
    let sandbox = both_ways(0);
    let (_, stderr) = sandbox.succeeded(&exchanged);
    insta::assert_snapshot!(stderr, @"note: More bytes went from the receiving end to the sending one than the other way, as in a download: they are in no figure of a slice. To measure them, give the files the other way round, `--sent` the capture of the end that sends the data.");
}

#[test]
fn a_folder_of_runs_needs_runs_and_slices() {
    let sandbox = pair();
    fs::create_dir(sandbox.path("wire")).unwrap();
    sandbox.write("slices.yaml", "slices: {all: {match: {}}}");
    let analyse = ["analyse", "--runs", "wire", "--slices", "slices.yaml"];
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: wire: no runs here: expected <policy>/<scenario>/rep-000/ with captures called sent* and received* below it");
    insta::assert_snapshot!(sandbox.refused(2, &analyse[..3]), @"
    error: the following required arguments were not provided:
      --slices <FILE>

    Usage: slicewise analyse --slices <FILE> <STUDY|--runs <DIR>|--sent <FILE>...>

    For more information, try '--help'.
    ");
    sandbox.write("wire/shared/calm/rep-000/tx.pcap", "");
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: wire/shared/calm/rep-000: no file called received* or rx*");
    sandbox.write("wire/shared/calm/first/tx.pcap", "");
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: wire/shared/calm/first: not the name of a repetition: use rep-000, rep-001 and so on");
    sandbox.write("lab.yaml", MEASURED);
    fs::remove_dir_all(sandbox.path("wire")).unwrap();
    sandbox.write("wire/shared/night/0/tx.pcap", "");
    sandbox.write("wire/shared/night/0/rx.pcap", "");
    let of_lab = ["analyse", "--runs", "wire", "--slices", "lab.yaml"];
    insta::assert_snapshot!(sandbox.refused(2, &of_lab), @"error: there are captures of scenario `night`, which the study does not define");
}

#[test]
fn a_file_of_slices_that_is_none_is_refused() {
    let sandbox = pair();
    sandbox.write("letter.txt", "Dear all,\nslices are attached.\n");
    sandbox.write("typo.yaml", "slices: {gold: {mach: {vlan: 10}}}\n");
    let stderr = |file| sandbox.refused(2, &with(&PAIR, &["--slices", file]));
    insta::assert_snapshot!(stderr("letter.txt"), @"
    error: a study file holds keys and values, for example `name: my-study`
     --> letter.txt:1:1
      |
    1 | Dear all,
      | ^^^^^^^^^

    error: 1 mistake in letter.txt
    ");
    insta::assert_snapshot!(stderr("typo.yaml"), @"
    error: `mach` is not a setting here
     --> typo.yaml:1:17
      |
    1 | slices: {gold: {mach: {vlan: 10}}}
      |                 ^^^^
      |
      = help: did you mean `match`?

    error: 1 mistake in typo.yaml
    ");
    insta::assert_snapshot!(stderr("missing.yaml"), @"
    error: no such file
    --> missing.yaml

    error: 1 mistake in missing.yaml
    ");
    insta::assert_snapshot!(stderr("tx.pcap"), @"
    error: this is not UTF-8 text: byte 2 is invalid, on line 1; save the file as UTF-8
    --> tx.pcap

    error: 1 mistake in tx.pcap
    ");
}

#[test]
fn packets_of_no_slice_are_told() {
    let sandbox = pair();
    sandbox.write("slices.yaml", "slices: {gold: {match: {vlan: 10}}}\n");
    let (stderr, _) = analysed(&sandbox, &["--slices", "slices.yaml"]);
    insta::assert_snapshot!(stderr, @"note: 100 frames were sent that no slice matches: they are in no figure of a slice.");
}

#[test]
fn standard_input_is_read_once() {
    let sandbox = pair();
    let from_stdin = |more: &[&str]| {
        let mut command = sandbox.command(&["analyse", "--sent", "-", "--received", "rx.pcap"]);
        command
            .args(more)
            .stdin(File::open(sandbox.path("tx.pcap")).unwrap());
        command.output().unwrap()
    };
    let output = from_stdin(&["--out", "out"]);
    assert!(output.status.success(), "{}", support::text(&output.stderr));
    assert_eq!(frames(&sandbox.record("out"), 0), [100, 90, 10]);
    sandbox.write("via.pcap", fs::read(sandbox.path("rx.pcap")).unwrap());
    let refused = |more: &[&str]| {
        let output = from_stdin(more);
        assert_eq!(output.status.code(), Some(2));
        support::text(&output.stderr)
    };
    insta::assert_snapshot!(refused(&["--via", "via.pcap"]), @"error: standard input and pipes can be read only once, but every hop is measured in a separate pass: write them to files first, and give those");
    insta::assert_snapshot!(refused(&["--accept-clock-estimate", "--packets"]), @"error: standard input and pipes can be read only once, but estimating the clocks requires a separate pass: write them to files first, and give those");
}

#[test]
fn results_of_other_captures_are_not_overwritten_unless_that_is_said() {
    let sandbox = pair();
    let before = analysed(&sandbox, &["--packets"]).1;
    sandbox.write("rx.pcap", pcap(&later(&packets(100)[..80], MS)));
    let analyse = with(&PAIR, &["--out", "out"]);
    insta::assert_snapshot!(sandbox.refused(2, &analyse), @"error: `out` holds 1 run with other inputs: name another folder for the new results (`--out DIR`), or discard these results (`--replace`)");
    assert_eq!(sandbox.record("out"), before);
    let (_, record) = analysed(&sandbox, &["--replace"]);
    assert_eq!(frames(&record, 0), [100, 80, 20]);
    assert!(
        !sandbox.path("out/packets").exists(),
        "packets of the other captures"
    );

    sandbox.write("precious/letter.txt", "dear");
    for more in [&["--packets"][..], &["--replace"]] {
        sandbox.refused(2, &with(&with(&PAIR, &["--out", "precious"]), more));
        assert_eq!(fs::read_dir(sandbox.path("precious")).unwrap().count(), 1);
    }
}

#[test]
fn intervals_that_do_not_fit_are_refused() {
    let sandbox = pair();
    let stderr = |more: &[&str]| sandbox.refused(2, &with(&PAIR, more));
    insta::assert_snapshot!(stderr(&["--interval", "30ms", "--duration", "1s"]), @"error: the run of 1 s is not a whole number of intervals of 30 ms");
    insta::assert_snapshot!(stderr(&["--interval", "0ms"]), @"error: cannot build the time series: the interval of the series must not be zero");
    insta::assert_snapshot!(stderr(&["--loss-timeout", "0s"]), @"error: --loss-timeout: must be longer than zero");
    insta::assert_snapshot!(stderr(&["--reference", "calm"]), @"error: --reference calm: no scenario has that name, only as-captured");
}

#[cfg(unix)]
#[test]
fn an_analysis_that_is_stopped_leaves_no_report_and_goes_on_later() {
    let sandbox = pair();
    let many = pcap(&packets(30_000));
    let analyse = words("analyse --sent - --received rx.pcap --packets --out out");
    let mut command = sandbox.command(&analyse);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // More than pipe and buffers hold: once it is written, reading has begun.
    input.write_all(&many).unwrap();
    let stop = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(stop.unwrap().success());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let heard = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains("stopping"));
    assert!(heard.is_some());
    drop(input);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    for name in words("report.html runs data packets/as-captured/as-captured/rep-000") {
        assert!(!sandbox.path("out").join(name).exists(), "{name}");
    }
    let mut command = sandbox.command(&analyse);
    let again = command
        .stdin(File::open(sandbox.path("tx.pcap")).unwrap())
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", support::text(&again.stderr));
}
