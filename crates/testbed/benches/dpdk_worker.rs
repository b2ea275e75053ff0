//! Processor time of the worker of DPDK's `qos_sched`, by the library itself: `cargo bench -p slicewise-testbed`. It needs
//! gcc, pkg-config and libdpdk-dev of DPDK 22.11.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// 100 Gbit/s, in byte/s.
const FASTEST: u64 = 12_500_000_000;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = folder.join("src/device/dpdk/qos_sched");
    let program = std::env::temp_dir().join(format!("dpdk-worker-{}", std::process::id()));
    let flags = output(Command::new("pkg-config").args(["--cflags", "--libs", "libdpdk"]));
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let files = ["profile.c", "scheduler.c"].map(|name| sources.join(name));
    let mut compiler = Command::new("cc");
    compiler
        .args([
            "-O2",
            "-std=gnu11",
            "-w",
            "-D_GNU_SOURCE",
            "-DALLOW_EXPERIMENTAL_API",
            "-I",
        ])
        .arg(&sources)
        .arg("-o")
        .arg(&program)
        .arg(folder.join("benches/dpdk_worker.c"))
        .args(files)
        .args(flags.split_whitespace());
    output(&mut compiler);
    let profile = program.with_extension("cfg");
    std::fs::write(
        &profile,
        unlimited(&folder.join("../../studies/dpdk-hqos/queue-64.cfg")),
    )
    .expect("the profile is written");
    let measured = Command::new(&program)
        .arg(&profile)
        .stdin(Stdio::null())
        .status();
    let _ = std::fs::remove_file(&program);
    let _ = std::fs::remove_file(&profile);
    assert!(measured.is_ok_and(|status| status.success()));
}

/// The profile at `path` with rates that hold up no frame.
fn unlimited(path: &Path) -> String {
    let profile =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = profile
        .lines()
        .map(|line| match line.split_once("rate = ") {
            Some((key, _)) => format!("{key}rate = {FASTEST}\n"),
            None => format!("{line}\n"),
        });
    lines.collect()
}

fn output(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}
