//! Policies of the published data planes for slices.

use super::COUNTS;
use super::flows::UDP;
use super::request::{Slice, SliceRequests, UDP_CLASS};
use crate::error::{ReadPolicy, SettingPlace, TextNote};
use crate::flow::{Flow, class_map};
use slicewise_model::metered::{HIGH_QUEUE as HIGH, SLICED_TCP_QUEUE as SLICED_TCP, UDP_QUEUE};
use slicewise_model::{
    Action, ClassMap, ClassSpec, Condition, Detector, Discipline, ElephantsSpec, MatchMode,
    NamedQueueSpec, PolicerSpec, PolicySpec, QueueLimitSpec, RateSpec,
};
use slicewise_units::Duration;

const LOW: &str = "low";
const ELEPHANTS: &str = "elephants";
const TCP_QUEUE: &str = "tcp";

/// "Low-priority queue: 25,000 packets at most" (Chen et al. 2022).
const QUEUE_PACKETS: u32 = 25_000;
/// α, β and γ of the publication: 300 Mbit/s of 10 Gbit/s, every 3 s, twice in a row.
const ELEPHANT_RATE: RateSpec = RateSpec::PercentMilli(3_000);
const READ_EVERY: Duration = Duration::from_secs(3);
const TIMES: u32 = 2;

/// Which of the two data planes of the publication.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DataPlane {
    /// Two queues: green packets in that of high priority, yellow ones beside all that is not sliced.
    Baseline,
    /// The remedy: four queues of low priority under deficit round robin.
    #[default]
    P4Tins,
}

impl DataPlane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Baseline, Self::P4Tins];

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::P4Tins => "p4-tins",
        }
    }

    fn queues(self) -> Vec<NamedQueueSpec> {
        let low: &[&str] = match self {
            Self::Baseline => &[LOW],
            Self::P4Tins => &[ELEPHANTS, UDP_QUEUE, TCP_QUEUE, SLICED_TCP],
        };
        let queue = |name: &str, priority| NamedQueueSpec {
            priority,
            queue: QueueLimitSpec::Packets(QUEUE_PACKETS).into(),
            ..NamedQueueSpec::new(name)
        };
        let low = low.iter().map(|name| queue(name, None));
        std::iter::once(queue(HIGH, Some(1))).chain(low).collect()
    }

    /// The queue of yellow packets of a slice with these flows.
    fn yellow(self, flows: &[Flow]) -> &'static str {
        let is_udp = |flow: &Flow| flow.protocol == Some(UDP);
        match self {
            Self::Baseline => LOW,
            Self::P4Tins if flows.iter().all(is_udp) => UDP_QUEUE,
            Self::P4Tins => SLICED_TCP,
        }
    }

    /// The classes of what is not sliced.
    fn others(self) -> Vec<ClassSpec> {
        let default = ClassSpec::class_default();
        let in_queue = |queue: &str, class| ClassSpec {
            named_queue: Some(queue.to_owned()),
            ..class
        };
        match self {
            Self::Baseline => vec![in_queue(LOW, default)],
            Self::P4Tins => {
                let udp = ClassMap {
                    name: UDP_CLASS.to_owned(),
                    mode: MatchMode::All,
                    conditions: vec![Condition::Protocol(UDP)],
                };
                let tcp = ClassSpec {
                    elephants: Some(ElephantsSpec {
                        queue: ELEPHANTS.to_owned(),
                        rate: ELEPHANT_RATE,
                        detector: Detector::Counters,
                        interval: Some(READ_EVERY),
                        times: Some(TIMES),
                        flows: None,
                    }),
                    ..default
                };
                vec![
                    in_queue(UDP_QUEUE, ClassSpec::new(udp)),
                    in_queue(TCP_QUEUE, tcp),
                ]
            }
        }
    }
}

impl SliceRequests {
    /// The policy that `plane` runs for these slices.
    #[must_use]
    pub fn policy(&self, plane: DataPlane) -> ReadPolicy {
        let classes = self.slices.iter().map(|slice| class(slice, plane));
        ReadPolicy {
            spec: PolicySpec {
                name: plane.name().to_owned(),
                classes: classes.chain(plane.others()).collect(),
                discipline: Discipline::DeficitRoundRobin,
                guaranteed: None,
                queues: plane.queues(),
            },
            notes: match plane {
                DataPlane::Baseline => Vec::new(),
                DataPlane::P4Tins => self.slices.iter().filter_map(mixed).collect(),
            },
            places: (self.slices.iter())
                .map(|slice| SettingPlace {
                    class: slice.name.clone(),
                    field: "police",
                    span: slice.min_rate.1,
                })
                .collect(),
        }
    }
}

fn class(slice: &Slice, plane: DataPlane) -> ClassSpec {
    let flows: Vec<Flow> = slice.flows.iter().map(|(flow, _)| flow.clone()).collect();
    let yellow = plane.yellow(&flows).to_owned();
    ClassSpec {
        named_queue: Some(HIGH.to_owned()),
        police: Some(PolicerSpec {
            cbs: Some(slice.allow_burst.into()),
            pir: Some(RateSpec::Absolute(slice.max_rate)),
            pbs: Some(slice.peak_burst.into()),
            accounting: COUNTS,
            exceed: Some(Action::Queue(yellow)),
            violate: Some(Action::Drop),
            ..PolicerSpec::new(RateSpec::Absolute(slice.min_rate.0))
        }),
        ..ClassSpec::new(class_map(&slice.name, &flows))
    }
}

/// That yellow packets of a slice would be in two queues. One meter has one queue for each colour here.
fn mixed(slice: &Slice) -> Option<TextNote> {
    let may_be_udp = |flow: &Flow| flow.protocol.is_none_or(|protocol| protocol == UDP);
    let is_udp = |flow: &Flow| flow.protocol == Some(UDP);
    let flows = || slice.flows.iter().map(|(flow, _)| flow);
    (flows().any(may_be_udp) && !flows().all(is_udp)).then(|| TextNote {
            span: slice.span,
            message: format!(
                "slice `{}` may carry UDP and other protocols: its yellow packets all wait in `{SLICED_TCP}`; \
                 state `protocol` of its flows, and make a slice of each",
                slice.name
            ),
    })
}
