//! Builds `peer.c` against the installed DPDK, and runs scripts.

#[path = "../../support/dpdk.rs"]
mod dpdk;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Words, separated by commas, for what must not be missing: `dpdk` is the library with what compiles against it.
const REQUIRED: &str = "SLICEWISE_REQUIRE";

/// The arguments of DPDK's environment: neither privileges nor huge pages are needed.
const ENVIRONMENT: [&str; 7] = [
    "--no-huge",
    "--no-pci",
    "--no-shconf",
    "--no-telemetry",
    "--log-level=4",
    "-m",
    "512",
];

/// The program, built.
pub(crate) struct Library {
    program: PathBuf,
}

impl Library {
    /// Build it; `None`, with a message, where that is not possible here.
    ///
    /// # Panics
    /// Where the library is missing although it is required, and where `peer.c` does not compile.
    pub(crate) fn build() -> Option<Self> {
        if !cfg!(target_arch = "x86_64") {
            eprintln!("skipped: the library's clock can be replaced on x86-64 only");
            return None;
        }
        if let Err(why) = dpdk::find() {
            let list = std::env::var(REQUIRED).unwrap_or_default();
            let is_required = list.split(',').any(|word| word == "dpdk");
            assert!(!is_required, "{REQUIRED}={list}, but {why}");
            eprintln!("skipped: {why}");
            return None;
        }
        let program = format!("librte_sched_peer_{}", std::process::id());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
        let options = ["-O2", "-Wno-deprecated-declarations"];
        dpdk::compile("tests/it/librte_sched/peer.c", &options, &program).unwrap();
        Some(Self { program })
    }

    /// What the library answers to a script, line by line.
    pub(crate) fn answers(&self, script: String) -> Vec<String> {
        let mut peer = Command::new(&self.program)
            .args(ENVIRONMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = peer.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
        let output = peer.wait_with_output().unwrap();
        // It may have ended before it read everything: then it says why.
        let _ = writer.join().unwrap();
        dpdk::succeeded(&output).unwrap();
        let answers = String::from_utf8_lossy(&output.stdout);
        answers.lines().map(str::to_owned).collect()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.program);
    }
}
