//! Sweeps: a case for each point of a grid of settings, or for points drawn at random.

use super::case::differ_in_more_than_case;
use super::check_names;
use crate::cases::{OF_THE_FILE, SweepAxis, WrittenCase, name_case};
use crate::file::{
    Decode, Entry, Key, Node, Placed, Problems, Span, Value, ValuePlace, merge_nodes,
};
use crate::seed::sample_seed;
use crate::spec::{At, AxisName, MAX_NAME_LENGTH, Named, OneOrMany, Scalar, Spacing};
use crate::{problem, settings};
use sha2::{Digest, Sha256};
use slicewise_stats::description::Coordinate;
use slicewise_stats::sweep::{Resolution, decimals};
use std::collections::{BTreeMap, BTreeSet};

/// Most points of a sweep.
const MAX_POINTS: u32 = 2_000;
/// Most values and keys of all points together: a minute of checking, and half a gigabyte.
const MAX_VALUES: usize = 10_000_000;
/// Units of which values of a range are whole numbers.
const WHOLE: [&str; 14] = [
    "", "packet", "packets", "frame", "frames", "B", "byte", "bytes", "KiB", "MiB", "GiB", "ns",
    "bit/s", "ppm",
];
/// Most decimals of a value that a search adds.
const MAX_DECIMALS: usize = 3;
/// Draws for each point of a sample, most of which are drawn already where there are hardly more.
const MAX_DRAWS: u32 = 20;

settings! {
    /// Cases that differ in some settings: one for each point of a grid.
    struct SweepSpec as "SweepSpec", strict {
        /// Axes of the grid, by name.
        [required] axes: Named<Placed<AxisSpec>>,
        /// Points that are drawn at random, instead of all of the grid.
        sample: Option<Placed<SampleSpec>>,
        /// How close two values of the first axis have to be of which performance isolation holds at one alone, in the unit
        /// of the axis, or in percent of the smaller one where the axis has another unit: until they are, a run adds points
        /// between them.
        refine: Option<At<String>>,
    }
}

settings! {
    /// An axis: settings that get the same value, and which values.
    struct AxisSpec as "SweepAxisSpec", strict {
        /// Setting, or several, by the keys above: `policies.fair.classes[voice].queue_limit`.
        [required] path: OneOrMany<At<String>>,
        /// Values: numbers with their unit, or words.
        values: Option<At<Vec<At<String>>>>,
        /// Instead of values: the first number of a range.
        from: Option<At<String>>,
        /// Last number of the range.
        to: Option<At<String>>,
        /// Number of values in the range. Points that are drawn at random are from all of it.
        count: Option<At<u64>>,
        /// Spacing of these values. Default: linear.
        spacing: Spacing,
    }
}

settings! {
    /// Points that are drawn at random.
    struct SampleSpec as "SweepSampleSpec", strict {
        /// Number of points.
        [required] points: At<u64>,
        /// Seed: the same seed gives the same points, and more of them first the same. Default 1.
        seed: Option<u64>,
    }
}

/// A sweep, as it is written.
pub(crate) struct Sweep {
    key: Key,
    /// Axes, and the settings that each changes.
    axes: Vec<(SweepAxis, Vec<ValuePlace>)>,
    points: Vec<(String, Point)>,
    /// How close values of the first axis are to be where isolation ceases to hold.
    pub(crate) resolution: Option<Resolution>,
}

/// Coordinates of a point, each with the place where its value is written.
type Point = Vec<(Coordinate, Span)>;

impl Sweep {
    /// Reads the sweep of the file `root`, with `added` points: a value for each axis; `None` where that is not possible, or something is wrong with it.
    pub(crate) fn read(
        (key, node): (Key, &Node),
        root: &Node,
        added: &[Vec<String>],
        problems: &mut Problems,
    ) -> Option<Self> {
        let entry = Entry {
            node,
            key: Some(key.span),
        };
        let spec = SweepSpec::decode(entry, problems)?;
        check_axes(&spec.axes, key.span, problems);
        let axes = spec.axes.iter();
        let axes = axes.map(|(name, axis)| {
            let places = places(axis, root, problems);
            let values = Values::read(axis, spec.sample.is_some(), problems);
            values.map(|values| (name.value.as_str(), places, values))
        });
        let axes: Vec<_> = axes.collect();
        let axes: Vec<_> = axes.into_iter().collect::<Option<_>>()?;
        if !problems.is_empty() {
            return None;
        }
        check_apart(&spec.axes, &axes, problems);
        let values: Vec<_> = axes
            .iter()
            .map(|(name, _, values)| (*name, values))
            .collect();
        let mut points = match &spec.sample {
            Some(sample) => drawn(&values, sample, problems)?,
            None => grid(&values, key.span, problems)?,
        };
        let resolution = resolution(&spec, &values, problems);
        points.extend(added.iter().map(|added| {
            let added = values.iter().zip(added);
            let added = added.map(|((axis, _), text)| (coordinate(axis, text.clone()), key.span));
            added.collect()
        }));
        let (count, size) = (points.len(), root.values());
        if count.saturating_mul(size) > MAX_VALUES {
            problem!(problems, key.span => "{count} points of a file with {size} values are more than {MAX_VALUES} \
                values to check"; "leave points out");
            return None;
        }
        let series = root.entry("name").and_then(|(_, name)| name.text());
        let series = series.unwrap_or_default();
        let points = points.into_iter();
        let points: Vec<_> = points
            .map(|point| (shortened(name(&point), series), point))
            .collect();
        let names = points.iter().map(|(name, _)| (name.as_str(), key.span));
        differ_in_more_than_case(names, problems);
        let axes = axes.into_iter();
        let axes = axes.map(|(name, places, values)| {
            let axis = SweepAxis {
                name: name.to_owned(),
                is_drawn: spec.sample.is_some() && matches!(values, Values::Range(_)),
            };
            (axis, places)
        });
        Some(Self {
            key,
            axes: axes.collect(),
            points,
            resolution,
        })
    }

    /// Returns its axes, in order.
    pub(crate) fn axes(&self) -> Vec<SweepAxis> {
        self.axes.iter().map(|(axis, _)| axis.clone()).collect()
    }

    /// Returns its points one after the other: all trees at once would fill the memory.
    pub(crate) fn into_cases(self, root: Node) -> impl Iterator<Item = WrittenCase> {
        let Self {
            key, axes, points, ..
        } = self;
        points.into_iter().map(move |(name, point)| {
            let mut root = root.clone();
            let mut said = Vec::new();
            for ((coordinate, span), (axis, places)) in point.iter().zip(&axes) {
                said.push(format!("{} {}", axis.name, coordinate.text));
                for place in places {
                    place.set(&mut root, scalar(coordinate.text.clone(), *span));
                }
            }
            let title = Key {
                text: "title".to_owned(),
                span: key.span,
            };
            let title = vec![(title, scalar(said.join(", "), key.span))];
            let title = Node {
                value: Value::Mapping(title),
                span: root.span,
            };
            let mut root = merge_nodes(root, title);
            let span = key.span;
            let name = Key { text: name, span };
            name_case(&mut root, &name);
            let coordinates = point.into_iter().map(|(coordinate, _)| coordinate);
            WrittenCase {
                name,
                root,
                x: None,
                coordinates: coordinates.collect(),
            }
        })
    }
}

fn scalar(text: String, span: Span) -> Node {
    let value = Value::Scalar(text);
    Node { value, span }
}

/// Checks the names of axes: figures name them, too.
fn check_axes(axes: &Named<Placed<AxisSpec>>, at: Span, problems: &mut Problems) {
    if axes.len() == 0 {
        problem!(problems, at => "a sweep has at least one axis";
            "name one, for example `axes: {{load: {{path: sources.bulk.rate, values: [50 %, 100 %]}}}}`");
    }
    check_names(axes, problems);
    for (name, _) in axes.iter() {
        if AxisName::from_text(&name.value).is_ok() {
            problem!(problems, name.span => "`{}` is an axis of every figure: give this one another name",
                name.value);
        }
    }
}

/// Settings that an axis changes.
fn places(axis: &Placed<AxisSpec>, root: &Node, problems: &mut Problems) -> Vec<ValuePlace> {
    let OneOrMany(paths) = &axis.value.path;
    if paths.is_empty() {
        problem!(problems, axis.span => "an axis changes at least one setting");
    }
    let places = paths.iter().filter_map(|path| {
        let first = path.value.split(['.', '[']).next().unwrap_or_default();
        if first == "title" || OF_THE_FILE.contains(&first) {
            problem!(problems, path.span => "`{first}` is said of the whole file, not of a point");
            return None;
        }
        ValuePlace::find(root, &path.value, path.span, problems)
    });
    places.collect()
}

/// No setting gets two values.
fn check_apart(
    specs: &Named<Placed<AxisSpec>>,
    axes: &[(&str, Vec<ValuePlace>, Values<'_>)],
    problems: &mut Problems,
) {
    let paths = specs.iter().flat_map(|(_, axis)| &axis.value.path.0);
    let places = axes.iter().flat_map(|(_, places, _)| places);
    let all: Vec<(&At<String>, &ValuePlace)> = paths.zip(places).collect();
    for (index, (path, place)) in all.iter().enumerate() {
        let mut before = all.iter().take(index);
        if let Some((other, _)) = before.find(|(_, other)| other.is_same(place)) {
            problem!(problems, path.span => "`{}` gets values from `{}` already", path.value, other.value);
        }
    }
}

/// Values along an axis.
enum Values<'a> {
    Listed(&'a [At<String>]),
    Range(Range<'a>),
}

/// Numbers of one unit.
struct Range<'a> {
    ends: [f64; 2],
    unit: &'a str,
    count: At<u64>,
    spacing: Spacing,
    span: Span,
}

impl<'a> Values<'a> {
    fn read(axis: &'a Placed<AxisSpec>, is_sampled: bool, problems: &mut Problems) -> Option<Self> {
        let spec = &axis.value;
        let range = ["from", "to", "count", "spacing"];
        let place = range
            .into_iter()
            .find_map(|key| Some((key, axis.place(key)?)));
        match (&spec.values, place) {
            (Some(_), Some((key, at))) => {
                problem!(problems, at => "an axis has `values` or a range, and `{key}` is of a range");
                None
            }
            (Some(values), None) => {
                if values.value.is_empty() {
                    problem!(problems, values.span => "an axis has at least one value");
                }
                check_different(&values.value, problems);
                Some(Self::Listed(&values.value))
            }
            (None, _) => Range::read(axis, is_sampled, problems).map(Self::Range),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Listed(values) => u64::try_from(values.len()).unwrap_or(u64::MAX),
            Self::Range(range) => range.count.value,
        }
    }

    /// Returns all values, in order.
    fn all(&self) -> Vec<(String, Span)> {
        match self {
            Self::Listed(values) => {
                let values = values.iter();
                values
                    .map(|value| (value.value.clone(), value.span))
                    .collect()
            }
            Self::Range(range) => {
                let count = u32::try_from(range.count.value).unwrap_or(u32::MAX);
                let steps = f64::from(count.saturating_sub(1));
                let values = (0..count).map(|step| range.at(f64::from(step) / steps));
                values.map(|text| (text, range.span)).collect()
            }
        }
    }

    /// The value that a random number stands for.
    fn drawn(&self, random: u64) -> Option<(String, Span)> {
        match self {
            Self::Listed(values) => {
                let index = random.checked_rem(self.len())?;
                let value = values.get(usize::try_from(index).ok()?)?;
                Some((value.value.clone(), value.span))
            }
            Self::Range(range) => {
                let share = u32::try_from(random >> 32).unwrap_or(u32::MAX);
                let share = f64::from(share) / f64::from(u32::MAX);
                Some((range.at(share), range.span))
            }
        }
    }
}

impl<'a> Range<'a> {
    fn read(axis: &'a Placed<AxisSpec>, is_sampled: bool, problems: &mut Problems) -> Option<Self> {
        let spec = &axis.value;
        let (Some(from), Some(to)) = (&spec.from, &spec.to) else {
            let missing = match (&spec.from, &spec.to) {
                (None, None) => "`values` are missing, or `from` and `to`",
                (None, Some(_)) => "`from` is missing",
                (Some(_), _) => "`to` is missing",
            };
            problem!(problems, axis.span => "{missing}: which values does the axis have?");
            return None;
        };
        let mut end = |text: &'a At<String>| {
            let number = number(&text.value);
            if number.is_none() {
                problem!(problems, text.span => "`{}` is no number with a unit", text.value;
                    "write words, addresses and ranges as `values`");
            }
            number
        };
        let (Some((first, unit)), Some((last, other))) = (end(from), end(to)) else {
            return None;
        };
        if unit != other {
            problem!(problems, to.span => "`from` is in `{unit}`, and `to` in `{other}`"; "give both one unit");
        }
        if spec.spacing == Spacing::Logarithmic && (first <= 0.0 || last <= 0.0) {
            let at = if first <= 0.0 { from.span } else { to.span };
            problem!(problems, at => "logarithmic spacing takes numbers above 0");
        }
        let count = match &spec.count {
            Some(count) => count.clone(),
            None => At {
                value: 2,
                span: axis.span,
            },
        };
        if spec.count.is_none() && !is_sampled {
            problem!(problems, axis.span => "`count` is missing: how many values does the range have?");
        }
        if count.value < 2 || first == last {
            problem!(problems, count.span => "a range has at least two values"; "write one as `values: [{}]`",
                from.value);
        }
        Some(Self {
            ends: [first, last],
            unit,
            count,
            spacing: spec.spacing,
            span: from.span,
        })
    }

    /// The number at a share of the way, with its unit.
    fn at(&self, share: f64) -> String {
        let [first, last] = self.ends;
        let number = match self.spacing {
            _ if share <= 0.0 => first,
            _ if share >= 1.0 => last,
            Spacing::Linear => first + (last - first) * share,
            Spacing::Logarithmic => first * (last / first).powf(share),
        };
        let decimals = match number.abs() {
            _ if WHOLE.contains(&self.unit) => 0,
            ..10.0 => 3,
            ..100.0 => 2,
            ..1000.0 => 1,
            _ => 0,
        };
        let rounded = match share {
            0.0 | 1.0 => number.to_string(),
            _ => format!("{number:.decimals$}"),
        };
        let rounded = match rounded.contains('.') {
            true => rounded.trim_end_matches('0').trim_end_matches('.'),
            false => &rounded,
        };
        format!("{rounded} {}", self.unit).trim_end().to_owned()
    }
}

/// No two values are the same.
fn check_different(values: &[At<String>], problems: &mut Problems) {
    let mut seen = BTreeMap::new();
    for value in values {
        let text = value.value.as_str();
        let same = match number(text) {
            Some((number, unit)) => format!("{number} {unit}"),
            None => text.to_lowercase(),
        };
        if let Some(other) = seen.insert(same, text) {
            problem!(problems, value.span => "`{other}` is a value of the axis already");
        }
    }
}

/// Splits a value into its number and its unit, which may be empty.
fn number(text: &str) -> Option<(f64, &str)> {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let end = text.find(|c| !is_of_number(c)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    // Rates of events are "a second": `6500 /s`.
    let named = unit.strip_prefix('/').unwrap_or(unit);
    let is_unit = unit.is_empty() || named.starts_with(|c: char| c == '%' || c.is_alphabetic());
    let number: f64 = number.replace('_', "").parse().ok()?;
    (number.is_finite() && is_unit).then_some((number, unit))
}

fn coordinate(axis: &str, text: String) -> Coordinate {
    let number = number(&text).map(|(number, unit)| (number, unit.to_owned()));
    let (number, unit) = number.unzip();
    Coordinate {
        axis: axis.to_owned(),
        text,
        number,
        unit: unit.unwrap_or_default(),
    }
}

/// Every combination of values; the last axis varies first.
fn grid(axes: &[(&str, &Values<'_>)], at: Span, problems: &mut Problems) -> Option<Vec<Point>> {
    let lengths = axes.iter().map(|(_, values)| u128::from(values.len()));
    let count = lengths.fold(1, u128::saturating_mul);
    if count > u128::from(MAX_POINTS) {
        problem!(problems, at => "the grid has {count} points, and a sweep at most {MAX_POINTS}";
            "leave values out, or draw some of its points at random: `sample: {{points: 200}}`");
        return None;
    }
    let mut points: Vec<Point> = vec![Vec::new()];
    for (name, values) in axes {
        let all = values.all();
        let mut neighbours = all.iter().zip(all.iter().skip(1));
        if let (Values::Range(range), Some(((text, _), _))) = (
            values,
            neighbours.find(|((one, _), (other, _))| one == other),
        ) {
            problem!(problems, range.count.span => "`count` is too large: two values are {text} when rounded");
            return None;
        }
        let extended = points.iter().flat_map(|point| {
            all.iter().map(|(text, span)| {
                let mut point = point.clone();
                point.push((coordinate(name, text.clone()), *span));
                point
            })
        });
        points = extended.collect();
    }
    Some(points)
}

/// How close values of the first axis are to be.
fn resolution(
    spec: &SweepSpec,
    axes: &[(&str, &Values<'_>)],
    problems: &mut Problems,
) -> Option<Resolution> {
    let At { value, span } = spec.refine.as_ref()?;
    let (axis, values) = axes.first()?;
    let Some((step, unit)) = number(value).filter(|(step, _)| *step > 0.0) else {
        problem!(problems, *span => "`{value}` is no number above 0"; "write the unit of `{axis}`, too");
        return None;
    };
    if spec.sample.is_some() {
        problem!(problems, *span => "`refine` adds points to a grid, and these are drawn at random");
    }
    let of_axis = values
        .all()
        .into_iter()
        .find_map(|(text, _)| Some(number(&text)?.1.to_owned()));
    let of_axis = of_axis.unwrap_or_default();
    let is_relative = unit == "%" && of_axis != unit;
    let (unit, decimals) = match is_relative {
        true if WHOLE.contains(&of_axis.as_str()) => (of_axis.as_str(), 0),
        true => (of_axis.as_str(), MAX_DECIMALS),
        false => (unit, decimals(value)),
    };
    if decimals > MAX_DECIMALS || (WHOLE.contains(&unit) && decimals > 0) {
        let most = if WHOLE.contains(&unit) {
            0
        } else {
            MAX_DECIMALS
        };
        problem!(problems, *span => "`{value}` has more than {most} digits after the point, and values between others \
            have no more");
    }
    for (text, at) in values.all() {
        match number(&text) {
            None => {
                problem!(problems, at => "`{text}` is no number, and `refine` looks for values between numbers");
            }
            Some((_, other)) if other != unit && is_relative => {
                problem!(problems, at => "values of `{axis}` are in `{unit}` and in `{other}`, and `refine` needs one unit";
                    "write all of them in `{unit}`");
                return None;
            }
            Some((_, other)) if other != unit => {
                problem!(problems, *span => "`{value}` is not in `{other}`, as `{text}` of `{axis}` is";
                    "write the distance in `{other}`, or in percent of the smaller value");
                return None;
            }
            Some(_) => {}
        }
    }
    Some(Resolution {
        step: if is_relative { step / 100.0 } else { step },
        is_relative,
        decimals,
        unit: unit.to_owned(),
    })
}

/// Different points at random.
fn drawn(
    axes: &[(&str, &Values<'_>)],
    sample: &Placed<SampleSpec>,
    problems: &mut Problems,
) -> Option<Vec<Point>> {
    let At { value, span } = sample.value.points;
    let wanted = u32::try_from(value).ok();
    let Some(wanted) = wanted.filter(|wanted| (1..=MAX_POINTS).contains(wanted)) else {
        problem!(problems, span => "a sweep has from 1 to {MAX_POINTS} points, and not {value}");
        return None;
    };
    let seed = sample.value.seed.unwrap_or(1);
    let (mut points, mut names) = (Vec::new(), BTreeSet::new());
    for number in 0..wanted * MAX_DRAWS {
        let point = axes.iter().map(|(axis, values)| {
            let (text, span) = values.drawn(sample_seed(seed, axis, number))?;
            Some((coordinate(axis, text), span))
        });
        let point = point.collect::<Option<Point>>()?;
        if names.insert(name(&point)) {
            points.push(point);
        }
        if points.len() == usize::try_from(wanted).unwrap_or(usize::MAX) {
            return Some(points);
        }
    }
    problem!(problems, span => "the axes have no {wanted} different points: {} were found", points.len();
        "lower `points`, or leave out `sample` to run all");
    None
}

/// Name of a point: it follows from its coordinates alone.
fn name(point: &[(Coordinate, Span)]) -> String {
    let parts = point.iter().map(|(Coordinate { axis, text, .. }, _)| {
        let text = text.replace('%', "pct").replace(['µ', 'μ'], "u");
        let text = text.replace(' ', "");
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        format!("{axis}-{}", text.replace(|c| !is_allowed(c), "-"))
    });
    parts.collect::<Vec<_>>().join("_")
}

/// The name, with a digest for its end where the name of the study `series` and it would be too long together.
fn shortened(name: String, series: &str) -> String {
    const DIGITS: usize = 12;
    let room = MAX_NAME_LENGTH.saturating_sub(series.len() + 1);
    if name.len() <= room {
        return name;
    }
    let digest: [u8; 32] = Sha256::digest(&name).into();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let begin = name
        .get(..room.saturating_sub(DIGITS + 1))
        .unwrap_or_default();
    format!("{begin}-{}", digest.get(..DIGITS).unwrap_or_default())
}
