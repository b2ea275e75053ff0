//! Builds `ns3_tcp.cc` against the installed ns-3 and runs it.

use std::path::Path;
use std::process::{Command, Output};

/// What the program is linked with.
const MODULES: [&str; 4] = [
    "ns3-applications",
    "ns3-internet",
    "ns3-point-to-point",
    "ns3-traffic-control",
];

/// A program per version of the benchmark; prints a line of JSON for `flows` connections in `seconds` of simulated time.
///
/// # Errors
/// What is missing, in one sentence.
pub fn run(flows: u32, seconds: f64) -> Result<String, String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ns3_tcp");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/ns3_tcp.cc");
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs"])
        .args(MODULES)
        .output()
        .map_err(|_| "pkg-config is not installed".to_owned())?;
    let missing = "pkg-config does not know ns-3 (Debian: packages libns3-dev libgsl-dev)";
    let flags = text(&flags).ok_or(missing)?;
    let built = Command::new("c++")
        .args(["-O3", "-std=c++17", "-o"])
        .args([&program, &source])
        .args(flags.split_whitespace())
        .output()
        .map_err(|_| "c++ (a C++ compiler) is not installed".to_owned())?;
    text(&built).ok_or_else(|| last_line(&built))?;
    let answer = Command::new(&program)
        .arg(format!("--flows={flows}"))
        .arg(format!("--seconds={seconds}"))
        .output()
        .map_err(|error| error.to_string())?;
    text(&answer).ok_or_else(|| last_line(&answer))
}

fn text(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.trim().to_owned())
}

fn last_line(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty());
    last.unwrap_or("it failed without a message").to_owned()
}
