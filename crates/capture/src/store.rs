//! Where captures of runs are kept, without touching files of anybody else's.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// As much of a file as its head takes up: the comment with the run's mark, and the program that wrote it.
const HEAD_BYTES: u64 = 1_024;
/// Begins a pcapng file.
const PCAPNG: &[u8] = &[0x0a, 0x0d, 0x0d, 0x0a];
const MARK: &[u8] = b"slicewise: run starts at ";
const APPLICATION: &[u8] = b"slicewise ";

/// Make the folder `root`, and below it one folder in another, as far as they are not there.
///
/// # Errors
/// Where one cannot be made, or a link or a file has the name of one below `root`.
pub fn make_folders(root: &Path, parts: &[String]) -> io::Result<PathBuf> {
    fs::create_dir_all(root)?;
    let mut folder = root.to_owned();
    for part in parts {
        folder.push(part);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if !folder.symlink_metadata()?.is_dir() => {
                let message = format!("`{}` is not a folder: move it away", folder.display());
                return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
            }
            _ => {}
        }
    }
    Ok(folder)
}

/// Returns true if a simulated capture may replace what lies at `path`: nothing, an empty file, or a capture that the
/// simulator wrote, which it can write again.
///
/// # Errors
/// Where that cannot be found out.
pub fn is_replaceable(path: &Path) -> io::Result<bool> {
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        found => found?,
    };
    if !found.is_file() || found.len() == 0 {
        return Ok(found.is_file());
    }
    let mut head = Vec::new();
    File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    let has = |words: &[u8]| head.windows(words.len()).any(|part| part == words);
    Ok(head.starts_with(PCAPNG) && has(MARK) && has(APPLICATION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunMark;
    use crate::write::{PcapngParams, PcapngWriter};

    fn capture(comment: &str, application: &str) -> Vec<u8> {
        let params = PcapngParams {
            comment,
            application,
            interface: "eth0",
            snap_bytes: 96,
        };
        PcapngWriter::new(Vec::new(), &params)
            .unwrap()
            .finish()
            .unwrap()
    }

    #[test]
    fn only_captures_of_the_simulator_may_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sent.pcapng");
        assert!(is_replaceable(&path).unwrap());
        let mark = RunMark {
            start_ns: 1,
            duration_ns: 2,
            cycle_ns: 0,
        };
        let mark = mark.to_string();
        for (bytes, expected) in [
            (Vec::new(), true),
            (capture(&mark, "slicewise 0.1.0"), true),
            (capture(&mark, "Dumpcap (Wireshark) 4.0"), false),
            (capture("", "slicewise 0.1.0"), false),
            (b"notes on slicewise: run starts at 1".to_vec(), false),
        ] {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(is_replaceable(&path).unwrap(), expected, "{bytes:?}");
        }
        let link = folder.path().join("link");
        fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!is_replaceable(&link).unwrap());
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let parts = ["a".to_owned(), "b".to_owned()];
        assert_eq!(make_folders(&root, &parts).unwrap(), root.join("a/b"));
        make_folders(&root, &parts).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("link")).unwrap();
        assert!(make_folders(&root, &["link".to_owned(), "c".to_owned()]).is_err());
        assert!(!folder.path().join("c").exists());
    }
}
