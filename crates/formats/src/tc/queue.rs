//! The queue of a class: a discipline without classes.

use super::Feature;
use super::counting::Counting;
use slicewise_model::{
    ClassParams, FlowQueueParams, QueueLimitParams, QueueManager, RedCurve, WredParams,
};
use slicewise_units::{Accounting, BitRate, ByteCount, Duration};

/// The shortest Ethernet frame without FCS, in bytes.
const SHORTEST_FRAME_BYTES: u64 = 60;
/// Assumed packet size to convert thresholds in packets to bytes, as for RED's thresholds of routers.
const RED_PACKET_BYTES: u64 = 1_500;

/// A queueing discipline, as arguments, and how it differs from what the policy asks for.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) arguments: Vec<String>,
    pub(super) needs: Option<Feature>,
    pub(super) differences: Vec<String>,
}

/// Why there is no such queue: which setting, and what is wrong with it.
pub(super) type Refusal = (&'static str, String);

impl Queue {
    fn new(feature: Feature, text: &str) -> Self {
        Self {
            arguments: text.split(' ').map(str::to_owned).collect(),
            needs: Some(feature),
            differences: Vec::new(),
        }
    }
}

/// The queue of `class` at its place.
pub(super) fn queue(
    class: &ClassParams,
    place: Place<'_>,
    counting: Counting,
) -> Result<Queue, Refusal> {
    if class.hqos.is_some() {
        let problem = "the kernel has no discipline like the hierarchical scheduler of DPDK; export it `--to dpdk`, or run it \
                       `--on dpdk`";
        return Err(("hqos", problem.to_owned()));
    }
    match (&class.queue.manager, class.queue.flow_queue()) {
        (_, Some(flow_queue)) => flows(class, flow_queue),
        (QueueManager::Red(wred), None) => red(class, wred, place, counting),
        (QueueManager::TailDrop, None) if class.queue.keeps_order() => tail_drop(class, counting),
        (manager, None) => {
            let setting = manager.setting().unwrap_or("flow_queue");
            Err((setting, "tc is written without it".to_owned()))
        }
    }
}

/// The limit that binds, where only one of the two can.
enum Limit {
    Packets(u32),
    Bytes(u32),
}

fn limit(limit: QueueLimitParams) -> Result<Limit, Refusal> {
    let refused = |problem: &str| Err(("queue_limit", problem.to_owned()));
    if limit.bytes == ByteCount::new(u64::MAX) {
        return Ok(Limit::Packets(limit.packets));
    }
    if u64::from(limit.packets) < limit.bytes.bytes() / SHORTEST_FRAME_BYTES {
        return refused(
            "a queue of the kernel has a limit in packets or in bytes, not both; give one of them",
        );
    }
    match u32::try_from(limit.bytes.bytes()) {
        Ok(bytes) => Ok(Limit::Bytes(bytes)),
        Err(_) => {
            refused("a queue of the kernel holds at most 4294967295 bytes; give a shorter limit")
        }
    }
}

fn tail_drop(class: &ClassParams, counting: Counting) -> Result<Queue, Refusal> {
    match limit(class.queue.limit)? {
        Limit::Packets(packets) => Ok(Queue::new(Feature::Fifo, &format!("pfifo limit {packets}"))),
        Limit::Bytes(bytes) => {
            let mut queue = Queue::new(Feature::Fifo, &format!("bfifo limit {bytes}"));
            let what = format!("The queue limit of class `{}`", class.name);
            queue
                .differences
                .extend(counting.difference(&what, Accounting::L2, false));
            Ok(queue)
        }
    }
}

/// In whole microseconds, the unit of `tc`.
fn micros(time: Duration) -> u64 {
    time.nanos() / 1_000
}

fn flows(class: &ClassParams, params: FlowQueueParams) -> Result<Queue, Refusal> {
    let FlowQueueParams { flows, codel } = params;
    let refused = |problem: &str| Err(("flow_queue", problem.to_owned()));
    if flows.levels.count() > 1 {
        return refused(
            "fq_codel has no priorities among its flows; leave its levels out, or give each a class with `priority`",
        );
    }
    let Limit::Packets(packets) = limit(class.queue.limit)? else {
        return refused(
            "fq_codel and codel have a limit in packets; the one in bytes that fq_codel has counts \
             the kernel's memory, not frames; give the limit in packets",
        );
    };
    let ecn = if codel.ecn { "ecn" } else { "noecn" };
    let common = format!(
        "limit {packets} target {}us interval {}us",
        micros(codel.target),
        micros(codel.interval)
    );
    if flows.flows == 1 {
        return Ok(Queue::new(Feature::Codel, &format!("codel {common} {ecn}")));
    }
    let text = format!(
        "fq_codel {common} flows {} quantum {} {ecn}",
        flows.flows, flows.quantum
    );
    let mut queue = Queue::new(Feature::FqCodel, &text);
    queue.differences.push(format!(
        "Class `{}`: fq_codel hashes flows with a secret of its own, so other flows share a queue; \
         when full it drops up to 64 packets of the longest queue at once, not one.",
        class.name
    ));
    Ok(queue)
}

fn red(
    class: &ClassParams,
    wred: &WredParams,
    place: Place<'_>,
    counting: Counting,
) -> Result<Queue, Refusal> {
    let refused = |problem: String| Err(("wred", problem));
    // Curves of code points that no packet here has select nothing.
    let curves = (0u32..64).zip(&wred.curves);
    let mut curves = curves.filter(|(dscp, _)| place.code_points >> dscp & 1 == 1);
    let Some((first, &curve)) = curves.next() else {
        return refused("has no curve for the packets of this class".to_owned());
    };
    if let Some((second, _)) = curves.find(|(_, other)| **other != curve) {
        return refused(format!(
            "has several curves, of code points {first} and {second} for example: red has one for all packets of its \
             queue, and gred chooses its curve by a mark (tc_index) that no classic filter sets; give all code points of \
             the class one curve, or each curve a class with a `match` of its code points",
        ));
    }
    let RedCurve {
        min_packets,
        max_packets,
        mark_denominator,
    } = curve;
    if min_packets >= max_packets || min_packets == 0 {
        return refused(format!(
            "drops from {min_packets} to {max_packets} packets on: red needs a minimum above zero and \
             below its maximum; raise `max` above `min`, and `min` above 0"
        ));
    }
    let bytes = |packets: u32| u64::from(packets) * RED_PACKET_BYTES;
    let held = match limit(class.queue.limit)? {
        Limit::Packets(packets) => bytes(packets),
        Limit::Bytes(bytes) => bytes.into(),
    };
    if held > u64::from(u32::MAX) || bytes(max_packets) > u64::from(u32::MAX) {
        return refused("red holds at most 4294967295 bytes: give shorter limits".to_owned());
    }
    let Some(burst) = red_burst(min_packets, wred.exponential_weight) else {
        return refused(format!(
            "an average with weight 2^-{} from {min_packets} packets on has no burst that tc would \
             derive it from; give another `weight_exponent`",
            wred.exponential_weight
        ));
    };
    let text = format!(
        "red limit {held} min {} max {} avpkt {RED_PACKET_BYTES} burst {burst} probability {} \
         bandwidth {}bit",
        bytes(min_packets),
        bytes(max_packets),
        one_part_in(mark_denominator),
        place.rate.bits_per_second()
    );
    // Without `harddrop`, red would mark above the maximum, too.
    let text = text + if wred.ecn { " ecn harddrop" } else { "" };
    let mut queue = Queue::new(Feature::Red, &text);
    queue.differences.push(format!(
        "Class `{}`: red averages and limits bytes, not packets: its thresholds are those of packets \
         that count {RED_PACKET_BYTES} bytes, and shorter ones fill the queue less ({}).",
        class.name,
        match limit(class.queue.limit)? {
            Limit::Packets(packets) => format!("its limit of {packets} packets is {held} bytes"),
            Limit::Bytes(_) => format!("its limit is {held} bytes"),
        }
    ));
    let what = format!("Random early detection of class `{}`", class.name);
    queue
        .differences
        .extend(counting.difference(&what, Accounting::L2, false));
    Ok(queue)
}

/// 1/n in decimals.
fn one_part_in(n: u32) -> String {
    let billionths = 1_000_000_000 / u64::from(n.max(1));
    match billionths {
        1_000_000_000 => "1.0".to_owned(),
        0 => "0.000000001".to_owned(),
        _ => {
            let digits = format!("{billionths:09}");
            format!("0.{}", digits.trim_end_matches('0'))
        }
    }
}

/// The least burst from which `tc` derives the weight 2^-n of the average: it takes the first n with
/// burst + 1 - min/avpkt ≤ (1 - (1 - 2^-n)^burst) / 2^-n (`tc_red_eval_ewma`). Floating point as
/// there, so that both come to the same n.
fn red_burst(min_packets: u32, exponent: u8) -> Option<u32> {
    let derives = |burst: u32, n: u8| {
        let weight = f64::from(n).exp2().recip();
        let wanted = f64::from(burst) + 1.0 - f64::from(min_packets);
        let power = (1.0 - weight).powf(f64::from(burst));
        wanted <= (1.0 - power) / weight
    };
    // What the weight allows grows with n: for one n the bursts are a range.
    let (mut low, mut high) = (min_packets, min_packets.saturating_add(1 << 22));
    while low < high {
        let middle = low + (high - low) / 2;
        match exponent {
            0 | 1 => high = middle,
            n if derives(middle, n - 1) => low = middle + 1,
            _ => high = middle,
        }
    }
    derives(low, exponent).then_some(low)
}

/// Where a policy goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The class that holds it.
    pub(super) parent: &'a str,
    /// Highest rate of that class.
    pub(super) rate: BitRate,
    /// Prefix of the names of its classes.
    pub(super) path: &'a str,
    /// The code points that its packets may have: bit `n` stands for code point `n`.
    pub(super) code_points: u64,
}
