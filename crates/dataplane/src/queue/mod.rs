//! Queues: storage without rate logic, and admission.

pub mod codel;
mod fifo;
mod flow_hash;
pub mod fq_codel;
mod list;
mod pool;
pub mod red;
pub mod tail_drop;

pub use fifo::FifoQueue;
pub(crate) use flow_hash::FlowHash;
pub use fq_codel::FlowQueue;
pub(crate) use fq_codel::ProtectedBacklog;
pub use list::FrameList;
pub(crate) use list::Position;
pub(crate) use pool::NIL;
pub use pool::{FLOW_BITS, FramePool, QueuedFrame};
