//! How this process manages memory.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` of `mimalloc.h`, ms; negative for never.
const PURGE_DELAY: mi_option_t = 15;

/// Keep what is freed, in this process. By default mimalloc gives it back to the kernel when memory is next asked for or freed, and
/// whoever does waits: up to 16 ms were measured among changes of 100,000 slices.
pub fn keep_what_is_freed() {
    // SAFETY: sets a number. It may be called at any time; without mimalloc it has no effect.
    unsafe { mi_option_set(PURGE_DELAY, -1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    #[test]
    fn the_option_is_that_of_the_library_and_is_set() {
        // SAFETY: reads a number.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1_000, "no other option has this default");
        keep_what_is_freed();
        assert_eq!(delay(), -1);
    }
}
