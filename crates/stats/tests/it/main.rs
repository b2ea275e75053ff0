//! Integration tests of estimators and verdicts.
#![allow(clippy::unwrap_used)]

/// Objectives of a slice, of which only these are stated.
macro_rules! objective {
    ($($field:ident: $value:expr),* $(,)?) => {
        slicewise_stats::objective::Objective {
            $($field: $value,)*
            ..slicewise_stats::objective::Objective::default()
        }
    };
}

mod applications;
mod bounds;
mod comparison;
mod description;
mod figures;
mod objectives;
mod objectives_of_applications;
mod objectives_shown;
mod phases;
mod plots;
mod predictions;
mod published;
mod reallocation;
mod seeds;
mod synthetic;
mod verdicts;
