//! Damaged backups, stores and write-ahead logs.

use crate::support::{Server, TestStore, each_with_link, execute, slice, try_put, with_link};
use slicewise_api::Client;
use slicewise_controller::{ControllerError, Location, run_backup, run_check, run_restore};
use std::path::{Path, PathBuf};

fn put(client: &Client, name: &str, vlan: u16, rate_mbps: u64) {
    let slice = slice(name, vlan, rate_mbps);
    try_put(client, &slice).unwrap();
}

/// A backup of a store with one slice of 50 Mbit/s.
fn backed_up(folder: &Path) -> (PathBuf, Vec<u8>) {
    let from = TestStore::sqlite();
    let (_server, client) = with_link(&from);
    put(&client, "gold", 1, 50);
    let file = folder.join("backup");
    run_backup(&from.location, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    (file, bytes)
}

#[test]
fn a_backup_with_one_bit_changed_is_refused_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (file, bytes) = backed_up(folder.path());
    let to = TestStore::sqlite();
    // Every seventh byte, and all of the last line.
    let all = 0..bytes.len();
    for at in all.filter(|at| at % 7 == 0 || at + 120 > bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&file, damaged).unwrap();
        let refused = run_restore(&to.location, &file);
        let Err(ControllerError::Backup(error)) = refused else {
            panic!("byte {at}: {refused:?}");
        };
        assert!(error.to_string().contains("backup, line "), "{error}");
    }
    // The one that had 110 Mbit/s guaranteed on 100: every number is one that could be.
    let text = String::from_utf8(bytes.clone()).unwrap();
    let changed = text.lines().map(|line| match line.contains("class_sums") {
        true => line.replace("\"rate_bps\":50000000", "\"rate_bps\":10000000"),
        false => line.to_owned(),
    });
    let changed = changed.collect::<Vec<_>>().join("\n") + "\n";
    assert_ne!(changed, text);
    std::fs::write(&file, changed).unwrap();
    let refused = run_restore(&to.location, &file).unwrap_err().to_string();
    assert!(refused.contains("the checksum differs"), "{refused}");
    std::fs::write(&file, bytes).unwrap();
    run_restore(&to.location, &file).unwrap();
}

#[test]
fn sums_that_are_wrong_are_found_and_a_backup_and_restore_counts_them_anew() {
    each_with_link(|store, server, client| {
        put(&client, "gold", 1, 50);
        put(&client, "silver", 2, 1);
        assert_eq!(run_check(&store.location).unwrap(), Vec::<String>::new());
        drop(server);
        for statement in [
            "UPDATE class_sums SET rate_bps = rate_bps - 40000000, link_rate_bps = link_rate_bps - 40000000",
            "UPDATE tenants SET slices = 1",
        ] {
            execute(store, statement.to_owned()).unwrap();
        }
        let findings = run_check(&store.location).unwrap().join("\n");
        insta::assert_snapshot!(findings, @r"
            tenant `default`: the store has 1 slices and 51000000 bit/s, and its slices need 2 slices and 51000000 bit/s
            link `uplink`, forward, delay of 50 ms: the store has 2 slices, 11000000 bit/s and 6088 B (as the link counts: 11000000 bit/s and 6088 B), and its slices need 2 slices, 51000000 bit/s and 6088 B (as the link counts: 51000000 bit/s and 6088 B)
            ");
        // What is promised by them is too much.
        let server = Server::start(store);
        put(&server.client(), "large", 3, 80);
        drop(server);
        let findings = run_check(&store.location).unwrap().join("\n");
        let promised =
            "link `uplink`, forward: more is promised than it can hold: guarantees 131 Mbit/s";
        assert!(findings.contains(promised), "{findings}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup");
        run_backup(&store.location, &file).unwrap();
        let restored = TestStore::sqlite();
        let said = run_restore(&restored.location, &file).unwrap();
        assert_eq!(said.findings.join("\n"), findings);
        // The sums are right; what was promised is still too much.
        let left = run_check(&restored.location).unwrap();
        assert!(left.len() == 1 && left[0].contains(promised), "{left:?}");
    });
}

#[test]
fn a_file_that_is_empty_or_of_something_else_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let store = TestStore::at(Location::Sqlite(path.clone()));
    let refused = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        let error = run_check(&store.location).unwrap_err();
        assert!(error.is_mistake(), "{error}");
        assert!(std::fs::read(&path).unwrap() == content, "it is left alone");
        error
            .to_string()
            .replace(folder.path().to_str().unwrap(), "FOLDER")
    };
    insta::assert_snapshot!(refused(b""), @"the store sqlite:FOLDER/store.sqlite is an empty file: if it was a store, its slices and tokens are lost, so restore a backup into a new one; otherwise remove the file, and a new store is made");
    insta::assert_snapshot!(refused(&[7; 20_000]), @"the store sqlite:FOLDER/store.sqlite is not a SQLite database: name one, or a file that does not exist, to make it");
    std::fs::remove_file(&path).unwrap();
    execute(&store, "CREATE TABLE other (a BIGINT)".to_owned()).unwrap();
    let other = std::fs::read(&path).unwrap();
    insta::assert_snapshot!(refused(&other), @"the store sqlite:FOLDER/store.sqlite is a database of something else, with tables that are not of a controller: name a store of a controller, or a file that does not exist, to make one; nothing was changed");
}

#[test]
fn a_damaged_write_ahead_log_is_refused_unless_only_its_last_transaction_is_torn() {
    let store = TestStore::sqlite();
    let Location::Sqlite(path) = &store.location else {
        unreachable!()
    };
    let (server, client) = with_link(&store);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("store.sqlite");
    let log_of = |path: &Path| path.with_extension("sqlite-wal");
    let frame = 24 + 4_096;
    let (mut whole, mut log) = (Vec::new(), Vec::new());
    // Once all of it is moved, which takes longer than these changes where nothing else runs, the log begins anew.
    for round in 1..100 {
        for vlan in 1..30 {
            put(&client, &format!("s{vlan}"), vlan, 1 + round % 2);
        }
        // As after a crash: the file and its log, which is not moved.
        whole = std::fs::read(path).unwrap();
        log = std::fs::read(log_of(path)).unwrap();
        let salts = log[16..24].to_owned();
        let is_own = |one: &&[u8]| one[8..16] == salts;
        let frames = log[32..].chunks_exact(frame).take_while(is_own).count();
        log.truncate(32 + frames * frame);
        if frames > 200 {
            break;
        }
    }
    drop((server, client));
    let crashed = TestStore::at(Location::Sqlite(copy.clone()));
    let opened = |log: &[u8]| {
        let _ = std::fs::remove_file(copy.with_extension("sqlite-shm"));
        std::fs::write(&copy, &whole).unwrap();
        std::fs::write(log_of(&copy), log).unwrap();
        run_check(&crashed.location).map_err(|error| error.to_string())
    };
    assert_eq!(opened(&log), Ok(Vec::new()));
    let frames = (log.len() - 32) / frame;
    assert!(frames > 200, "{frames}");
    let damaged = |at: usize| {
        let mut log = log.clone();
        log[at] ^= 0x10;
        log
    };
    // Magic, page size, salts and checksum of the header, then each field and the content of frames.
    let mut places = vec![0, 9, 17, 25];
    for number in [0, 1, frames / 2, frames - 100] {
        places.extend([0, 5, 9, 17, 24, 4_000].map(|at| 32 + number * frame + at));
    }
    for at in places {
        let refused = opened(&damaged(at));
        let frame = at.saturating_sub(32) / frame;
        let Err(refused) = refused else {
            panic!("byte {at}, frame {frame} of {frames}: {refused:?}");
        };
        let is_said = refused.contains("its write-ahead log (`-wal`) is damaged");
        assert!(is_said, "{at}: {refused}");
    }
    // The last transaction, and a log that ends in the middle of it.
    assert_eq!(opened(&damaged(log.len() - 4_000)), Ok(Vec::new()));
    assert_eq!(opened(&log[..log.len() - 100]), Ok(Vec::new()));
    // Frames of before the log began anew are none of it.
    let mut anew = log.clone();
    for number in frames / 2..frames {
        anew[32 + number * frame + 8] ^= 0x10;
    }
    // Without them the store may be of two states, as it never is.
    if let Err(refused) = opened(&anew) {
        assert!(!refused.contains("write-ahead log"), "{refused}");
    }
}

#[test]
fn a_store_that_is_cut_off_or_overwritten_is_never_taken_for_a_new_one() {
    let store = TestStore::sqlite();
    let Location::Sqlite(path) = &store.location else {
        unreachable!()
    };
    let (server, client) = with_link(&store);
    for vlan in 1..40 {
        put(&client, &format!("s{vlan}"), vlan, 1);
    }
    drop((server, client));
    let whole = std::fs::read(path).unwrap();
    for length in [
        100,
        4_095,
        4_096,
        8_192,
        whole.len() / 2,
        whole.len() - 4_096,
    ] {
        std::fs::write(path, &whole[..length]).unwrap();
        let error = run_check(&store.location).map(|findings| assert!(!findings.is_empty()));
        assert!(error.is_err() || length > 8_192, "{length}");
    }
    let mut overwritten = whole.clone();
    overwritten[4_096..].fill(0x5a);
    std::fs::write(path, overwritten).unwrap();
    run_check(&store.location).unwrap_err();
    std::fs::write(path, whole).unwrap();
    assert_eq!(run_check(&store.location).unwrap(), Vec::<String>::new());
}

#[test]
fn several_processes_may_make_a_store_at_the_same_moment() {
    for _ in 0..20 {
        let store = TestStore::sqlite();
        let checks: Vec<_> = (0..4)
            .map(|_| {
                let location = store.location.clone();
                std::thread::spawn(move || run_check(&location).unwrap())
            })
            .collect();
        for check in checks {
            assert_eq!(check.join().unwrap(), Vec::<String>::new());
        }
        let Location::Sqlite(path) = &store.location else {
            unreachable!()
        };
        let folder = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let left = folder.map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left
            .filter(|name| name.to_string_lossy().ends_with(".new"))
            .collect();
        assert_eq!(left.len(), 0, "{left:?}");
    }
}
