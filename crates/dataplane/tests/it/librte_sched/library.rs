//! Builds `peer.c` against the installed DPDK, and runs scripts.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The version whose arithmetic the scheduler has.
const VERSION: &str = "22.11";

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
    /// Build it.
    ///
    /// # Errors
    /// In one sentence, what is missing.
    pub(crate) fn build() -> Result<Self, String> {
        if !cfg!(target_arch = "x86_64") {
            return Err("the library's clock can be replaced on x86-64 only".to_owned());
        }
        let version = pkg_config("--modversion")?.join(" ");
        if !version.starts_with(VERSION) {
            return Err(format!(
                "the installed DPDK is {version}, and {VERSION} is needed"
            ));
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/librte_sched/peer.c");
        let program = format!("librte_sched_peer_{}", std::process::id());
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
        let output = Command::new("cc")
            .args(["-O2", "-Wno-deprecated-declarations", "-o"])
            .args([&program, &source])
            .args(pkg_config("--cflags")?)
            .args(pkg_config("--libs")?)
            .output()
            .map_err(|_| "cc (a C compiler) is not installed".to_owned())?;
        assert!(output.status.success(), "{}", complaint(&output));
        Ok(Self { program })
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
        assert!(output.status.success(), "{}", complaint(&output));
        let answers = String::from_utf8_lossy(&output.stdout);
        answers.lines().map(str::to_owned).collect()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.program);
    }
}

fn pkg_config(question: &str) -> Result<Vec<String>, String> {
    let output = Command::new("pkg-config")
        .args([question, "libdpdk"])
        .output()
        .map_err(|_| "pkg-config is not installed".to_owned())?;
    if !output.status.success() {
        return Err("pkg-config does not know libdpdk (Debian: package libdpdk-dev)".into());
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    Ok(answer.split_whitespace().map(str::to_owned).collect())
}

fn complaint(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    format!("{}: {}", output.status, complaint.trim())
}
