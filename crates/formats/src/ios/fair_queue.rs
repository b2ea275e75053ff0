//! `fair-queue`: a queue for each flow of a class.
//!
//! It becomes a flow queue whose `CoDel` does not drop: IOS drops nothing but what exceeds the
//! queue limit.

use super::policy_map::ClassText;
use super::words::Words;
use crate::error::{TextError, quoted};
use slicewise_model::{CoDelSpec, FlowQueueSpec, FlowsSpec, ManagerSpec};
use slicewise_units::Duration;

/// Queues that flows are hashed to where no number is written: what IOS takes on links above
/// 512 kbit/s.
const FLOWS: u32 = 256;
const FLOWS_MIN: u32 = 16;
const FLOWS_MAX: u32 = 4_096;
/// Frames must wait longer than this, for as long as the interval, before `CoDel` drops one.
const TARGET: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_secs(4);

/// `fair-queue [FLOWS]`.
pub(super) fn fair_queue(
    words: &mut Words<'_, '_>,
    class: &mut ClassText,
) -> Result<(), TextError> {
    const EXPECTED: &str =
        "the number of flow queues, a power of 2 from 16 to 4096, or the end of the line";
    let span = words.last_span();
    let flows = match words.peek() {
        None => FLOWS,
        Some(word) if word.is("queue-limit") || word.is("individual-limit") => {
            return Err(
                TextError::at(word.span, "a limit for each flow is not supported")
                    .unmodelled()
                    .expected(EXPECTED)
                    .help("all flows share the class's `queue-limit`; the longest gives way"),
            );
        }
        Some(word) if words.peek_number().is_none() => {
            return Err(
                TextError::at(word.span, format!("unexpected {}", quoted(word.text)))
                    .expected(EXPECTED),
            );
        }
        Some(word) => {
            let flows: u32 = words.small("a number of flow queues", FLOWS_MIN..=FLOWS_MAX)?;
            if !flows.is_power_of_two() {
                return Err(TextError::at(
                    word.span,
                    format!("{} is not a power of 2", quoted(word.text)),
                )
                .expected(EXPECTED));
            }
            flows
        }
    };
    words.end()?;
    class.once("fair-queue", span)?;
    let FlowQueueSpec { flows, codel } = spec(flows);
    class.spec.queue.flows = Some(flows);
    class.spec.queue.manager = ManagerSpec::CoDel(codel);
    Ok(())
}

fn spec(flows: u32) -> FlowQueueSpec {
    FlowQueueSpec {
        flows: FlowsSpec {
            flows: Some(flows),
            ..FlowsSpec::default()
        },
        codel: CoDelSpec {
            target: Some(TARGET),
            interval: Some(INTERVAL),
            ecn: Some(false),
        },
    }
}

/// The command that is read as `queue`, where there is one.
pub(super) fn command(queue: &FlowQueueSpec) -> Option<String> {
    let flows = queue
        .flows
        .flows
        .filter(|flows| (FLOWS_MIN..=FLOWS_MAX).contains(flows) && flows.is_power_of_two())?;
    (*queue == spec(flows)).then(|| match flows {
        FLOWS => "fair-queue".to_owned(),
        flows => format!("fair-queue {flows}"),
    })
}
