//! Captures of many runs that several machines analyse, end to end.

use crate::shards::{assert_same, collect_into, contents, records_in};
use crate::support::{MEASURED, MS, PAIR, Packet, Sandbox, contains, packets, pcap, with, words};
use std::fs;

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}

/// Packets as sent and as received: some are equal, some are lost, reordered or received twice.
fn traffic(random: &mut Random) -> [Vec<Packet>; 2] {
    let mut sent = packets(500);
    for packet in &mut sent {
        packet.vlan = Some(if random.below(3) == 0 { 10 } else { 20 });
        packet.source_port += u16::try_from(random.below(4)).unwrap();
        if random.below(40) == 0 {
            packet.number = 1_000;
        }
    }
    let mut received = Vec::new();
    for packet in &sent {
        let copies = [0, 2].get(usize::try_from(random.below(15)).unwrap());
        for _ in 0..*copies.unwrap_or(&1) {
            let at_ns = packet.at_ns + MS + random.below(5 * MS);
            received.push(Packet { at_ns, ..*packet });
        }
    }
    received.sort_by_key(|packet| packet.at_ns);
    [sent, received]
}

/// Eight runs of different traffic, with two files of each receiving point.
pub fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let study = MEASURED.replace("repetitions: 2", "repetitions: 4");
    sandbox.write("lab.yaml", study);
    let mut random = Random(7);
    for scenario in ["calm", "crowded"] {
        for repetition in 0..4 {
            let [sent, received] = traffic(&mut random);
            let name = format!("shared/{scenario}-{repetition:03}");
            let (first, second) = received.split_at(received.len() / 2);
            sandbox.write(&format!("{name}-tx.pcap"), pcap(&sent));
            sandbox.write(&format!("{name}-rx1.pcap"), pcap(first));
            sandbox.write(&format!("{name}-rx2.pcap"), pcap(second));
        }
    }
    sandbox
}

/// Analyses shards, and returns the names of their folders.
fn analyse_shards(sandbox: &Sandbox, count: usize) -> Vec<String> {
    let names = (1..=count).map(|number| {
        let shard = format!("{number}/{count}");
        let (printed, noted) = sandbox.succeeded(&["analyse", "lab.yaml", "--shard", &shard]);
        let name = format!("results/lab-shard-{number}-of-{count}");
        contains(&printed, &format!("Shard {shard} is in {name}"));
        contains(&noted, &format!("shard {shard}: "));
        assert!(!sandbox.path(&name).join("report.html").exists());
        name
    });
    names.collect()
}

#[test]
fn shards_of_captures_put_together_have_the_bytes_of_one_analysis() {
    let sandbox = sandbox();
    sandbox.succeeded(&words("analyse lab.yaml --out whole"));
    fs::remove_file(sandbox.path("whole/host.json")).unwrap();
    sandbox.succeeded(&words("report whole"));
    for count in [1, 2, 3, 8] {
        let shards = analyse_shards(&sandbox, count);
        for shard in &shards {
            let runs = records_in(&sandbox.path(shard));
            assert!(
                (8 / count..=8usize.div_ceil(count)).contains(&runs),
                "{shard}"
            );
        }
        let results = format!("of-{count}");
        // In any order, and one of them twice.
        let mut named: Vec<String> = shards.iter().rev().cloned().collect();
        named.push(shards[0].clone());
        sandbox.succeeded(&collect_into(&results, &named));
        assert_same(&sandbox, "whole", &results);
    }
}

#[test]
fn runs_of_a_lost_shard_of_captures_are_missing_and_analyse_adds_them() {
    let sandbox = sandbox();
    let shards = analyse_shards(&sandbox, 3);
    let error = sandbox.refused(1, &collect_into("out", &shards[1..]));
    contains(
        &error,
        " of 8 runs are missing in out, such as policy shared, scenario ",
    );
    contains(
        &error,
        "with the options of the shards: `slicewise analyse … --out out`",
    );
    assert!(!sandbox.path("out/report.html").exists());
    let damaged = format!("{}/runs/shared/calm.jsonl", shards[0]);
    let changed = sandbox
        .read(&damaged)
        .replacen("\"lost_frames\":", "\"lost_frames\":1", 1);
    sandbox.write(&damaged, changed);
    let error = sandbox.refused(1, &collect_into("out", &shards));
    contains(
        &error,
        &format!("left out: `{damaged}`, line 1, cannot be trusted"),
    );
    contains(&error, "1 of 8 runs are missing in out");
    sandbox.succeeded(&words("analyse lab.yaml --out out"));
    assert_eq!(records_in(&sandbox.path("out")), 8);
    assert!(sandbox.path("out/report.html").exists());
}

#[test]
fn shards_of_other_captures_or_options_are_named_and_nothing_is_collected() {
    let sandbox = sandbox();
    let shards = analyse_shards(&sandbox, 2);
    let refuse_with = |options: &str| {
        let analyse = format!("analyse lab.yaml --shard 2/2 --out other {options}");
        sandbox.succeeded(&words(analyse.trim_end()));
        let named = [shards[0].clone(), "other".to_owned()];
        let error = sandbox.refused(2, &collect_into("out", &named));
        contains(
            &error,
            "the digest of inputs of policy shared, scenario calm is `",
        );
        contains(
            &error,
            &format!("in `{}`: nothing was collected", shards[0]),
        );
        assert!(!sandbox.path("out").exists());
        fs::remove_dir_all(sandbox.path("other")).unwrap();
    };
    refuse_with("--loss-timeout 1s");
    refuse_with("--interval 100ms");
    sandbox.write("shared/calm-000-tx.pcap", pcap(&packets(300)));
    refuse_with("");
    // Nothing of this changes what is there.
    let before = contents(&sandbox.path(&shards[0]));
    for (options, said) in [
        (
            "--shard 1/9",
            "there are 8 runs to be carried out, so of 9 shards some would have nothing to do: divide into at most 8",
        ),
        ("--shard 1/2 --json", "a shard is not judged"),
        (
            "--shard 1/2 --packets",
            "'--shard <I/N>' cannot be used with '--packets'",
        ),
    ] {
        let error = sandbox.refused(2, &words(&format!("analyse lab.yaml {options}")));
        contains(&error, said);
    }
    let error = sandbox.refused(2, &with(&PAIR, &["--shard", "1/2"]));
    contains(&error, "cannot be used with");
    assert_eq!(contents(&sandbox.path(&shards[0])), before);
}
