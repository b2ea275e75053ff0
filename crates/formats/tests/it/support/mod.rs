//! What several modules share.

pub mod any_policy;
pub mod bpf_machine;
pub mod dpdk_fixpoint;
pub mod fixpoint;
pub mod ovs_fixpoint;
pub mod requests_fixpoint;
pub mod shipped;
