use slicewise_stats::description::{
    Basis, Capacity, Cell, Expected, Margins, PolicyDescription, PublishedFigure, PublishedVerdict,
    Scalability, ScenarioDescription, SliceDescription, SliceLimit, StudyDescription,
};
use slicewise_stats::quantity::Quantity;
use std::collections::BTreeMap;

/// A text that breaks a page written carelessly.
pub const NAUGHTY: &str = "</script><script>document.title='broken'</script><!--&amp;\u{2028}\"'";

/// How much of the synthetic study.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub policies: usize,
    pub scenarios: usize,
    pub repetitions: u32,
    pub seconds: u64,
}

impl Size {
    pub const SMALL: Self = Self {
        policies: 3,
        scenarios: 3,
        repetitions: 3,
        seconds: 4,
    };
    pub const FULL: Self = Self {
        policies: 7,
        scenarios: 7,
        repetitions: 10,
        seconds: 40,
    };
}

pub const POLICIES: [(&str, &str, Option<u64>); 7] = [
    ("no policy", "One shared FIFO", None),
    (
        "priority",
        "A priority queue for the critical slice",
        Some(2),
    ),
    ("shaping", "Best effort shaped to half the link", Some(256)),
    (
        "policing",
        "Best effort policed to half the link",
        Some(256),
    ),
    (
        "bandwidth",
        "A minimum for the critical slice, the rest shared",
        Some(256),
    ),
    (
        "WRED",
        "Early random drops on best effort, over a shaper",
        Some(256),
    ),
    (
        "tail drop",
        "A short queue for best effort, over a shaper",
        Some(256),
    ),
];

pub fn study(size: Size) -> StudyDescription {
    let policies = POLICIES
        .iter()
        .take(size.policies)
        .map(|&(name, title, slices)| PolicyDescription {
            name: name.to_owned(),
            title: title.to_owned(),
            configuration: format!("policy-map {}\n class be\n  …\n", name.replace(' ', "-")),
            scalability: Scalability {
                slices: slices.map_or(SliceLimit::NoPracticalLimit, SliceLimit::Slices),
                limited_by: match slices {
                    Some(2) => "2 priority levels (256 classes)".to_owned(),
                    Some(n) => format!("{n} classes in a policy"),
                    None => "nothing is configured for a slice".to_owned(),
                },
                source: "made up for tests".to_owned(),
            },
            delay_bounds: BTreeMap::new(),
            round_ns: 0,
            unbounded: Vec::new(),
            not_judged: None,
            rests_on: Vec::new(),
            published_verdict: Some(PublishedVerdict {
                isolation: !matches!(name, "no policy" | "bandwidth"),
                reallocation: matches!(name, "no policy" | "priority" | "bandwidth"),
                scalability: slices.map_or("no limit".to_owned(), |n| n.to_string()),
                remark: if name == "bandwidth" {
                    "latency".to_owned()
                } else {
                    String::new()
                },
            }),
            phase: None,
        });
    let on_off = [5, 15, 20, 25, 30, 35, 40];
    let scenarios = (0..size.scenarios).map(|index| ScenarioDescription {
        x: String::new(),
        name: index.to_string(),
        title: format!("{} % of the link at the peak", 90 + on_off[index]),
        reference: index == 0,
        cycle_ns: 2_000_000_000,
    });
    StudyDescription {
        case: None,
        coordinates: Vec::new(),
        plots: Vec::new(),
        name: "synthetic".to_owned(),
        title: "Synthetic study of six ways to share a bottleneck".to_owned(),
        description: "Made by a fluid model for tests of the report; its numbers claim nothing. \
                      Two slices share one link: the critical one keeps to what it was promised, \
                      best effort overloads the link more in every scenario."
            .to_owned(),
        source: format!("nobody, nowhere {NAUGHTY}"),
        digest: "3f9a5d0c1b7e4426".to_owned(),
        file_name: "synthetic.yaml".to_owned(),
        seed: 1,
        program_version: "0.1.0".to_owned(),
        backend: "simulator".to_owned(),
        is_quick: false,
        dut: "fluid model, 35 Mbit/s, ports 1 Gbit/s".to_owned(),
        assumptions: vec![
            "The licence is a token bucket of 21 MB.".to_owned(),
            format!("A text with everything in it: {NAUGHTY}"),
        ],
        repetitions: size.repetitions,
        duration_ns: size.seconds * 1_000_000_000,
        is_without_chance: false,
        capacity: Capacity {
            varies: false,
            bits_per_second: 35_000_000,
            frame_overhead_bytes: 0,
            in_atm_cells: false,
        },
        slices: vec![
            SliceDescription {
                name: "critical".to_owned(),
                share_bits_per_second: 17_500_000,
                guaranteed: true,
                objective: None,
            },
            SliceDescription {
                name: "best effort".to_owned(),
                share_bits_per_second: 17_500_000,
                ..SliceDescription::default()
            },
        ],
        policies: policies.collect(),
        inputs: vec![vec!["3f9a".to_owned(); size.scenarios]; size.policies],
        scenarios: scenarios.collect(),
        // Two repetitions are enough to decide: what their number changes has tests of its own.
        phases: Vec::new(),
        margins: Margins {
            rare_runs: 0.9,
            ..Margins::default()
        },
        published: published(size),
    }
}

fn published(size: Size) -> Vec<PublishedFigure> {
    let figure = |claim: &str, metric: Quantity, slice: Option<&str>, expected| PublishedFigure {
        claim: claim.to_owned(),
        source: "section 4.2".to_owned(),
        metric: metric.into(),
        policies: Vec::new(),
        scenarios: Vec::new(),
        phase: None,
        slice: slice.map(str::to_owned),
        queue: None,
        relative_to: None,
        basis: Basis::Predicted,
        expected,
        tolerance_from: String::new(),
        explanation: String::new(),
    };
    let mut figures = vec![
        figure(
            "inter-arrival time, mean 0.7355 ms",
            Quantity::IatMean,
            Some("critical"),
            Expected::About {
                value: 735_500.0,
                tolerance: 0.01,
            },
        ),
        figure(
            "smallest delay 0.066 ms",
            Quantity::DelayMin,
            Some("critical"),
            Expected::About {
                value: 66_000.0,
                tolerance: 0.1,
            },
        ),
    ];
    if size.policies > 4 && size.scenarios > 6 {
        figures.push(PublishedFigure {
            policies: vec!["bandwidth".to_owned()],
            scenarios: vec!["6".to_owned()],
            relative_to: Some(Cell {
                policy: Some("priority".to_owned()),
                scenario: None,
            }),
            explanation: "A fluid has no packets to wait for.".to_owned(),
            ..figure(
                "bandwidth's delay about + 100 % in scenario 6",
                Quantity::DelayMean,
                Some("critical"),
                Expected::About {
                    value: 1.0,
                    tolerance: 0.3,
                },
            )
        });
    }
    figures
}
