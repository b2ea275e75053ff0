//! Limits of this process (`getrlimit(2)`).

use super::checked;
use std::io;

/// Allow as many open descriptors as the system lets this process have; returns how many.
///
/// # Errors
/// As `getrlimit(2)` and `setrlimit(2)`.
pub fn raise_descriptors() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one structure, which is alive.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the structure is alive, and the kernel only reads it.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_as_high_as_it_can_be() {
        let most = raise_descriptors().unwrap();
        assert!(most >= 64, "{most}");
        assert_eq!(raise_descriptors().unwrap(), most);
    }
}
