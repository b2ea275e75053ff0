//! Curves of early detection that the limit of their queue keeps from being reached.

use super::Checker;
use super::policies::Understood;
use crate::file::Span;
use slicewise_model::{Part, PolicyError, PolicyParams, QueueLimitParams, RedCurve, WredParams};

impl Checker<'_> {
    /// Say which curves of a policy that is written at `path` end above their queue's limit: the queue drops at its tail
    /// before.
    pub(super) fn warn_of_thresholds(
        &mut self,
        understood: &Understood,
        path: &[&str],
        otherwise: Span,
        params: &PolicyParams,
    ) {
        let classes = params.classes.iter();
        let classes = classes.map(|class| (Part::Class, &class.name, &class.queue));
        let queues = params.queues.iter();
        let queues = queues.map(|named| (Part::Queue, &named.name, &named.queue));
        for (part, name, queue) in classes.chain(queues) {
            let found = queue.wred().map(|wred| unreachable(wred, queue.limit));
            for problem in found.unwrap_or_default() {
                let error = PolicyError {
                    policy: params.name.clone(),
                    part,
                    class: name.clone(),
                    field: "wred",
                    problem,
                };
                let at = self.place(&understood.origin, path, &error);
                let message = format!("{part} `{name}`: {}", error.problem);
                let at = at.unwrap_or(otherwise);
                let place = self.sources.place(at);
                self.statements
                    .push(format!("`{}`, {place}: {message}.", params.name));
                self.problems.warn(at, message);
            }
        }
        for child in params
            .classes
            .iter()
            .filter_map(|class| class.child.as_deref())
        {
            self.warn_of_thresholds(understood, path, otherwise, child);
        }
    }
}

/// Returns the problem with each curve that ends above `limit`.
fn unreachable(wred: &WredParams, limit: QueueLimitParams) -> Vec<String> {
    let held = limit.full_packets();
    let mut beyond: Vec<(RedCurve, Vec<String>)> = Vec::new();
    for (dscp, curve) in wred.curves.iter().enumerate() {
        if curve.max_packets <= held {
            continue;
        }
        match beyond.iter_mut().find(|(known, _)| known == curve) {
            Some((_, code_points)) => code_points.push(dscp.to_string()),
            None => beyond.push((*curve, vec![dscp.to_string()])),
        }
    }
    let describe = |(curve, code_points): (RedCurve, Vec<String>)| {
        let of = code_points.join(", ");
        let (min, max) = (curve.min_packets, curve.max_packets);
        match min < held {
            true => format!(
                "WRED for DSCP {of} ends at {max} packets, above the queue limit of {held}: the queue drops at its tail \
                 before the curve has risen"
            ),
            false => format!(
                "WRED for DSCP {of} begins at {min} packets, and the queue limit is {held}: it never drops a packet, the \
                 queue drops at its tail"
            ),
        }
    };
    beyond.into_iter().map(describe).collect()
}
