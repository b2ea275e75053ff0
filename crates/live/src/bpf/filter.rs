//! Programs as filters of the qdisc `clsact`, which holds filters and queues nothing; it exists in addition to
//! the qdisc that sends.

use super::{Program, number_of};
use crate::sys::netlink::{Body, Netlink};
use std::io;

/// `clsact` has this handle and this parent (`TC_H_CLSACT`, `linux/pkt_sched.h`).
const CLSACT_HANDLE: u32 = 0xffff_0000;
const CLSACT_PARENT: u32 = 0xffff_fff1;
/// Attributes of qdiscs and filters (`linux/rtnetlink.h`).
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// Attributes of a filter that is a program (`linux/pkt_cls.h`).
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
/// The return value of the program decides what happens to the frame.
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
/// Our filter among those that others may have: the first.
const PRIORITY: u32 = 1;
const HANDLE: u32 = 1;

/// Where frames meet a program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hook {
    /// On arriving, before the host's IP.
    Ingress,
    /// On leaving, before the qdisc that sends.
    Egress,
}

/// `struct tcmsg`.
fn message(interface: u32, handle: u32, parent: u32, info: u32) -> Body {
    Body::new(&[0, interface, handle, parent, info])
}

/// Add a `clsact` to the interface, if it has none yet.
pub(crate) fn prepare(netlink: &Netlink, interface: u32) -> io::Result<()> {
    let body = message(interface, CLSACT_HANDLE, CLSACT_PARENT, 0).with(TCA_KIND, b"clsact\0");
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    match netlink.make(libc::RTM_NEWQDISC, flags, &body) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        result => result,
    }
}

/// Have a program see every frame there. The kernel keeps it when its descriptor is closed.
pub(crate) fn attach(
    netlink: &Netlink,
    interface: u32,
    hook: Hook,
    program: &Program,
) -> io::Result<()> {
    let parent = CLSACT_HANDLE
        | match hook {
            Hook::Ingress => 0xfff2,
            Hook::Egress => 0xfff3,
        };
    let all_protocols = u16::try_from(libc::ETH_P_ALL).unwrap_or(0).to_be();
    let options = Body::nested()
        .with_number(TCA_BPF_FD, number_of(program))
        .with(TCA_BPF_NAME, b"slicewise\0")
        .with_number(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    let info = PRIORITY << 16 | u32::from(all_protocols);
    let body = message(interface, HANDLE, parent, info)
        .with(TCA_KIND, b"bpf\0")
        .with_nested(TCA_OPTIONS, &options);
    // Without `NLM_F_EXCL`: one that is there is replaced.
    netlink.make(libc::RTM_NEWTFILTER, libc::NLM_F_CREATE, &body)
}
