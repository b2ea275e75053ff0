//! Offloads of virtual interfaces. Needs root; says so and passes where it cannot.

use crate::support::{Namespace, run};
use slicewise_live::sys::interface::{Interfaces, Offload};
use slicewise_live::sys::namespace;

const NOT_ON_A_WIRE: [Offload; 6] = [
    Offload::TransmitChecksum,
    Offload::TransmitSegmentation,
    Offload::Segmentation,
    Offload::VlanTransmit,
    Offload::Gro,
    Offload::Lro,
];

#[test]
fn a_virtual_interface_can_be_made_to_send_as_on_a_wire_and_back() {
    let Some(there) = Namespace::new("offloads") else {
        return;
    };
    let add = "link add eth0 type veth peer name eth1";
    run(&format!("ip -n {} {add}", there.name())).unwrap();
    let seen = namespace::within(there.name(), || {
        let system = Interfaces::new().unwrap();
        let seen = || NOT_ON_A_WIRE.map(|offload| system.offload("eth0", offload).unwrap());
        let before = seen();
        system.send_as_on_a_wire("eth0").unwrap();
        let after = seen();
        // Nothing is left to do, and nothing is wrong with that.
        system.send_as_on_a_wire("eth0").unwrap();
        for offload in [Offload::TransmitChecksum, Offload::VlanTransmit] {
            system.set_offload("eth0", offload, true).unwrap();
            assert!(system.offload("eth0", offload).unwrap(), "{offload:?}");
        }
        let refused = system.send_as_on_a_wire("absent").unwrap_err();
        (before, after, refused.to_string())
    });
    let (before, after, refused) = seen.unwrap();
    assert_eq!(before[..4], [true; 4], "a new pair has them");
    assert_eq!(after, [false; 6]);
    assert!(refused.contains("`absent`"), "{refused}");
}
