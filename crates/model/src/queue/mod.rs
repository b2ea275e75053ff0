//! Queues: a limit, a manager that drops or marks before the limit is reached, and the separation of flows.
//!
//! Each manager has a file with its settings, defaults and checks: adding one takes this file and its own.

mod codel;
mod dualpi2;
mod flows;
mod limit;
mod pie;
mod red;

pub use codel::{CoDelParams, CoDelSpec};
pub use dualpi2::{DualPi2Params, DualPi2Spec};
pub use flows::{FLOWS_MAX, FlowsParams, FlowsSpec, PriorityLevels};
pub(crate) use limit::default_limit;
pub use limit::{QueueLimitParams, QueueLimitSpec};
pub use pie::{PieParams, PieSpec};
pub use red::{RedCurve, RedCurveSpec, WredKey, WredParams, WredSpec};

use slicewise_units::BitRate;

/// Reason why a queue cannot be resolved: the setting in a study file, and the problem.
pub(crate) type Refusal = (&'static str, String);

/// A queue as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSpec {
    /// Limit of all flows together; by default 50 ms at the rate of the class.
    pub limit: Option<QueueLimitSpec>,
    /// Queue manager.
    pub manager: ManagerSpec,
    /// One queue per flow instead of one for all.
    pub flows: Option<FlowsSpec>,
}

/// A queue manager: which frames are dropped or marked before the limit is reached, with the settings of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ManagerOf<Red, CoDel, Pie, DualPi2> {
    /// None: a frame that would exceed the limit is dropped.
    #[default]
    TailDrop,
    /// Weighted random early detection.
    Red(Red),
    /// `CoDel`.
    CoDel(CoDel),
    /// PIE.
    Pie(Pie),
    /// `DualPI2`: a queue for scalable and one for other congestion controls.
    DualPi2(DualPi2),
}

/// A queue manager as written.
pub type ManagerSpec = ManagerOf<WredSpec, CoDelSpec, PieSpec, DualPi2Spec>;

/// A validated queue manager.
pub type QueueManager = ManagerOf<WredParams, CoDelParams, PieParams, DualPi2Params>;

/// A validated queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueParams {
    /// Limit of all flows together.
    pub limit: QueueLimitParams,
    /// Queue manager.
    pub manager: QueueManager,
    /// One queue for all frames, or one per flow.
    pub flows: Separation,
}

/// Separation of flows in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Separation {
    /// All frames wait in one queue.
    #[default]
    None,
    /// Each flow has a queue; these take turns.
    PerFlow(FlowsParams),
}

/// Flow queueing with `CoDel` (FQ-CoDel, RFC 8290), as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowQueueSpec {
    /// Separation of flows.
    pub flows: FlowsSpec,
    /// Queue manager of each flow's queue.
    pub codel: CoDelSpec,
}

/// Flow queueing with `CoDel` (FQ-CoDel, RFC 8290), validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowQueueParams {
    /// Separation of flows.
    pub flows: FlowsParams,
    /// Queue manager of each flow's queue.
    pub codel: CoDelParams,
}

impl From<QueueLimitSpec> for QueueSpec {
    fn from(limit: QueueLimitSpec) -> Self {
        Self {
            limit: Some(limit),
            ..Self::default()
        }
    }
}

impl From<WredSpec> for QueueSpec {
    fn from(wred: WredSpec) -> Self {
        Self {
            manager: ManagerSpec::Red(wred),
            ..Self::default()
        }
    }
}

impl From<CoDelSpec> for QueueSpec {
    fn from(codel: CoDelSpec) -> Self {
        Self {
            manager: ManagerSpec::CoDel(codel),
            ..Self::default()
        }
    }
}

impl From<PieSpec> for QueueSpec {
    fn from(pie: PieSpec) -> Self {
        Self {
            manager: ManagerSpec::Pie(pie),
            ..Self::default()
        }
    }
}

impl From<DualPi2Spec> for QueueSpec {
    fn from(dualpi2: DualPi2Spec) -> Self {
        Self {
            manager: ManagerSpec::DualPi2(dualpi2),
            ..Self::default()
        }
    }
}

impl From<FlowQueueSpec> for QueueSpec {
    fn from(FlowQueueSpec { flows, codel }: FlowQueueSpec) -> Self {
        Self {
            limit: None,
            manager: ManagerSpec::CoDel(codel),
            flows: Some(flows),
        }
    }
}

impl<Red, CoDel, Pie, DualPi2> ManagerOf<Red, CoDel, Pie, DualPi2> {
    /// Setting of a study file that chooses it, unless it is tail drop.
    #[must_use]
    pub const fn setting(&self) -> Option<&'static str> {
        match self {
            Self::TailDrop => None,
            Self::Red(_) => Some("wred"),
            Self::CoDel(_) => Some("codel"),
            Self::Pie(_) => Some("pie"),
            Self::DualPi2(_) => Some("dualpi2"),
        }
    }
}

impl QueueSpec {
    /// Its random early detection.
    #[must_use]
    pub const fn wred(&self) -> Option<&WredSpec> {
        match &self.manager {
            ManagerSpec::Red(wred) => Some(wred),
            _ => None,
        }
    }

    /// The same queue with another limit.
    #[must_use]
    pub fn with_limit(self, limit: Option<QueueLimitSpec>) -> Self {
        Self { limit, ..self }
    }

    /// First setting of a study file that says something about it.
    #[must_use]
    pub fn setting(&self) -> Option<&'static str> {
        let limit = self.limit.map(|_| "queue_limit");
        limit.or(self.manager_setting())
    }

    /// Setting of a study file that chooses its manager; where that is `CoDel` of each flow, the separation of flows does.
    const fn manager_setting(&self) -> Option<&'static str> {
        match (&self.manager, &self.flows) {
            (ManagerSpec::TailDrop | ManagerSpec::CoDel(_), Some(_)) => Some("flow_queue"),
            (manager, _) => manager.setting(),
        }
    }

    /// Its flow queue, if it separates flows and manages them by `CoDel`.
    #[must_use]
    pub fn flow_queue(&self) -> Option<FlowQueueSpec> {
        match (&self.manager, &self.flows) {
            (&ManagerSpec::CoDel(codel), Some(flows)) => Some(FlowQueueSpec {
                flows: flows.clone(),
                codel,
            }),
            _ => None,
        }
    }

    /// Setting of a manager that decides on the frames of all flows together.
    pub(crate) fn manager_of_all(&self) -> Option<&'static str> {
        self.manager.setting().filter(|_| self.flows.is_none())
    }

    /// Setting by which frames do not simply leave in the order in which they came.
    pub(crate) const fn not_in_order(&self) -> Option<&'static str> {
        match (&self.manager, &self.flows) {
            (_, Some(_)) => Some("flow_queue"),
            (ManagerSpec::DualPi2(_) | ManagerSpec::CoDel(_), None) => self.manager.setting(),
            _ => None,
        }
    }

    /// Setting that a slice with a guarantee cannot have: its queue drops at the tail, or by `CoDel` per flow.
    pub(crate) const fn not_for_slices(&self) -> Option<&'static str> {
        match (&self.manager, &self.flows) {
            (ManagerSpec::TailDrop, None) | (ManagerSpec::CoDel(_), Some(_)) => None,
            _ => self.manager_setting(),
        }
    }

    /// The manager and the separation for a queue with `limit` that sends at `rate`.
    pub(crate) fn resolve(
        &self,
        limit: QueueLimitParams,
        rate: BitRate,
    ) -> Result<QueueParams, Refusal> {
        let manager = match &self.manager {
            ManagerSpec::TailDrop => QueueManager::TailDrop,
            ManagerSpec::Red(wred) => QueueManager::Red(wred.resolve(limit, rate)?),
            ManagerSpec::CoDel(codel) => {
                let setting = self.manager_setting().unwrap_or_default();
                QueueManager::CoDel(codel.resolve(setting)?)
            }
            ManagerSpec::Pie(pie) => QueueManager::Pie(pie.resolve()?),
            ManagerSpec::DualPi2(dualpi2) => QueueManager::DualPi2(dualpi2.resolve()?),
        };
        let flows = match &self.flows {
            None => Separation::None,
            Some(flows) => Separation::PerFlow(flows.resolve()?),
        };
        Ok(QueueParams {
            limit,
            manager,
            flows,
        })
    }
}

impl QueueParams {
    /// A queue with tail drop for all frames.
    #[must_use]
    pub const fn tail_drop(limit: QueueLimitParams) -> Self {
        Self {
            limit,
            manager: QueueManager::TailDrop,
            flows: Separation::None,
        }
    }

    /// Queue of a slice: one for all frames, or one per flow with `CoDel`.
    #[must_use]
    pub fn of_slice(limit: QueueLimitParams, flow_queue: Option<FlowQueueParams>) -> Self {
        flow_queue.map_or_else(
            || Self::tail_drop(limit),
            |FlowQueueParams { flows, codel }| Self {
                limit,
                manager: QueueManager::CoDel(codel),
                flows: Separation::PerFlow(flows),
            },
        )
    }

    /// Its flow queue, if it separates flows and manages them by `CoDel`.
    #[must_use]
    pub const fn flow_queue(&self) -> Option<FlowQueueParams> {
        match (&self.manager, self.flows) {
            (&QueueManager::CoDel(codel), Separation::PerFlow(flows)) => {
                Some(FlowQueueParams { flows, codel })
            }
            _ => None,
        }
    }

    /// Its random early detection.
    #[must_use]
    pub const fn wred(&self) -> Option<&WredParams> {
        match &self.manager {
            QueueManager::Red(wred) => Some(wred),
            _ => None,
        }
    }

    /// Number of queues on each level of priority: one for each flow, two of `DualPI2`, else 1.
    #[must_use]
    pub const fn queues(&self) -> u32 {
        match (&self.manager, self.flows) {
            (QueueManager::DualPi2(_), _) => 2,
            (_, Separation::None) => 1,
            (_, Separation::PerFlow(flows)) => flows.flows,
        }
    }

    /// True if frames leave in the order in which they came.
    #[must_use]
    pub const fn keeps_order(&self) -> bool {
        matches!(self.flows, Separation::None) && !matches!(self.manager, QueueManager::DualPi2(_))
    }

    /// True if it is a plain queue with tail drop.
    #[must_use]
    pub const fn is_tail_drop(&self) -> bool {
        matches!(
            (&self.manager, self.flows),
            (QueueManager::TailDrop, Separation::None)
        )
    }
}

impl QueueManager {
    /// True if frames are dropped at random.
    #[must_use]
    pub const fn is_random(&self) -> bool {
        match self {
            Self::Red(_) | Self::Pie(_) => true,
            Self::TailDrop | Self::CoDel(_) | Self::DualPi2(_) => false,
        }
    }

    /// True if ECN-capable packets are marked instead of dropped (RFC 3168).
    #[must_use]
    pub const fn marks(&self) -> bool {
        match self {
            Self::TailDrop => false,
            Self::Red(wred) => wred.ecn,
            Self::CoDel(codel) => codel.ecn,
            Self::Pie(pie) => pie.ecn,
            Self::DualPi2(_) => true,
        }
    }
}
