//! The controller: slices as a service.
//!
//! A [`Store`] keeps what is promised, [`serve()`] offers it as an API. `docs/controller.md` describes both.

#![forbid(unsafe_code)]

mod actor;
mod administration;
mod events;
mod gateways;
mod history;
#[allow(
    unused_qualifications,
    reason = "the macros that describe routes write them"
)]
mod http;
mod log;
mod process;
mod refusal;
mod rules;
mod slices;
mod sql;
mod store;

pub use http::{ServeError, ServeParams, TlsParams, description, serve, serve_on};
pub use process::{
    ControllerError, run, run_adopt, run_backup, run_check, run_restore, run_token_add,
    run_token_list, run_token_remove,
};
pub use sql::{Clock, Dialect, SystemClock};
pub use store::{
    BackupError, CHECK_ADVICE, Location, LocationError, Store, StoreError, backup, restore,
};
