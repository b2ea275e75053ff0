//! Loops over the rates of classes: counters are read at the end of each interval, and the policy with the rates decided on is
//! committed while the gateway forwards.
//!
//! A thread of its own asks the forwarding thread, as a controller's would. Decisions are those of [`ReallocationLoop`], which the
//! simulator carries out, too. A reload goes first: what was decided before is dropped.

#[cfg(test)]
mod tests;

use super::control::{Answer, Answers, Control, Ended, Request};
use super::watch::FaultLog;
use super::{DirectionParams, GatewayParams};
use crate::log;
use crate::metrics::{Exchange, ReallocationSnapshot};
use crate::sys::time;
use slicewise_dataplane::{ClassCounters, ReallocationLoop};
use slicewise_model::{PolicyError, PolicyParams, ReallocatedPolicy};
use slicewise_units::{BitRate, BothWays, Duration, Instant, Rounded, Way};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// The loops of a gateway, without clock and thread.
#[derive(Debug)]
struct GatewayLoops {
    interfaces: [String; 2],
    /// In force, as far as loops know.
    directions: [DirectionParams; 2],
    loops: BothWays<Option<DirectionLoop>>,
    state: ReallocationSnapshot,
}

/// The loop of a direction.
#[derive(Debug)]
struct DirectionLoop {
    policy: ReallocatedPolicy,
    control: ReallocationLoop,
    /// When counters are read next.
    read_at: Instant,
    /// When they were read last.
    last_read_at: Option<Instant>,
    decision: Option<Decision>,
    /// Policy of the last decision; `None` if another thread has put another one in force.
    in_force: Option<Arc<PolicyParams>>,
}

/// Rates that are to be in force.
#[derive(Debug)]
struct Decision {
    due_at: Instant,
    rates: Vec<BitRate>,
    policy: Arc<PolicyParams>,
}

impl DirectionLoop {
    fn new(policy: &ReallocatedPolicy, now: Instant) -> Self {
        Self {
            policy: policy.clone(),
            control: ReallocationLoop::new(policy.params.clone()),
            read_at: now,
            last_read_at: None,
            decision: None,
            in_force: None,
        }
    }

    fn poll_at(&self) -> Instant {
        let due_at = self.decision.as_ref().map(|decision| decision.due_at);
        due_at.map_or(self.read_at, |at| at.min(self.read_at))
    }

    /// Decide on the counters of all classes at `at`. Returns the number of readings that are left out because of that.
    fn on_read(
        &mut self,
        counters: &[ClassCounters],
        at: Instant,
        params: &DirectionParams,
    ) -> Result<u64, PolicyError> {
        let every = self.policy.params.every.nanos().max(1);
        let due_at = self.read_at;
        let late = at.saturating_since(due_at).nanos();
        // At least half an interval is between two readings: a demand of a moment says nothing.
        let skipped = late.saturating_add(every / 2) / every;
        let next = every.saturating_mul(skipped.saturating_add(1));
        self.read_at = due_at.saturating_add(Duration::from_nanos(next));
        // What was offered before the first reading was offered in no interval.
        let elapsed = self.last_read_at.map(|last| at.saturating_since(last));
        let all = elapsed.unwrap_or(Duration::MAX);
        let rates = self.control.on_interval(counters.iter(), all);
        self.last_read_at = Some(at);
        if elapsed.is_none() {
            return Ok(0);
        }
        let spec = self.policy.params.apply(&self.policy.spec, &rates);
        self.decision = Some(Decision {
            due_at: due_at.saturating_add(self.policy.params.delay),
            policy: spec.resolve_for(params.link.into())?.into(),
            rates,
        });
        Ok(skipped)
    }
}

impl GatewayLoops {
    fn new(params: &GatewayParams, now: Instant) -> Self {
        let loops = BothWays::from(params.reallocated.each_ref());
        Self {
            interfaces: params.interfaces.clone(),
            directions: params.directions.clone(),
            loops: loops.map(|policy| {
                policy
                    .as_ref()
                    .map(|policy| DirectionLoop::new(policy, now))
            }),
            state: ReallocationSnapshot::default(),
        }
    }

    /// When to read or to commit next; `None` without loops.
    fn poll_at(&self) -> Option<Instant> {
        let loops = self.loops.iter().filter_map(|(_, one)| one.as_ref());
        loops.map(DirectionLoop::poll_at).min()
    }

    fn reads(&self, way: Way, now: Instant) -> bool {
        self.loops[way]
            .as_ref()
            .is_some_and(|one| one.read_at <= now)
    }

    fn on_read(
        &mut self,
        way: Way,
        counters: &[ClassCounters],
        at: Instant,
    ) -> Result<(), PolicyError> {
        let params = &self.directions[usize::from(way == Way::Backward)];
        if let Some(one) = &mut self.loops[way] {
            self.state.skipped += one.on_read(counters, at, params)?;
        }
        Ok(())
    }

    /// Loops whose decisions are to be in force at `now`.
    fn due(&mut self, now: Instant) -> impl Iterator<Item = (Way, &mut DirectionLoop)> {
        let loops = self.loops.iter_mut();
        let loops = loops.filter_map(|(way, one)| Some((way, one.as_mut()?)));
        loops.filter(move |(_, one)| {
            let decision = one.decision.as_ref();
            decision.is_some_and(|decision| decision.due_at <= now)
        })
    }

    /// Directions to commit, if a decision that is due at `now` differs from what is in force.
    fn changed(&mut self, now: Instant) -> Option<[DirectionParams; 2]> {
        let mut directions = self.directions.clone();
        let mut differs = false;
        for (way, one) in self.due(now) {
            let decided = one.decision.as_ref().map(|decision| &decision.policy);
            differs |= decided != one.in_force.as_ref();
            if let Some(policy) = decided {
                directions[usize::from(way == Way::Backward)].policy = Arc::clone(policy);
            }
        }
        differs.then_some(directions)
    }

    /// The decisions that were due at `due_by` are in force.
    fn on_in_force(&mut self, due_by: Instant, now: Instant) {
        let [first, second] = self.interfaces.clone();
        let mut state = std::mem::take(&mut self.state);
        for (way, one) in self.due(due_by) {
            let Some(decision) = one.decision.take() else {
                continue;
            };
            let late = now.saturating_since(decision.due_at);
            state.lateness.record(late);
            let classes = one.policy.params.classes.iter();
            let names = classes.map(|class| class.name.clone());
            state.rates[way] = names.zip(decision.rates).collect();
            one.in_force = Some(decision.policy);
            let (from, to) = match way {
                Way::Forward => (&first, &second),
                Way::Backward => (&second, &first),
            };
            let rates = state.rates[way].iter();
            let rates = rates.map(|(class, rate)| format!("{class} {rate}"));
            let rates = rates.collect::<Vec<_>>().join(", ");
            let direction = format!("{from}>{to}");
            let fields: [(&str, &dyn Display); 3] = [
                ("direction", &direction),
                ("late", &late.rounded_up()),
                ("rates", &rates),
            ];
            log::debug("reallocated", &fields);
        }
        self.state = state;
    }

    /// The decisions that were due at `due_by` are not carried out.
    fn on_refused(&mut self, due_by: Instant) {
        let due = self.due(due_by);
        let dropped = due.filter_map(|(_, one)| one.decision.take()).count();
        self.state.refused += dropped as u64;
    }
}

/// The thread of the loops.
#[derive(Debug)]
pub(super) struct ReallocationThread {
    answers: Receiver<Answer>,
    exchange: Arc<Exchange>,
    loops: GatewayLoops,
    /// Another configuration is in force since.
    reloaded: Option<Box<GatewayParams>>,
    late: FaultLog,
    refused: FaultLog,
}

impl ReallocationThread {
    /// The loops of a gateway that starts at `now`, and where their answers go.
    pub(super) fn new(
        params: &GatewayParams,
        exchange: &Arc<Exchange>,
        now: Instant,
    ) -> (Answers, Self) {
        let (answers, incoming) = channel();
        let thread = Self {
            answers: incoming,
            exchange: Arc::clone(exchange),
            loops: GatewayLoops::new(params, now),
            reloaded: None,
            late: FaultLog::default(),
            refused: FaultLog::default(),
        };
        // Where the thread has ended, nobody wants the answers.
        (Box::new(move |answer| drop(answers.send(answer))), thread)
    }

    /// Carry out the loops until the gateway stops.
    pub(super) fn run(mut self, control: &Control) {
        while self.step(control).is_ok() {}
    }

    fn step(&mut self, control: &Control) -> Result<(), Ended> {
        self.wait()?;
        let now = time::now();
        if let Some(params) = self.reloaded.take() {
            let counted = std::mem::take(&mut self.loops.state);
            self.loops = GatewayLoops::new(&params, now);
            self.loops.state = ReallocationSnapshot {
                rates: BothWays::default(),
                ..counted
            };
        }
        // What is due goes first: a reading replaces a decision that waits. One without delay is due at once, in the next step.
        self.commit(control)?;
        for way in Way::ALL {
            if self.loops.reads(way, now) {
                self.read(way, control)?;
            }
        }
        let state = self.loops.poll_at().map(|_| self.loops.state.clone());
        self.exchange.set_reallocation(state);
        Ok(())
    }

    /// Wait until there is something to do.
    fn wait(&mut self) -> Result<(), Ended> {
        while self.reloaded.is_none() {
            let left = self
                .loops
                .poll_at()
                .map_or(Duration::MAX, |at| at.saturating_since(time::now()));
            let left = std::time::Duration::from_nanos(left.nanos());
            match self.answers.recv_timeout(left) {
                Ok(answer) => self.on_report(answer),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(Ended),
            }
        }
        Ok(())
    }

    fn on_report(&mut self, answer: Answer) {
        if let Answer::Reloaded(params) = answer {
            self.reloaded = Some(params);
        }
    }

    /// Ask the forwarding thread, and wait for the answer that `take` takes.
    fn ask<T>(
        &mut self,
        control: &Control,
        request: Request,
        take: fn(Answer) -> Result<T, Answer>,
    ) -> Result<T, Ended> {
        control.request(request)?;
        loop {
            match take(self.answers.recv().map_err(|_| Ended)?) {
                Ok(answer) => return Ok(answer),
                Err(report) => self.on_report(report),
            }
        }
    }

    /// Read the counters of a direction and decide.
    fn read(&mut self, direction: Way, control: &Control) -> Result<(), Ended> {
        let (mut counters, mut next, mut at) = (Vec::new(), Some(0), None);
        while let Some(from) = next {
            let request = Request::Count { direction, from };
            let counted = self.ask(control, request, |answer| match answer {
                Answer::Counted(counted) => Ok(counted),
                other => Err(other),
            })?;
            at = at.or(Some(counted.at));
            next = counted.next;
            counters.extend(counted.classes.into_iter().map(|(counters, _)| counters));
        }
        // After a reload they may be those of other classes.
        if let (None, Some(at)) = (&self.reloaded, at) {
            let decided = self.loops.on_read(direction, &counters, at);
            if let Err(error) = decided {
                self.loops.state.refused += 1;
                self.warn_of_refusal(&error, at);
            }
            if let Some(skipped) = self.late.more(self.loops.state.skipped, at) {
                let help = "rates follow demand later than `every` says: choose a longer one, or give the machine less to do";
                log::warn(
                    "reallocation_late",
                    &[("skipped_intervals", &skipped), ("so", &help)],
                );
            }
        }
        Ok(())
    }

    /// Put in force what is due.
    fn commit(&mut self, control: &Control) -> Result<(), Ended> {
        let due_by = time::now();
        if let Some(directions) = self.loops.changed(due_by) {
            let basis = self.ask(control, Request::Basis, |answer| match answer {
                Answer::Basis(basis) => Ok(basis),
                other => Err(other),
            })?;
            if self.reloaded.is_some() {
                // The basis is that of another configuration.
                return Ok(());
            }
            let prepared = basis.prepare(&directions, due_by);
            drop(basis);
            let prepared = match prepared {
                Ok(prepared) => Box::new(prepared),
                Err(error) => {
                    self.loops.on_refused(due_by);
                    self.warn_of_refusal(&error, due_by);
                    return Ok(());
                }
            };
            let committed =
                self.ask(control, Request::Commit(prepared), |answer| match answer {
                    Answer::Committed(committed) => Ok(committed),
                    other => Err(other),
                })?;
            if committed.is_err() {
                // A reload was faster.
                self.loops.on_refused(due_by);
                return Ok(());
            }
            self.loops.directions = directions;
            self.loops.state.commits += 1;
        }
        self.loops.on_in_force(due_by, time::now());
        Ok(())
    }

    fn warn_of_refusal(&mut self, reason: &dyn Display, now: Instant) {
        if let Some(times) = self.refused.more(self.loops.state.refused, now) {
            let what = "the rates stay as they are";
            let fields: [(&str, &dyn Display); 3] =
                [("reason", reason), ("times", &times), ("so", &what)];
            log::warn("reallocation_refused", &fields);
        }
    }
}
