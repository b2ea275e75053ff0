//! The program around `librte_sched`: its source, and the compiler and library that make it.

use crate::command::{self, Tool};
use crate::error::AttemptError;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The release of DPDK that the program is written for: what others call the same may be something else there.
const RELEASE: &str = "22.11";
/// Package of the library and all that is compiled with it.
pub(crate) const LIBRARY_PACKAGE: &str = "libdpdk-dev";
const LIBRARY: &str = "libdpdk";
const NAME: &str = "qos-sched";

const SOURCES: [(&str, &str); 8] = [
    ("main.c", include_str!("qos_sched/main.c")),
    ("ports.c", include_str!("qos_sched/ports.c")),
    ("ports.h", include_str!("qos_sched/ports.h")),
    ("profile.c", include_str!("qos_sched/profile.c")),
    ("qos_sched.h", include_str!("qos_sched/qos_sched.h")),
    ("counters.c", include_str!("qos_sched/counters.c")),
    ("scheduler.c", include_str!("qos_sched/scheduler.c")),
    ("threads.c", include_str!("qos_sched/threads.c")),
];

/// GNU's names for processors, and names in headers of the library that are not yet part of its stable interface.
const DEFINITIONS: [&str; 2] = ["-D_GNU_SOURCE", "-DALLOW_EXPERIMENTAL_API"];

/// The program, compiled when it is first needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DpdkProgram {
    binary: Arc<OnceLock<Vec<u8>>>,
}

impl DpdkProgram {
    /// Checks that the tools that compile it are there.
    ///
    /// # Errors
    /// A message for the user, with how to install what is missing.
    pub fn find() -> Result<Self, String> {
        let is_missing = |tool: &Tool| tool.find().is_none();
        let missing: Vec<Tool> = Tool::COMPILING.into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|tool| tool.name()).collect();
            let packages: Vec<&str> = missing.iter().map(|tool| tool.package()).collect();
            return Err(format!(
                "the device of `--on dpdk` is compiled here, with programs that are not installed: {}; apt-get install {} \
                 {LIBRARY_PACKAGE}",
                names.join(", "),
                packages.join(" ")
            ));
        }
        supported_library().map_err(|problem| problem.to_string())?;
        Ok(Self::default())
    }

    /// Its path in `folder`.
    pub(super) fn put_into(&self, folder: &Path) -> Result<PathBuf, AttemptError> {
        let path = folder.join(NAME);
        match self.binary.get() {
            Some(binary) => {
                let failed = || AttemptError::failed("the program around librte_sched");
                fs::write(&path, binary).map_err(failed())?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).map_err(failed())?;
            }
            None => {
                compile(folder, &SOURCES, &path).map_err(AttemptError::Failed)?;
                let binary = fs::read(&path).map_err(AttemptError::failed(NAME))?;
                // Whoever was first: it is the same.
                let _ = self.binary.set(binary);
            }
        }
        Ok(path)
    }
}

/// Why the library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LibraryProblem {
    #[error("DPDK is not installed: apt-get install {LIBRARY_PACKAGE}")]
    Missing,
    #[error(
        "DPDK {0} is installed, and the device of `--on dpdk` is written for {RELEASE}: use Debian 12, whose \
         {LIBRARY_PACKAGE} it is, or point PKG_CONFIG_PATH to a build of {RELEASE}"
    )]
    OtherVersion(String),
}

/// The version of the library, if it is one that the program is written for.
pub(crate) fn supported_library() -> Result<String, LibraryProblem> {
    let found = command::output(Tool::PkgConfig, &["--modversion", LIBRARY]);
    check_version(found.as_deref().ok().map(str::trim))
}

fn check_version(found: Option<&str>) -> Result<String, LibraryProblem> {
    match found {
        Some(version) if version == RELEASE || version.starts_with(&format!("{RELEASE}.")) => {
            Ok(version.to_owned())
        }
        Some(other) => Err(LibraryProblem::OtherVersion(other.to_owned())),
        None => Err(LibraryProblem::Missing),
    }
}

fn compile(folder: &Path, sources: &[(&str, &str)], program: &Path) -> Result<(), String> {
    let mut arguments = vec!["-O2".to_owned(), "-std=gnu11".to_owned(), "-w".to_owned()];
    arguments.extend(DEFINITIONS.map(str::to_owned));
    arguments.extend(["-o".to_owned(), program.display().to_string()]);
    for (name, text) in sources {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        if name.ends_with(".c") {
            arguments.push(path.display().to_string());
        }
    }
    let flags = command::output(Tool::PkgConfig, &["--cflags", "--libs", LIBRARY])?;
    arguments.extend(flags.split_whitespace().map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    command::output(Tool::Cc, &arguments)
        .map(drop)
        .map_err(|error| not_compiled(&error))
}

/// Like the program, with another `main`.
#[cfg(test)]
pub(super) fn compile_test(folder: &Path, main: &str, program: &Path) -> Result<(), String> {
    let others = SOURCES.into_iter();
    let others = others.filter(|(name, _)| !["main.c", "ports.c"].contains(name));
    let sources: Vec<_> = others.chain([("test.c", main)]).collect();
    compile(folder, &sources, program)
}

/// Formats the output of the compiler, from its first error on: before it is the command, which is long.
fn not_compiled(error: &str) -> String {
    let first = error
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or(error);
    format!(
        "the program around librte_sched does not compile: {first}; apt-get install --reinstall {LIBRARY_PACKAGE} gcc \
         libc6-dev"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;

    #[test]
    fn another_version_of_the_library_is_refused_and_a_missing_one_named() {
        assert_eq!(check_version(Some("22.11.11")).as_deref(), Ok("22.11.11"));
        let refusal = |found| check_version(found).unwrap_err().to_string();
        assert_snapshot!(refusal(Some("24.11.2")), @"DPDK 24.11.2 is installed, and the device of `--on dpdk` is written for 22.11: use Debian 12, whose libdpdk-dev it is, or point PKG_CONFIG_PATH to a build of 22.11");
        assert!(refusal(Some("22.110.1")).starts_with("DPDK 22.110.1 is"));
        assert_snapshot!(refusal(None), @"DPDK is not installed: apt-get install libdpdk-dev");
    }

    #[test]
    fn what_the_compiler_says_is_cut_to_its_first_error() {
        let said = "cc -O2 -o x: x.c:3:1: note: here\nx.c:4:10: fatal error: rte_eal.h: No such file\ncompilation terminated.";
        assert_snapshot!(not_compiled(said), @"the program around librte_sched does not compile: x.c:4:10: fatal error: rte_eal.h: No such file; apt-get install --reinstall libdpdk-dev gcc libc6-dev");
    }

    #[test]
    fn a_program_that_was_compiled_once_is_not_compiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = DpdkProgram::default();
        program.binary.set(b"#!/bin/sh\n".to_vec()).unwrap();
        let path = program.put_into(folder.path()).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"#!/bin/sh\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
