//! A folder of the state file that is full. As root; otherwise skipped with a message.

use crate::support::gateway::{Gateway, params};
use crate::support::server::Server;
use crate::support::{directions, slice, wait_until};
use slicewise_agent::Agent;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// A file system of 128 KiB, unmounted in the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where it cannot be mounted.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]);
        let mounted = mount.arg(folder.path()).status();
        let is_mounted = mounted.is_ok_and(|status| status.success());
        if !is_mounted {
            eprintln!("skipped: no file system can be mounted");
        }
        is_mounted.then_some(Self(folder))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Takes all that is left.
    fn fill(&self) {
        let mut file = fs::File::create(self.path("filler")).unwrap();
        let block = [1; 512];
        while file.write_all(&block).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.path("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_gateway_whose_disk_is_full_carries_changes_out_and_acknowledges_them_once_there_is_room() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let state = disk.path("state");
    let server = Server::start();
    let gateway = Gateway::start(&server.url, &state).unwrap();
    server.put(slice("a", 1, 1_000));
    server.wait_for(1);
    disk.fill();
    let names: Vec<String> = (0..60).map(|number| format!("s{number:02}")).collect();
    for (name, vlan) in names.iter().zip(10..) {
        server.put(slice(name, vlan, 1_000));
    }
    wait_until("all are in force", || {
        gateway.names().is_some_and(|found| found.len() == 61)
    });
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    // As far as there was room in the block of the file.
    assert!(server.acknowledged() < 61);
    assert!(!disk.path("state.new").exists(), "it takes no room");
    // It is stopped, and starts again with what was on the disk, full as that is.
    let acknowledged = server.acknowledged();
    gateway.stop();
    wait_until("the file is free", || {
        server.put(slice("b", 2, 1_000));
        Agent::open(params(&server.url, &state), directions()).is_ok()
    });
    let gateway = crate::changes::retry(|| Gateway::start(&server.url, &state).ok());
    wait_until("everything is in force", || {
        gateway.names().is_some_and(|found| found.len() == 62)
    });
    assert!(server.acknowledged() >= acknowledged);
    disk.make_room();
    let generation = server.with(|state| state.generation);
    server.wait_for(generation);
    let seen = gateway.stop();
    assert_eq!((seen.arrived, seen.reordered), (seen.left, 0));
}

#[test]
fn a_gateway_without_a_state_does_not_start_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    disk.fill();
    let state = disk.path("state");
    let refused = Agent::open(params("http://127.0.0.1:9", &state), directions());
    let refused = refused.unwrap_err().to_string();
    let refused = refused.replace(disk.0.path().to_str().unwrap(), "FOLDER");
    insta::assert_snapshot!(refused, @"FOLDER/state: cannot write to it: No space left on device (os error 28); the gateway keeps its slices in this file, so it needs a folder to which it may write");
    disk.make_room();
    Agent::open(params("http://127.0.0.1:9", &state), directions()).unwrap();
}

#[test]
fn a_damaged_state_on_a_full_disk_is_left_alone() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let state = disk.path("state");
    let server = Server::start();
    let gateway = Gateway::start(&server.url, &state).unwrap();
    for vlan in 1..30 {
        server.put(slice(&format!("s{vlan:02}"), vlan, 1_000));
    }
    server.wait_for(29);
    gateway.stop();
    wait_until("the file is free", || {
        server.put(slice("s01", 1, 1_000));
        Agent::open(params(&server.url, &state), directions()).is_ok()
    });
    let mut bytes = fs::read(&state).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    fs::write(&state, &bytes).unwrap();
    disk.fill();
    let refused = Agent::open(params("http://127.0.0.1:9", &state), directions());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("it is damaged, and cannot be copied: No space left"));
    assert_eq!(fs::read(&state).unwrap(), bytes);
    assert!(
        !disk.path("state.damaged").exists(),
        "a part of it takes room"
    );
    disk.make_room();
    Agent::open(params("http://127.0.0.1:9", &state), directions()).unwrap();
    assert!(disk.path("state.damaged").exists());
}
