//! The Python module, by its own tests and with this command.

use crate::support::{is_installed, text};
use std::path::Path;
use std::process::Command;

/// Names an interpreter that has what `python/tests/requirements.txt` lists.
const INTERPRETER: &str = "SLICEWISE_PYTHON";

#[test]
fn the_python_module_passes_its_tests() {
    let interpreter = std::env::var(INTERPRETER).unwrap_or_else(|_| "python3".to_owned());
    if !is_installed(&interpreter) {
        println!("skipped: {interpreter} is not installed");
        return;
    }
    let is_new = ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"];
    let is_new = Command::new(&interpreter).args(is_new).status().unwrap();
    if !is_new.success() {
        println!("skipped: the module needs Python 3.9, and {interpreter} is older");
        return;
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let tests = Command::new(interpreter)
        .args(["-B", "-m", "unittest", "discover", "--verbose", "-s"])
        .arg(module.join("tests"))
        .env("PYTHONPATH", module.join("src"))
        .env("SLICEWISE", env!("CARGO_BIN_EXE_slicewise"))
        .output()
        .unwrap();
    println!("{}", text(&tests.stderr));
    assert!(tests.status.success(), "{}", text(&tests.stderr));
}
