//! Programs in C against the installed DPDK, for a test and for benchmarks.

use std::path::Path;
use std::process::{Command, Output};

/// The release whose arithmetic the scheduler has.
const RELEASE: &str = "22.11";

/// The version of DPDK that programs are linked to.
///
/// # Errors
/// In one sentence, what is missing: pkg-config, the library of this release, or a compiler.
pub fn find() -> Result<String, String> {
    let version = pkg_config("--modversion")?.join(" ");
    if version != RELEASE && !version.starts_with(&format!("{RELEASE}.")) {
        return Err(format!(
            "the installed DPDK is {version}, and {RELEASE} is needed"
        ));
    }
    let compiler = Command::new("cc").arg("--version").output();
    compiler.map_err(|_| "cc (a C compiler) is not installed".to_owned())?;
    Ok(version)
}

/// Compile `source`, a path in the folder of this crate, into `program`.
///
/// # Errors
/// What pkg-config or the compiler complains about.
pub fn compile(source: &str, options: &[&str], program: &Path) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let output = Command::new("cc")
        .args(options)
        .args(["-DALLOW_EXPERIMENTAL_API", "-o"])
        .args([program, &path])
        .args(pkg_config("--cflags")?)
        .args(pkg_config("--libs")?)
        .arg("-lm")
        .output()
        .map_err(|error| format!("cc: {error}"))?;
    succeeded(&output).map_err(|why| format!("cc cannot compile {source}: {why}"))
}

/// What a program that failed complained about.
///
/// # Errors
/// The last line of its standard error.
pub fn succeeded(output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it failed without a message").trim();
    Err(format!("{last} ({})", output.status))
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
