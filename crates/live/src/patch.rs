//! A patch between two interfaces of a host: every frame that arrives at one leaves by the other.
//!
//! A bridge would suffice, with one exception: between namespaces a frame can stay charged to the socket that
//! sent it
//! until it is freed, so a queue behind a bridge can hold back a sender on the same machine, which a queue on
//! another machine could not. (A study with HTB showed this: a tenth of one source's datagrams refused because
//! its socket buffer was full, and iperf3 sending a quarter less than requested.) Here a copy of each frame,
//! which is charged to no socket, is forwarded, and the frame itself is freed where it arrives.

use crate::bpf::filter::{self, Hook};
use crate::bpf::{Instruction, Program, ProgramType, Register};
use crate::sys::interface::Interfaces;
use crate::sys::netlink::Netlink;
use std::io;

/// `bpf_clone_redirect` (`enum bpf_func_id`).
const CLONE_REDIRECT: i32 = 13;
/// The frame that arrived ends here.
const TC_ACT_SHOT: i32 = 2;

/// Join two interfaces of the network namespace that this thread is in, both ways. Frames leave through the
/// queueing disciplines of the interface, with the VLAN tags that they have. It lasts as long as the
/// interfaces.
///
/// # Errors
/// Where there is no such interface; without `CAP_NET_ADMIN` and `CAP_BPF`; where the kernel lacks `clsact` or
/// `cls_bpf`.
pub fn join(first: &str, second: &str) -> io::Result<()> {
    let doing = |what: &'static str| {
        move |error: io::Error| {
            let problem = format!("a patch from `{first}` to `{second}`: {what}: {error}");
            io::Error::new(error.kind(), problem)
        }
    };
    let system = Interfaces::new()?;
    let index = |name| system.state(name).map(|state| state.index);
    let ends = [
        index(first).map_err(doing("cannot read the state of the first"))?,
        index(second).map_err(doing("cannot read the state of the second"))?,
    ];
    let netlink = Netlink::new()?;
    for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let program = Program::load(ProgramType::Classifier, &send_on(to))
            .map_err(doing("cannot load an eBPF program"))?;
        filter::prepare(&netlink, from).map_err(doing("cannot create a `clsact` qdisc"))?;
        filter::attach(&netlink, from, Hook::Ingress, &program)
            .map_err(doing("cannot attach an eBPF program"))?;
    }
    Ok(())
}

/// `bpf_clone_redirect(skb, to, 0); return TC_ACT_SHOT`
fn send_on(to: u32) -> [Instruction; 5] {
    [
        // Numbers of interfaces are positive numbers of 31 bits.
        Instruction::set(Register::TWO, to.cast_signed()),
        Instruction::set(Register::THREE, 0),
        Instruction::call(CLONE_REDIRECT),
        Instruction::set(Register::RESULT, TC_ACT_SHOT),
        Instruction::exit(),
    ]
}
