//! Features of the kernel's traffic control that a configuration needs, and how to find out whether they are there.

use std::fmt;

/// A part of the kernel's traffic control that a kernel may be built without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Token bucket filter: the link.
    Tbf,
    /// Hierarchical token bucket: classes, priorities, minimums, shapers.
    Htb,
    /// `pfifo` and `bfifo`: queues with a limit in packets or bytes.
    Fifo,
    /// Classification by BPF programs.
    ClsBpf,
    /// The hooks at ingress and egress that filters attach to without a scheduler.
    Clsact,
    /// The policer.
    ActPolice,
    /// Random early detection.
    Red,
    /// `CoDel` for one queue.
    Codel,
    /// `CoDel` for a queue a flow.
    FqCodel,
    /// Strict priority without rates.
    Prio,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Tbf,
        Self::Htb,
        Self::Fifo,
        Self::ClsBpf,
        Self::Clsact,
        Self::ActPolice,
        Self::Red,
        Self::Codel,
        Self::FqCodel,
        Self::Prio,
    ];

    /// Its name, as that of the kernel's module: `act_police`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tbf => "sch_tbf",
            Self::Htb => "sch_htb",
            Self::Fifo => "sch_fifo",
            Self::ClsBpf => "cls_bpf",
            Self::Clsact => "sch_ingress",
            Self::ActPolice => "act_police",
            Self::Red => "sch_red",
            Self::Codel => "sch_codel",
            Self::FqCodel => "sch_fq_codel",
            Self::Prio => "sch_prio",
        }
    }

    /// The symbol of the kernel's configuration that includes it.
    #[must_use]
    pub const fn kernel_symbol(self) -> &'static str {
        match self {
            Self::Tbf => "CONFIG_NET_SCH_TBF",
            Self::Htb => "CONFIG_NET_SCH_HTB",
            Self::Fifo => "CONFIG_NET_SCH_FIFO",
            Self::ClsBpf => "CONFIG_NET_CLS_BPF",
            Self::Clsact => "CONFIG_NET_SCH_INGRESS",
            Self::ActPolice => "CONFIG_NET_ACT_POLICE",
            Self::Red => "CONFIG_NET_SCH_RED",
            Self::Codel => "CONFIG_NET_SCH_CODEL",
            Self::FqCodel => "CONFIG_NET_SCH_FQ_CODEL",
            Self::Prio => "CONFIG_NET_SCH_PRIO",
        }
    }

    /// Arguments of `tc`, one list a command, that all succeed in this order only where the kernel
    /// has the feature. They replace the root discipline of `interface`, which must be one made for
    /// this, in a network namespace made for this, and up or down as it may be. What the commands
    /// of one feature leave behind does not disturb those of another.
    ///
    /// Probing [`ClsBpf`](Self::ClsBpf) takes [`Clsact`](Self::Clsact): a filter needs something to
    /// be attached to.
    #[must_use]
    pub fn probe_commands(self, interface: &str) -> Vec<Vec<String>> {
        let words = |text: &str| -> Vec<String> {
            text.split(' ')
                .map(|word| match word {
                    "DEV" => interface.to_owned(),
                    word => word.to_owned(),
                })
                .collect()
        };
        let root = |discipline: &str| {
            vec![
                // Replacing a discipline by one of its own kind is a change, and may be refused.
                words("qdisc replace dev DEV root handle 1: pfifo limit 1"),
                words(&format!(
                    "qdisc replace dev DEV root handle 2: {discipline}"
                )),
            ]
        };
        let clsact = words("qdisc replace dev DEV clsact");
        match self {
            Self::Tbf => root("tbf rate 8mbit burst 2000 limit 2000"),
            Self::Htb => root("htb default 1"),
            Self::Fifo => vec![words("qdisc replace dev DEV root handle 1: pfifo limit 1")],
            Self::Red => root(
                "red limit 60000 min 3000 max 9000 avpkt 1500 burst 4 probability 0.1 bandwidth 8mbit",
            ),
            Self::Codel => root("codel limit 10"),
            Self::FqCodel => root("fq_codel limit 10"),
            Self::Prio => root("prio bands 3"),
            Self::Clsact => vec![clsact],
            Self::ClsBpf => {
                let mut filter = words(
                    "filter replace dev DEV egress protocol all prio 1 handle 1 bpf bytecode",
                );
                filter.push("1,6 0 0 0".to_owned());
                vec![clsact, filter]
            }
            Self::ActPolice => vec![words(
                "actions replace action police rate 8mbit burst 2000 conform-exceed drop/ok index 1",
            )],
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
