//! Policies as commands of Linux traffic control (`tc`).
//!
//! [`write()`] translates a policy for a link into `tc` commands for the egress of one interface: a
//! token bucket filter of one packet is the link, HTB below it schedules, each class has its queue,
//! and classic BPF programs tell classes apart. Beside the commands it says what the kernel must
//! have ([`Feature`]), and how what the kernel then does differs from the policy. What cannot be
//! expressed is an error that lists all of it: nothing is approximated in silence.
//! `docs/formats/tc.md` explains every choice.

mod classic_bpf;
mod counting;
mod feature;
mod filter;
mod police;
mod queue;
mod tree;

pub use classic_bpf::{Instruction, Program};
pub use feature::Feature;
pub use filter::{FilterError, INSTRUCTIONS_MAX, compile as compile_class_map};

use crate::export::ExportError;
use crate::script::{self, comment};
use counting::Counting;
use queue::Place;
use slicewise_model::{PolicyParams, Rate};
use slicewise_units::{BitRate, ByteCount, Duration};
use std::collections::BTreeSet;
use std::fmt;
use tree::Writer;

/// Time that a link can make up for: a timer of the kernel is late by some tens of microseconds, and what is not sent
/// meanwhile would be lost.
const LINK_BURST: Duration = Duration::from_micros(100);
/// Major number of the link, and of the first scheduler.
const LINK_HANDLE: u32 = 1;
const SCHEDULER_HANDLE: u32 = 0x10;

/// A policy as commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcConfig {
    /// The policy's name.
    pub policy: String,
    /// The interface whose egress is configured.
    pub interface: String,
    /// The link's rate.
    pub link: Rate,
    /// The commands, in order. The interface must have the root discipline it came with.
    pub commands: Vec<TcCommand>,
    /// Features that the kernel must have.
    pub needs: BTreeSet<Feature>,
    /// How what the kernel then does differs from the policy, a sentence or a few each.
    pub differences: Vec<String>,
}

impl TcConfig {
    /// The command that undoes all of it.
    #[must_use]
    pub fn removal(&self) -> TcCommand {
        let arguments = ["qdisc", "del", "dev", &self.interface, "root"];
        TcCommand {
            why: "Remove all of it.".to_owned(),
            arguments: arguments.map(str::to_owned).to_vec(),
        }
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcCommand {
    /// Purpose of the command.
    pub why: String,
    /// Its arguments, without `tc` before them.
    pub arguments: Vec<String>,
}

impl fmt::Display for TcCommand {
    /// A line for a shell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tc")?;
        for argument in &self.arguments {
            f.write_str(" ")?;
            script::argument(f, argument)?;
        }
        Ok(())
    }
}

impl fmt::Display for TcConfig {
    /// A shell script.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "#!/bin/sh")?;
        let title = format!(
            "Policy `{}` at the egress of {}, a link of {} ({}).",
            self.policy, self.interface, self.link.rate, self.link.accounting
        );
        comment(f, "", &title)?;
        comment(f, "", &format!("Remove it with: {}", self.removal()))?;
        let needs: Vec<&str> = self.needs.iter().map(|need| need.name()).collect();
        comment(
            f,
            "",
            &format!("Needs of the kernel: {}.", needs.join(", ")),
        )?;
        comment(f, "", "What differs from the policy:")?;
        for difference in &self.differences {
            comment(f, "- ", difference)?;
        }
        writeln!(f, "set -e")?;
        for command in &self.commands {
            writeln!(f)?;
            comment(f, "", &command.why)?;
            writeln!(f, "{command}")?;
        }
        Ok(())
    }
}

/// Translate `policy`, for a link of rate `link` behind the egress of `interface`.
///
/// # Errors
/// All that traffic control cannot express: guarantees with a delay bound; WRED with several curves for the packets of a class,
/// or a step; policers that remark, heed colours or pass what either of two buckets holds; marking;
/// flow queues with priorities; named queues; more than 7 levels of priority; queue limits in packets and bytes at
/// once; guarantees beyond `link`; an interface that cannot have that name.
pub fn write(policy: &PolicyParams, link: Rate, interface: &str) -> Result<TcConfig, ExportError> {
    let counting = Counting::new(link, policy);
    let mut writer = Writer {
        interface,
        link: link.rate,
        counting,
        commands: Vec::new(),
        needs: BTreeSet::new(),
        differences: Vec::new(),
        problems: Vec::new(),
        next_handle: SCHEDULER_HANDLE,
    };
    if !script::is_interface_name(interface) {
        let why = format!(
            "`{interface}` is not the name of one: 1 to 15 characters, none of them a space, `/` or `:`"
        );
        writer.refuse("", "interface", why);
    }
    if tree::usable(link) {
        write_link(&mut writer, counting);
    } else {
        let why = format!("{} is less than one byte per second", link.rate);
        writer.refuse("", "link", why);
    }
    if tree::looks_at_packets(policy) {
        writer.differs(
            "Class maps look at the outermost IP packet: packets in a GTP-U tunnel are classified \
             by the outer packet."
                .to_owned(),
        );
    }
    let place = Place {
        parent: "1:1",
        rate: link.rate,
        path: "",
        code_points: u64::MAX,
    };
    writer.policy(policy, place);
    if !writer.problems.is_empty() {
        return Err(ExportError {
            policy: policy.name.clone(),
            language: "Linux traffic control",
            problems: writer.problems,
        });
    }
    Ok(TcConfig {
        policy: policy.name.clone(),
        interface: interface.to_owned(),
        link,
        commands: writer.commands,
        needs: writer.needs,
        differences: writer.differences,
    })
}

/// The depth of the token bucket that [`write`] lets stand for a link under `policy`.
#[must_use]
pub fn link_bucket(policy: &PolicyParams, link: Rate) -> ByteCount {
    bucket_depth(link.rate, Counting::new(link, policy))
}

fn bucket_depth(link: BitRate, counting: Counting) -> ByteCount {
    let most = ByteCount::new(u32::MAX.into());
    (counting.largest_frame() + link_burst(link)).min(most)
}

/// Returns the most bytes that a link of that rate makes up for; `tc` states it in 32 bits.
fn link_burst(link: BitRate) -> ByteCount {
    let most = ByteCount::new(u32::MAX.into());
    link.bytes_in(LINK_BURST).min(most)
}

/// The token bucket filter that stands for the link.
fn write_link(writer: &mut Writer<'_>, counting: Counting) {
    let burst = bucket_depth(writer.link, counting);
    writer.needs.insert(Feature::Tbf);
    // Its own queue is never used: what is attached below takes its place.
    let rest = format!(
        "tbf rate {}bit burst {} limit {}",
        writer.link.bits_per_second(),
        burst.bytes(),
        burst.bytes()
    );
    let mut arguments = counting.size_table();
    arguments.extend(rest.split(' ').map(str::to_owned));
    writer.command(
        "The link: frames leave one after another at its rate.",
        &format!("qdisc add root handle {LINK_HANDLE:x}:"),
        &arguments,
    );
    writer.differs(format!(
        "A frame that finds the link idle leaves at once, before the time that sending it takes and \
         not after; so do up to {burst} bytes of shorter frames together. Frames that count more \
         than {burst} bytes are dropped.",
        burst = burst.bytes()
    ));
    if let Some(assumption) = counting.assumption() {
        writer.differs(assumption);
    }
}
