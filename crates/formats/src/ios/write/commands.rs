//! The commands of a class.

use super::Problem;
use crate::ios::code_point::dscp_name;
use crate::ios::fair_queue;
use crate::ios::number::BURST_MILLIS_MAX;
use crate::ios::number::BYTES_MAX;
use crate::ios::police::QOS_GROUP_MAX;
use crate::ios::policy_map::Share;
use crate::ios::queueing::{
    MARK_DENOMINATOR_MAX, PRIORITY_LEVEL_MAX, QUEUE_LIMIT_MAX, RATIO_MAX, WRED_EXPONENT_MAX,
};
use crate::ios::rules::Command;
use slicewise_model::{
    Action, BurstBits, BurstSpec, ClassSpec, ColourMode, ManagerSpec, PolicerSpec, PrioritySpec,
    QueueLimitSpec, QueueSpec, RateSpec, ShaperSpec, WredKey, WredSpec,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// How a class is written, which depends on the other classes.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Priority level 1 is written out.
    pub levels: bool,
    /// How its weight is written.
    pub share: Option<Share>,
}

impl Form {
    /// The commands of `class` that rules are about.
    pub fn commands(self, class: &ClassSpec) -> impl Iterator<Item = Command> {
        let priority = class.priority.map(|_| match self.levels {
            true => Command::PriorityLevel,
            false => Command::Priority,
        });
        let share = self.share.map(|share| match share {
            Share::Percent(_) => Command::RemainingPercent,
            Share::Ratio(_) => Command::RemainingRatio,
        });
        let shape = class.shape.map(|_| Command::Shape);
        let commands = [
            priority,
            class.minimum.map(Command::of_minimum),
            share,
            shape,
        ];
        commands.into_iter().flatten()
    }
}

/// The lines of a class but for `service-policy`.
pub(super) fn class(class: &ClassSpec, form: Form) -> Result<Vec<String>, Problem> {
    let mut lines = Vec::new();
    if class.hqos.is_some() {
        return Err("the hierarchical scheduler of DPDK".to_owned());
    }
    if let Some(spec) = class.priority {
        lines.push(priority(spec, form.levels)?);
    }
    if let Some(minimum) = class.minimum {
        lines.push(format!("bandwidth {}", kilobits_or_percent(minimum)?));
    }
    match form.share {
        None => {}
        Some(Share::Percent(percent)) => {
            lines.push(format!("bandwidth remaining percent {percent}"))
        }
        Some(Share::Ratio(ratio)) if (1..=RATIO_MAX).contains(&ratio) => {
            lines.push(format!("bandwidth remaining ratio {ratio}"));
        }
        Some(Share::Ratio(weight)) => {
            return Err(format!(
                "weight {weight}: `bandwidth remaining ratio` goes from 1 to {RATIO_MAX}"
            ));
        }
    }
    if let Some(spec) = class.shape {
        lines.push(shape(spec)?);
    }
    if let Some(spec) = &class.police {
        police(spec, &mut lines)?;
    }
    if let Some(limit) = class.queue.limit {
        lines.push(queue_limit(limit)?);
    }
    manager(&class.queue, &mut lines)?;
    if let Some(dscp) = class.set_dscp {
        lines.push(format!("set dscp {}", code_point(dscp)?));
    }
    Ok(lines)
}

/// The queue manager, and the separation of flows.
fn manager(queue: &QueueSpec, lines: &mut Vec<String>) -> Result<(), Problem> {
    match (&queue.manager, queue.flow_queue()) {
        (ManagerSpec::TailDrop, None) if queue.flows.is_none() => Ok(()),
        (ManagerSpec::Red(spec), None) if queue.flows.is_none() => random_detect(spec, lines),
        (_, Some(flow_queue)) => {
            lines.push(fair_queue::command(&flow_queue).ok_or_else(|| {
                "a flow queue with CoDel; `fair-queue` drops nothing early, and `random-detect` drops \
                 for all flows alike"
                    .to_owned()
            })?);
            Ok(())
        }
        _ => Err(format!("`{}`", queue.setting().unwrap_or_default())),
    }
}

fn priority(spec: PrioritySpec, levels: bool) -> Result<String, Problem> {
    counts_l2(spec.accounting)?;
    if !(1..=PRIORITY_LEVEL_MAX).contains(&spec.level) {
        return Err(format!("priority level {}", spec.level));
    }
    let mut line = String::from("priority");
    if levels {
        line.push_str(&format!(" level {}", spec.level));
    }
    if let Some(rate) = spec.rate {
        line.push_str(&format!(" {}", kilobits_or_percent(rate)?));
    }
    match (spec.rate, spec.burst) {
        (_, None) => {}
        (Some(_), Some(burst)) => line.push_str(&format!(" {}", bytes(burst)?)),
        (None, Some(_)) => return Err("a priority burst without a rate".into()),
    }
    Ok(line)
}

fn shape(spec: ShaperSpec) -> Result<String, Problem> {
    counts_l2(spec.accounting)?;
    let kind = if spec.peak { "peak" } else { "average" };
    let mut line = format!("shape {kind} {}", bits_or_percent(spec.rate)?);
    match (spec.committed_burst_bits, spec.excess_burst_bits) {
        (None, None) => {}
        (None, Some(_)) => return Err("a shaper's excess burst without a committed burst".into()),
        (Some(bc), be) => {
            line.push_str(&format!(" {}", shaper_burst(bc, spec.rate, 1)?));
            if let Some(be) = be {
                line.push_str(&format!(" {}", shaper_burst(be, spec.rate, 0)?));
            }
        }
    }
    Ok(line)
}

/// A shaper's burst of `least` or more: in milliseconds beside a percentage, otherwise in bits.
fn shaper_burst(burst: BurstBits, rate: RateSpec, least: u64) -> Result<String, Problem> {
    match (burst, rate) {
        (_, RateSpec::Absolute(rate)) => match burst.at(rate) {
            bits if (least..=BYTES_MAX).contains(&bits) => Ok(bits.to_string()),
            _ => Err(format!("a shaper's burst outside 1 to {BYTES_MAX} bits")),
        },
        (BurstBits::Time(time), RateSpec::PercentMilli(_)) => {
            let millis = whole(time, 1_000_000).filter(|m| (least..=BURST_MILLIS_MAX).contains(m));
            let problem =
                || format!("a shaper's burst of {time}: whole ms, up to {BURST_MILLIS_MAX}");
            millis
                .map(|millis| format!("{millis} ms"))
                .ok_or_else(problem)
        }
        (BurstBits::Bits(_), RateSpec::PercentMilli(_)) => {
            Err("a shaper's burst in bits beside a rate in percent".into())
        }
    }
}

fn police(spec: &PolicerSpec, lines: &mut Vec<String>) -> Result<(), Problem> {
    counts_l2(spec.accounting)?;
    if spec.mode == ColourMode::Aware {
        return Err("colour-aware metering without class maps for the colours".into());
    }
    if spec.eir.is_some() {
        return Err("an excess information rate (RFC 4115); a peak rate it can".into());
    }
    if let Some(interval) = spec.refill_interval {
        return Err(format!("a policer replenished every {interval} only"));
    }
    let mut line = format!("police cir {}", bits_or_percent(spec.cir)?);
    if let Some(cbs) = spec.cbs {
        line.push_str(&format!(" bc {}", burst(cbs, spec.cir)?));
    }
    let excess = match (spec.pir, spec.ebs, spec.pbs) {
        (Some(_), Some(_), _) => return Err("an excess burst beside a peak rate".into()),
        (None, _, Some(_)) => return Err("a peak burst without a peak rate".into()),
        (Some(pir), None, pbs) => {
            if matches!(pir, RateSpec::Absolute(_)) != matches!(spec.cir, RateSpec::Absolute(_)) {
                return Err("one rate in percent and the other not".into());
            }
            line.push_str(&format!(" pir {}", bits_or_percent(pir)?));
            pbs.map(|pbs| burst(pbs, pir)).transpose()?
        }
        (None, ebs, None) => ebs.map(|ebs| burst(ebs, spec.cir)).transpose()?,
    };
    if let Some(excess) = excess {
        line.push_str(&format!(" be {excess}"));
    }
    lines.push(line);
    for (outcome, action) in spec.actions() {
        if let Some(action) = action {
            // Indented below `police`, as IOS prints it.
            lines.push(format!(" {outcome}-action {}", action_text(action)?));
        }
    }
    Ok(())
}

fn action_text(action: &Action) -> Result<String, Problem> {
    Ok(match *action {
        Action::Transmit => "transmit".into(),
        Action::Drop => "drop".into(),
        Action::SetDscp(dscp) => format!("set-dscp-transmit {}", code_point(dscp)?),
        Action::SetQosGroup(group) if group <= QOS_GROUP_MAX => format!("set-qos-transmit {group}"),
        Action::SetQosGroup(group) => {
            return Err(format!("QoS group {group}, above {QOS_GROUP_MAX}"));
        }
        Action::Queue(ref queue) => {
            return Err(format!("a policer that chooses the queue `{queue}`"));
        }
    })
}

/// A policer's burst: in milliseconds beside a percentage, otherwise in bytes.
fn burst(burst: BurstSpec, rate: RateSpec) -> Result<String, Problem> {
    match (burst, rate) {
        (BurstSpec::Size(size), RateSpec::Absolute(_)) => bytes(size),
        (BurstSpec::Time(_), RateSpec::Absolute(rate)) => bytes(burst.size(rate)),
        (BurstSpec::Size(_), RateSpec::PercentMilli(_)) => {
            Err("a burst in bytes beside a rate in percent: give it as a time".into())
        }
        (BurstSpec::Time(time), RateSpec::PercentMilli(_)) => {
            let millis = whole(time, 1_000_000).filter(|m| (1..=BURST_MILLIS_MAX).contains(m));
            let problem = || format!("a burst of {time}: whole ms, 1 to {BURST_MILLIS_MAX}");
            millis
                .map(|millis| format!("{millis} ms"))
                .ok_or_else(problem)
        }
    }
}

fn queue_limit(limit: QueueLimitSpec) -> Result<String, Problem> {
    let problem = |what: String| Err(format!("a queue limit of {what}"));
    match limit {
        QueueLimitSpec::Packets(0) => problem("no packets".into()),
        QueueLimitSpec::Packets(packets) => Ok(format!("queue-limit {packets} packets")),
        QueueLimitSpec::Bytes(size) => Ok(format!("queue-limit {} bytes", bytes(size)?)),
        QueueLimitSpec::Time(time) if time == Duration::ZERO => problem(time.to_string()),
        QueueLimitSpec::Time(time) => match written_time(time) {
            Ok(text) => Ok(format!("queue-limit {text}")),
            Err(what) => problem(what),
        },
    }
}

fn threshold(threshold: QueueLimitSpec) -> Result<String, Problem> {
    match threshold {
        QueueLimitSpec::Packets(packets) => Ok(packets.to_string()),
        QueueLimitSpec::Bytes(size) => Ok(format!("{} bytes", size.bytes())),
        QueueLimitSpec::Time(time) => {
            written_time(time).map_err(|what| format!("a WRED threshold of {what}"))
        }
    }
}

/// A time as part of a queue, or what of it cannot be written.
fn written_time(time: Duration) -> Result<String, String> {
    if time > QUEUE_LIMIT_MAX {
        return Err(time.to_string());
    }
    match (whole(time, 1_000_000), whole(time, 1_000)) {
        (Some(millis), _) => Ok(format!("{millis} ms")),
        (None, Some(micros)) => Ok(format!("{micros} us")),
        (None, None) => Err(format!("{time}, which is not whole microseconds")),
    }
}

fn random_detect(spec: &WredSpec, lines: &mut Vec<String>) -> Result<(), Problem> {
    let (enable, keyword, largest) = match spec.key {
        WredKey::Dscp => ("random-detect dscp-based", "dscp", 63),
        WredKey::Precedence => ("random-detect", "precedence", 7),
    };
    lines.push(enable.into());
    if let Some(weight) = spec.exponential_weight {
        if !(1..=WRED_EXPONENT_MAX).contains(&weight) {
            return Err(format!(
                "a WRED weight exponent of {weight}: 1 to {WRED_EXPONENT_MAX}"
            ));
        }
        lines.push(format!(
            "random-detect exponential-weighting-constant {weight}"
        ));
    }
    for (index, &(value, curve)) in spec.curves.iter().enumerate() {
        if value > largest {
            return Err(format!(
                "a WRED curve for {keyword} {value}, above {largest}"
            ));
        }
        if spec
            .curves
            .iter()
            .take(index)
            .any(|&(earlier, _)| earlier == value)
        {
            return Err(format!("two WRED curves for {keyword} {value}"));
        }
        if !(1..=MARK_DENOMINATOR_MAX).contains(&curve.mark_denominator) {
            let denominator = curve.mark_denominator;
            return Err(format!(
                "a mark probability denominator of {denominator}: 1 to {MARK_DENOMINATOR_MAX}"
            ));
        }
        let value = match spec.key {
            WredKey::Dscp => dscp_name(value),
            WredKey::Precedence => value.to_string().into(),
        };
        lines.push(format!(
            "random-detect {keyword} {value} {} {} {}",
            threshold(curve.min)?,
            threshold(curve.max)?,
            curve.mark_denominator
        ));
    }
    if spec.ecn {
        lines.push("random-detect ecn".into());
    }
    Ok(())
}

fn counts_l2(accounting: Accounting) -> Result<(), Problem> {
    if accounting == Accounting::L2 {
        return Ok(());
    }
    Err(format!("a rate that counts {accounting}: IOS counts L2"))
}

fn code_point(dscp: u8) -> Result<String, Problem> {
    if dscp > 63 {
        Err(format!("DSCP {dscp}, above 63"))
    } else {
        Ok(dscp_name(dscp).into())
    }
}

fn bytes(size: ByteCount) -> Result<String, Problem> {
    match size.bytes() {
        bytes @ 1..=BYTES_MAX => Ok(bytes.to_string()),
        bytes => Err(format!("a size of {bytes} bytes: 1 to {BYTES_MAX}")),
    }
}

/// `time` in units of `nanos`, where that is whole.
fn whole(time: Duration, nanos: u64) -> Option<u64> {
    time.nanos()
        .is_multiple_of(nanos)
        .then(|| time.nanos() / nanos)
}

fn bits_or_percent(rate: RateSpec) -> Result<String, Problem> {
    match rate {
        RateSpec::PercentMilli(milli) => percent(milli),
        RateSpec::Absolute(rate) if (BitRate::new(1)..=BitRate::MAX).contains(&rate) => {
            Ok(rate.bits_per_second().to_string())
        }
        RateSpec::Absolute(rate) => Err(format!("a rate of {rate}")),
    }
}

fn kilobits_or_percent(rate: RateSpec) -> Result<String, Problem> {
    match rate {
        RateSpec::PercentMilli(milli) => percent(milli),
        RateSpec::Absolute(rate) => {
            let bits = rate.bits_per_second();
            if bits == 0 || rate > BitRate::MAX || !bits.is_multiple_of(1_000) {
                return Err(format!(
                    "{rate} is not a whole number of kbit/s, the unit of `bandwidth` and `priority`"
                ));
            }
            Ok((bits / 1_000).to_string())
        }
    }
}

fn percent(milli: u32) -> Result<String, Problem> {
    if milli.is_multiple_of(1_000) && (1_000..=100_000).contains(&milli) {
        return Ok(format!("percent {}", milli / 1_000));
    }
    let (whole, thousandths) = (milli / 1_000, milli % 1_000);
    Err(format!(
        "{whole}.{thousandths:03} %: percentages are whole, 1 to 100"
    ))
}
