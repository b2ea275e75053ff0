//! Queues: storage without rate logic, and admission.

mod fifo;
mod flow_hash;
mod flow_queue;
mod list;
mod pool;
mod queue_manager;
pub mod tail_drop;

pub use fifo::FifoQueue;
pub(crate) use flow_hash::FlowHash;
pub use flow_queue::FlowQueue;
pub(crate) use flow_queue::ProtectedBacklog;
pub use list::FrameList;
pub(crate) use list::Position;
pub(crate) use pool::NIL;
pub use pool::{FLOW_BITS, FramePool, QueuedFrame};
pub use queue_manager::{Candidate, Decision};
