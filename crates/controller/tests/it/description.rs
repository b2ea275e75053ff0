//! The description of the API.
