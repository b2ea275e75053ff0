//! State of what changes slices of a gateway: its threads write it, metrics read it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// State of a controller's agent.
#[derive(Debug, Default)]
pub struct ControllerStatus {
    is_followed: AtomicBool,
    generation: AtomicU64,
    refused_slices: AtomicU64,
    is_unwritten: AtomicBool,
}

/// The state at one moment; its parts may be of different ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControllerSnapshot {
    /// The controller answers, and has the store that is followed.
    pub is_followed: bool,
    /// The newest generation that was taken.
    pub generation: u64,
    /// Slices that cannot be put in force.
    pub refused_slices: u64,
    /// The state file has all of it.
    pub is_written: bool,
}

impl ControllerStatus {
    /// Notes whether the controller answers, and has the store that is followed.
    pub fn set_followed(&self, is_followed: bool) {
        self.is_followed.store(is_followed, Ordering::Relaxed);
    }

    /// Notes the newest generation, the slices that cannot be put in force, and whether the state file has all of it.
    pub fn set(&self, generation: u64, refused_slices: u64, is_written: bool) {
        self.generation.store(generation, Ordering::Relaxed);
        self.refused_slices.store(refused_slices, Ordering::Relaxed);
        self.is_unwritten.store(!is_written, Ordering::Relaxed);
    }

    /// Returns the state.
    #[must_use]
    pub fn snapshot(&self) -> ControllerSnapshot {
        ControllerSnapshot {
            is_followed: self.is_followed.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed),
            refused_slices: self.refused_slices.load(Ordering::Relaxed),
            is_written: !self.is_unwritten.load(Ordering::Relaxed),
        }
    }
}
