//! Queues shorter than a burst of TCP that nothing spaces: the burst decides what they drop, however low the load.

use crate::study::Study;
use slicewise_model::ClassParams;

/// Classes of a policy whose queue is shorter than a burst of an unpaced source in them, a sentence each.
pub(crate) fn notes(study: &Study, policy: usize) -> Vec<String> {
    let name = study.policies.get(policy).map_or("", |it| &it.name);
    let scenarios = study.scenarios.iter();
    let sources = scenarios.flat_map(|scenario| &scenario.applications);
    let mut noted: Vec<&str> = Vec::new();
    let mut notes = Vec::new();
    // A burst waits only where it arrives faster than it leaves.
    let slower = study.hops(policy);
    let slower = slower.filter(|(device, _)| device.capacity().rate < study.link.rate.rate);
    for (_, params) in slower {
        for source in sources.clone() {
            let headers = (&source.headers).into();
            let matches = |class: &&ClassParams| {
                let map = class.matches.as_ref();
                map.is_none_or(|map| map.matches(&headers))
            };
            let class = params.classes.iter().find(matches);
            let Some(class) = class.filter(|it| has_own_queue(it)) else {
                continue;
            };
            let limit = class.queue.limit;
            let frame =
                u64::from(source.transport.mtu_bytes) + u64::from(source.headers.l3_offset());
            let room = u64::from(limit.packets).min(limit.bytes.bytes() / frame.max(1));
            let burst = source.transport.unpaced_burst_frames().into();
            if room >= burst || noted.contains(&class.name.as_str()) {
                continue;
            }
            noted.push(&class.name);
            notes.push(format!(
                "policy `{name}`: the queue of class `{}` holds {room} packets, and the TCP of source `{}` sends up to {burst} in a row: some may be \
                 lost at any load; choose a longer queue, or pace the source (`transport: {{pacing: true}}`)",
                class.name, source.name
            ));
        }
    }
    notes
}

/// Returns true unless its frames wait in the queues of others, or of slices with a guarantee, which have notes of their own.
fn has_own_queue(class: &ClassParams) -> bool {
    class.child.is_none()
        && class.hqos.is_none()
        && class.slice.is_none()
        && class.named_queue.is_none()
}
