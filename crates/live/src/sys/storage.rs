//! Free space on a file system.

use super::checked;
use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that an ordinary user may still write to the file system that `folder` is on.
///
/// # Errors
/// Where there is no such folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let name = CString::new(folder.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the name ends in NUL, and the kernel writes one `statvfs`, of which any bits are valid.
    let answer = unsafe {
        checked(libc::statvfs(name.as_ptr(), answer.as_mut_ptr()))?;
        answer.assume_init()
    };
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_is_free_and_refuses_what_is_not_there() {
        assert!(free_bytes(&std::env::temp_dir()).is_ok_and(|bytes| bytes > 0));
        let missing = free_bytes(Path::new("/nowhere/at all")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
