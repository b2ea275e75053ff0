//! What may be found at the path of a study: nothing of it blocks, fills the memory or panics.

#![cfg(unix)]

use slicewise_study::{MAX_FILE_BYTES, Study};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Messages about the file, without the name of the temporary folder.
fn report(folder: &Path, name: &str) -> String {
    let mistakes = Study::load(&folder.join(name)).unwrap_err().to_string();
    mistakes.replace(&folder.display().to_string(), "FOLDER")
}

/// Bytes that this thread has read so far; `None` where the kernel does not count them.
fn bytes_read() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    let read = counters.lines().find_map(|l| l.strip_prefix("rchar: "))?;
    Some(read.parse().unwrap())
}

#[test]
fn a_file_of_ten_gigabytes_is_refused_unread() {
    let folder = tempfile::tempdir().unwrap();
    // A hole: it takes no space.
    File::create(folder.path().join("huge.yaml"))
        .unwrap()
        .set_len(10_000_000_000)
        .unwrap();
    let before = bytes_read();
    let message = report(folder.path(), "huge.yaml");
    let after = bytes_read();
    insta::assert_snapshot!(message, @"
    error: this is larger than 16 MiB, the limit
    --> FOLDER/huge.yaml
    ");
    let Some((before, after)) = before.zip(after) else {
        eprintln!("skipped: the kernel does not count what a thread reads");
        return;
    };
    // The counters are themselves read, a few hundred bytes.
    assert!(after - before < 4_096, "{} B were read", after - before);
}

#[test]
fn the_largest_file_read_is_sixteen_mebibytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.yaml");
    let comment = vec![b'#'; usize::try_from(MAX_FILE_BYTES).unwrap()];
    fs::write(&path, &comment).unwrap();
    assert!(report(folder.path(), "large.yaml").contains("the file is empty"));
    fs::write(&path, [comment, b"#".to_vec()].concat()).unwrap();
    assert!(report(folder.path(), "large.yaml").contains("larger than 16 MiB"));
}

#[test]
fn a_folder_is_not_a_study() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("study.yaml")).unwrap();
    insta::assert_snapshot!(report(folder.path(), "study.yaml"), @"
    error: this is a folder, not a file
    --> FOLDER/study.yaml
    ");
}

#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe.yaml");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    insta::assert_snapshot!(report(folder.path(), "pipe.yaml"), @"
    error: this is a pipe, socket or device, not a file
    --> FOLDER/pipe.yaml
    ");
}

#[test]
fn an_endless_device_is_not_read() {
    let mistakes = Study::load(Path::new("/dev/zero")).unwrap_err();
    insta::assert_snapshot!(mistakes, @"
    error: this is a pipe, socket or device, not a file
    --> /dev/zero
    ");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(report(folder.path(), "missing.yaml"), @"
    error: no such file
    --> FOLDER/missing.yaml
    ");
}

#[test]
fn a_file_that_is_not_utf_8_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("latin.yaml"),
        b"name: x\ntitle: caf\xe9\n",
    )
    .unwrap();
    insta::assert_snapshot!(report(folder.path(), "latin.yaml"), @"
    error: this is not UTF-8 text: byte 18 is invalid, on line 2; save the file as UTF-8
    --> FOLDER/latin.yaml
    ");
}

#[test]
fn the_root_is_not_a_study() {
    assert!(Study::load(Path::new("/")).is_err());
    assert!(Study::load(Path::new("")).is_err());
    assert!(Study::load(Path::new("..")).is_err());
}

#[test]
fn a_byte_order_mark_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bom.yaml"), "\u{feff}titel: x\n").unwrap();
    assert!(report(folder.path(), "bom.yaml").contains("bom.yaml:1:1"));
}

#[test]
fn files_are_found_beside_the_file_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    fs::create_dir(&base).unwrap();
    fs::write(base.join("bad.cfg"), "policy-map p\n nonsense\n").unwrap();
    fs::write(base.join("base.yaml"), "policies: {p: {ios: bad.cfg}}\n").unwrap();
    fs::write(folder.path().join("top.yaml"), "extends: base/base.yaml\n").unwrap();
    let report = report(folder.path(), "top.yaml");
    assert!(report.contains("FOLDER/base/bad.cfg:2:2"), "{report}");
}

#[test]
fn the_digest_does_not_depend_on_where_the_study_lies() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("router-mechanisms")).unwrap();
    let mut names = vec!["router-mechanisms.yaml".to_owned()];
    for file in fs::read_dir(studies.join("router-mechanisms")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        names.push(format!("router-mechanisms/{name}"));
    }
    for name in &names {
        fs::copy(studies.join(name), copy.path().join(name)).unwrap();
    }
    let digest = |folder: &Path| {
        Study::load(&folder.join("router-mechanisms.yaml"))
            .unwrap()
            .digest()
            .to_owned()
    };
    assert_eq!(digest(&studies), digest(copy.path()));
    fs::write(
        copy.path().join("router-mechanisms/wred.cfg"),
        "policy-map other\n class class-default\n",
    )
    .unwrap();
    assert_ne!(digest(&studies), digest(copy.path()));
}

#[test]
fn a_capture_to_replay_is_part_of_the_digest() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\
name: replayed
link: {rate: 1 Gbit/s}
dut: {model: port, port_rate: 10 Mbit/s}
slices: {all: {match: {}, share: 100 %}}
sources: {capture: {slice: all, pattern: replay, pcap: traces/one.pcap, payload: 100 B}}
scenarios: {only: {}}
policies: {fifo: {none: true}}
repetitions: 1
duration: 1 s
";
    fs::write(folder.path().join("study.yaml"), text).unwrap();
    assert!(report(folder.path(), "study.yaml").contains("cannot read `FOLDER/traces/one.pcap`"));
    fs::create_dir(folder.path().join("traces")).unwrap();
    let pcap = folder.path().join("traces/one.pcap");
    let digest = |content: &[u8]| {
        fs::write(&pcap, content).unwrap();
        Study::load(&folder.path().join("study.yaml")).unwrap()
    };
    // The header of a capture of Ethernet, and records of two frames.
    let capture = |gap: u32| {
        let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1];
        let record = |at| [vec![0, at, 16, 60], vec![0; 4]].concat();
        let words = [&header[..], &record(0), &record(gap)].concat();
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes
    };
    let (one, other) = (digest(&capture(10)), digest(&capture(20)));
    assert_ne!(one.digest(), other.digest());
    let pattern = &one.scenarios[0].sources[0].pattern;
    let slicewise_study::PatternParams::Replay { pcap: path, sha256 } = pattern else {
        panic!("{pattern:?}");
    };
    assert_eq!((path, sha256.len()), (&pcap, 32));
    assert_ne!(one.inputs(0, 0, 1), other.inputs(0, 0, 1));
}
