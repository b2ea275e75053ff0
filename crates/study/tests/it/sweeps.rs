//! Sweeps: a case for each point of a grid.

use crate::support::{STUDY, files, told, with_application};
use insta::assert_snapshot;
use slicewise_stats::plot::{PlotDescription, PlotX};
use slicewise_study::{Series, Study, StudyFile};

/// The series of a file, or what is said of it.
fn read(text: &str) -> Result<Series, String> {
    match StudyFile::parse(text, "study.yaml", &files()) {
        Ok(StudyFile::Series(series)) => Ok(*series),
        Ok(StudyFile::Study(_)) => panic!("a sweep has points"),
        Err(mistakes) => Err(told(&mistakes)),
    }
}

/// The study of the other tests, with a sweep.
fn with(sweep: &str) -> Result<Series, String> {
    read(&format!("{STUDY}sweep:\n{sweep}"))
}

fn refused(sweep: &str) -> String {
    with(sweep).expect_err("this should be refused")
}

/// Returns the messages about an axis `a`.
fn refused_axis(axis: &str) -> String {
    refused(&format!("  axes: {{a: {axis}}}\n"))
}

fn names(series: &Series) -> Vec<&str> {
    series.case_names().collect()
}

/// Names of the points along an axis of the number of repetitions, or of another setting.
fn along(path: &str, values: &str) -> Vec<String> {
    let series = with(&format!("  axes: {{a: {{path: {path}, {values}}}}}\n")).unwrap();
    let texts = series.cases.iter().map(|study| &study.coordinates[0].text);
    texts.cloned().collect()
}

const TWO_AXES: &str = "  axes:
    load: {path: sources.steady.rate, values: [10 %, 55.5 %]}
    buffer:
      path: ['policies.weighted.classes[rest].queue_limit', 'policies.weighted.classes[0].queue_limit']
      from: 16 packets
      to: 1024 packets
      count: 4
      spacing: logarithmic
";

#[test]
fn every_point_of_the_grid_is_a_case_with_the_values_of_its_coordinates() {
    let series = with(TWO_AXES).unwrap();
    let axes: Vec<&str> = series.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(axes, ["load", "buffer"]);
    assert_eq!(
        names(&series),
        [
            "load-10pct_buffer-16packets",
            "load-10pct_buffer-64packets",
            "load-10pct_buffer-256packets",
            "load-10pct_buffer-1024packets",
            "load-55.5pct_buffer-16packets",
            "load-55.5pct_buffer-64packets",
            "load-55.5pct_buffer-256packets",
            "load-55.5pct_buffer-1024packets",
        ]
    );
    let study = series.case("load-55.5pct_buffer-64packets").unwrap();
    assert_eq!(study.name, "small-load-55.5pct_buffer-64packets");
    assert_eq!(study.title, "load 55.5 %, buffer 64 packets");
    // The source is a template: its rate is that of every scenario.
    for scenario in &study.scenarios {
        let rate = scenario.sources[0].rate;
        assert_eq!(rate.bits_per_second(), 5_550_000);
    }
    let limits = format!("{:?}", study.policies[1].spec);
    assert_eq!(limits.matches("Packets(64)").count(), 2, "{limits}");
    let coordinates = study.description("1").coordinates;
    let coordinates: Vec<_> = coordinates
        .iter()
        .map(|it| (&*it.axis, &*it.text, it.number, &*it.unit))
        .collect();
    assert_eq!(
        coordinates,
        [
            ("load", "55.5 %", Some(55.5), "%"),
            ("buffer", "64 packets", Some(64.0), "packets")
        ]
    );
}

#[test]
fn numbers_of_a_range_are_whole_where_the_unit_is_not_divided_and_have_few_digits_otherwise() {
    let packets = |range: &str| along("'policies.weighted.classes[rest].queue_limit'", range);
    assert_eq!(
        packets("from: 10 packets, to: 100 packets, count: 3, spacing: logarithmic"),
        ["10 packets", "32 packets", "100 packets"]
    );
    let load = |range: &str| along("sources.steady.rate", range);
    assert_eq!(
        load("from: 10 %, to: 90 %, count: 5"),
        ["10 %", "30 %", "50 %", "70 %", "90 %"]
    );
    assert_eq!(
        load("from: 1%, to: 2.5 %, count: 4, spacing: logarithmic"),
        ["1 %", "1.357 %", "1.842 %", "2.5 %"]
    );
    assert_eq!(
        load("from: 1500 kbit/s, to: 100 kbit/s, count: 4"),
        ["1500 kbit/s", "1033 kbit/s", "566.7 kbit/s", "100 kbit/s"]
    );
    assert_eq!(
        along("repetitions", "from: 1, to: 10, count: 4"),
        ["1", "4", "7", "10"]
    );
}

#[test]
fn a_rate_of_events_is_a_number_with_a_unit() {
    let text = with_application("application: {kind: requests, rate: 50 /s, response: 1 kB}");
    let sweep = "sweep:\n  axes: {rate: {path: sources.app.application.rate, from: 40 /s, to: 80 /s, count: 3}}\n  refine: 5 /s\n";
    let series = read(&format!("{text}{sweep}")).unwrap();
    let of = |study: &Study| {
        let rate = &study.coordinates[0];
        (rate.number, rate.unit.clone(), rate.text.clone())
    };
    let all: Vec<_> = series.cases.iter().map(of).collect();
    let at = |number, text: &str| (Some(number), "/s".to_owned(), text.to_owned());
    assert_eq!(
        all,
        [at(40.0, "40 /s"), at(60.0, "60 /s"), at(80.0, "80 /s")]
    );
    assert!(series.refine.is_some());
    assert_eq!(names(&series)[0], "rate-40-s");
}

#[test]
fn a_value_may_be_a_word_and_a_setting_need_not_be_written() {
    assert_eq!(
        along("dut.processing_delay", "values: [1 ms, 2.5 ms]"),
        ["1 ms", "2.5 ms"]
    );
    let series = with("  axes: {a: {path: seed, values: [1, 7]}, of: {path: policies.router.ios, values: [router.cfg]}}\n").unwrap();
    assert_eq!(names(&series), ["a-1_of-router.cfg", "a-7_of-router.cfg"]);
    assert_eq!(series.cases[1].seed, 7);
    assert_eq!(series.cases[1].coordinates[1].number, None);
}

#[test]
fn names_of_points_follow_from_their_coordinates_alone() {
    let more = TWO_AXES
        .replace("[10 %,", "[1 %, 10 %,")
        .replace("1024 packets", "16384 packets")
        .replace("count: 4", "count: 6");
    let (some, more) = (with(TWO_AXES).unwrap(), with(&more).unwrap());
    assert_eq!(more.cases.len(), 18);
    for name in names(&some) {
        assert!(more.case(name).is_ok(), "{name}");
    }
    // Names that would be too long end with a digest.
    let axis = "a-very-long-name-of-an-axis-of-a-sweep-that-goes-on-and-on";
    let long = with(&format!(
        "  axes: {{{axis}: {{path: duration, values: [1.25 s, 1.5 s]}}}}\n"
    ))
    .unwrap();
    assert_eq!(
        names(&long),
        [
            "a-very-long-name-of-an-axis-of-a-sweep-that-g-fc7c137c1239",
            "a-very-long-name-of-an-axis-of-a-sweep-that-g-a11160b76314"
        ]
    );
    assert!(long.cases.iter().all(|study| study.name.len() == 64));
}

#[test]
fn a_sample_draws_different_points_of_the_ranges_by_its_seed() {
    let sampled = |points: u32, seed: u32| {
        let sample = format!("{TWO_AXES}  sample: {{points: {points}, seed: {seed}}}\n");
        let series = with(&sample).unwrap();
        names(&series)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (few, many) = (sampled(5, 7), sampled(40, 7));
    assert_eq!(few, many[..5]);
    assert_ne!(few, sampled(5, 8));
    let different: std::collections::BTreeSet<_> = many.iter().collect();
    assert_eq!(different.len(), 40);
    // As many below the geometric mean of the range as above it.
    let buffer = |name: &String| {
        name.rsplit_once('-')
            .unwrap()
            .1
            .trim_end_matches("packets")
            .parse::<u32>()
            .unwrap()
    };
    let buffers: Vec<u32> = many.iter().map(buffer).collect();
    assert!(
        buffers.iter().all(|buffer| (16..=1024).contains(buffer)),
        "{buffers:?}"
    );
    let low = buffers.iter().filter(|buffer| **buffer < 128).count();
    assert!((12..=28).contains(&low), "{buffers:?}");
}

#[test]
fn a_mistake_says_at_which_point_it_is_and_one_of_all_points_is_told_once() {
    assert_snapshot!(refused_axis("{path: 'policies.weighted.classes[gold].minimum', values: [50 %, 60 %, 130 %]}"), @"study.yaml:35:84 `130 %`: this is more than 100 % (in point `a-130pct`)");
    assert_snapshot!(refused_axis("{path: sources.steady.rte, values: [50 %, 60 %, 70 %]}"), @"study.yaml:35:20 `sources.steady.rte`: `rte` is not a setting here (in point `a-50pct` and 2 others); help: did you mean `rate`?");
    let text = format!(
        "{}sweep: {{axes: {{a: {{path: seed, values: [1, 2, 3]}}}}}}\n",
        STUDY.replace("duration: 5 s", "duration: 5")
    );
    assert_snapshot!(read(&text).unwrap_err(), @"study.yaml:33:11 `5`: `5` is a number without a unit: a duration needs one of ns, µs, ms, s, min, h (in point `a-1` and 2 others)");
}

#[test]
fn a_path_that_leads_nowhere_is_refused() {
    let at = |path: &str| refused_axis(&format!("{{path: '{path}', values: [1]}}"));
    assert_snapshot!(at("polices.weighted.weight"), @"study.yaml:35:20 `'polices.weighted.weight'`: there is no `polices` in the file; help: did you mean `policies`?");
    assert_snapshot!(at("policies.weihgted.classes[0].weight"), @"study.yaml:35:20 `'policies.weihgted.classes[0].weight'`: there is no `weihgted` in `policies`; help: did you mean `weighted`?");
    assert_snapshot!(at("policies.weighted.classes[glod].weight"), @"study.yaml:35:20 `'policies.weighted.classes[glod].weight'`: there is no `glod` among the 2 elements of `policies.weighted.classes`; help: did you mean `gold`?");
    assert_snapshot!(at("policies.weighted.classes[2].weight"), @"study.yaml:35:20 `'policies.weighted.classes[2].weight'`: there is no `2` among the 2 elements of `policies.weighted.classes`; help: known are `gold`, `rest`");
    assert_snapshot!(at("policies.weighted.classes.gold"), @"study.yaml:35:20 `'policies.weighted.classes.gold'`: `policies.weighted.classes` is a list: write which element in brackets, by its name or counted from `[0]`; help: known are `gold`, `rest`");
    assert_snapshot!(at("policies.weighted.classes[gold]"), @"study.yaml:35:20 `'policies.weighted.classes[gold]'`: `policies.weighted.classes[gold]` holds settings and is no single value; help: known are `name`, `slice`, `minimum`");
    assert_snapshot!(at("policies.weighted.classes[gold]weight"), @"study.yaml:35:20 `'policies.weighted.classes[gold]weight'`: `policies.weighted.classes` is a list: write which element in brackets, by its name or counted from `[0]`; help: known are `gold`, `rest`");
    assert_snapshot!(at("policies.weighted"), @"study.yaml:35:20 `'policies.weighted'`: `policies.weighted` holds settings and is no single value; help: known are `classes`");
    assert_snapshot!(at("policies.weighted.classes"), @"study.yaml:35:20 `'policies.weighted.classes'`: `policies.weighted.classes` is a list: choose an element, as in `policies.weighted.classes[0]`; help: known are `gold`, `rest`");
    assert_snapshot!(at("duration.x"), @"study.yaml:35:20 `'duration.x'`: `duration` is one value: there is no `duration.x`");
    assert_snapshot!(at("duration."), @"study.yaml:35:20 `'duration.'`: `duration` is one value: there is no `duration.`");
    assert_snapshot!(at("policies[0]"), @"study.yaml:35:20 `'policies[0]'`: `policies` holds settings: go on with a full stop and one of its keys; help: known are `nothing`, `weighted`, `router`");
    assert_snapshot!(at(""), @"study.yaml:35:20 `''`: the file holds settings: go on with a full stop and one of its keys; help: known are `name`, `link`, `dut`, `slices`, `sources`, `scenarios`, `policies`, `repetitions`, `duration`");
    assert_snapshot!(at("title"), @"study.yaml:35:20 `'title'`: `title` is said of the whole file, not of a point");
    assert_snapshot!(at("figures.one.title"), @"study.yaml:35:20 `'figures.one.title'`: `figures` is said of the whole file, not of a point");
}

#[test]
fn axes_that_make_no_points_are_refused() {
    assert_snapshot!(refused_axis("{path: seed}"), @"study.yaml:35:10 `a`: `values` are missing, or `from` and `to`: which values does the axis have?");
    assert_snapshot!(refused_axis("{path: seed, values: []}"), @"study.yaml:35:26 `values`: an axis has at least one value");
    assert_snapshot!(refused_axis("{path: [], values: [1]}"), @"study.yaml:35:10 `a`: an axis changes at least one setting");
    assert_snapshot!(refused_axis("{path: seed, from: 1, count: 2}"), @"study.yaml:35:10 `a`: `to` is missing: which values does the axis have?");
    assert_snapshot!(refused_axis("{path: seed, to: 1, count: 2}"), @"study.yaml:35:10 `a`: `from` is missing: which values does the axis have?");
    assert_snapshot!(refused_axis("{path: seed, from: 1, to: 2}"), @"study.yaml:35:10 `a`: `count` is missing: how many values does the range have?");
    assert_snapshot!(refused_axis("{path: seed, from: 1, to: 2, count: 1}"), @"study.yaml:35:49 `1`: a range has at least two values; help: write one as `values: [1]`");
    assert_snapshot!(refused_axis("{path: seed, from: 2, to: 2, count: 2}"), @"study.yaml:35:49 `2`: a range has at least two values; help: write one as `values: [2]`");
    assert_snapshot!(refused_axis("{path: seed, from: 1, to: 2, count: 3}"), @"study.yaml:35:49 `3`: `count` is too large: two values are 2 when rounded");
    assert_snapshot!(refused_axis("{path: seed, from: first, to: 2, count: 3}"), @"study.yaml:35:32 `first`: `first` is no number with a unit; help: write words, addresses and ranges as `values`");
    assert_snapshot!(refused_axis("{path: duration, from: 1 s, to: 2000 ms, count: 3}"), @"study.yaml:35:45 `2000 ms`: `from` is in `s`, and `to` in `ms`; help: give both one unit");
    assert_snapshot!(refused_axis("{path: duration, from: 0 s, to: 2 s, count: 3, spacing: logarithmic}"), @"study.yaml:35:36 `0 s`: logarithmic spacing takes numbers above 0");
    assert_snapshot!(refused_axis("{path: seed, values: [1], count: 3}"), @"study.yaml:35:46 `3`: an axis has `values` or a range, and `count` is of a range");
    assert_snapshot!(refused_axis("{path: duration, values: [1 s, 2 s, 1.0 s]}"), @"study.yaml:35:49 `1.0 s`: `1 s` is a value of the axis already");
    assert_snapshot!(refused("  axes: {}\n"), @"study.yaml:34:1 `sweep`: a sweep has at least one axis; help: name one, for example `axes: {load: {path: sources.bulk.rate, values: [50 %, 100 %]}}`");
    assert_snapshot!(refused("  axes: {case: {path: seed, values: [1]}, a/b: {path: duration, values: [1 s]}}\n"), @"
    study.yaml:35:10 `case`: `case` is an axis of every figure: give this one another name
    study.yaml:35:43 `a/b`: the name `a/b` has an invalid character: letters, digits, `.`, `_` and `-` are allowed
    ");
    assert_snapshot!(refused("  axes: {a: {path: 'policies.weighted.classes[0].weight', values: [1]}, b: {path: 'policies.weighted.classes[gold].weight', values: [1]}}\n"), @"study.yaml:35:83 `'policies.weighted.classes[gold].weight'`: `policies.weighted.classes[gold].weight` gets values from `policies.weighted.classes[0].weight` already");
}

#[test]
fn a_grid_too_large_is_refused_before_anything_is_built() {
    assert_snapshot!(refused_axis("{path: seed, from: 1, to: 2000000000000, count: 1000000000000}"), @"study.yaml:34:1 `sweep`: the grid has 1000000000000 points, and a sweep at most 2000; help: leave values out, or draw some of its points at random: `sample: {points: 200}`");
    let axes = (0..20).map(|axis| {
        format!(
            "a{axis}: {{path: assumptions.a{axis}, from: 1, to: 100, count: 18446744073709551615}}"
        )
    });
    let axes = axes.collect::<Vec<_>>().join(", ");
    let text = STUDY.replace("repetitions: 2", "assumptions: {a: b}\nrepetitions: 2");
    let text = format!("{text}sweep:\n  axes: {{{axes}}}\n");
    assert_snapshot!(read(&text).unwrap_err(), @"study.yaml:35:1 `sweep`: the grid has 340282366920938463463374607431768211455 points, and a sweep at most 2000; help: leave values out, or draw some of its points at random: `sample: {points: 200}`");
    assert_snapshot!(refused("  axes: {a: {path: seed, from: 1, to: 5000, count: 10}}\n  sample: {points: 2001}\n"), @"study.yaml:36:20 `2001`: a sweep has from 1 to 2000 points, and not 2001");
    assert_snapshot!(refused("  axes: {a: {path: seed, from: 1, to: 5, count: 5}}\n  sample: {points: 6}\n"), @"study.yaml:36:20 `6`: the axes have no 6 different points: 5 were found; help: lower `points`, or leave out `sample` to run all");
    let reasons: String = (0..6_000)
        .map(|number| format!("  a{number}: a reason\n"))
        .collect();
    let text = format!(
        "{STUDY}assumptions:\n{reasons}sweep: {{axes: {{a: {{path: seed, from: 1, to: 1000, count: 1000}}}}}}\n"
    );
    assert_snapshot!(read(&text).unwrap_err(), @"study.yaml:6035:1 `sweep`: 1000 points of a file with 12121 values are more than 10000000 values to check; help: leave points out");
    assert_snapshot!(refused("  axes: {a: {path: seed, from: 1, to: 200, count: 200}, b: {path: repetitions, values: [10000]}}\n"), @"study.yaml:34:1 `sweep`: the points have 12000000 runs together, more than 1000000; help: lower `repetitions`, or leave points out");
}

#[test]
fn a_file_has_either_cases_or_a_sweep() {
    assert_snapshot!(refused("  axes: {a: {path: seed, values: [1]}}\ncases: {one: {}}\n"), @"study.yaml:34:1 `sweep`: a file has either `cases` or a `sweep`; help: move the sweep to a file of its own that extends this one `without: [cases]`");
    let text = format!("{STUDY}cases: {{one: {{sweep: {{}}}}}}\n");
    assert_snapshot!(read(&text).unwrap_err(), @"study.yaml:34:15 `sweep`: `sweep` is said of the whole file, not of a case");
    let text = format!("{STUDY}sweep:\n{TWO_AXES}");
    let one = Study::parse(&text, "study.yaml", &files());
    assert_snapshot!(told(&one.unwrap_err()), @"study.yaml:34:1 `sweep`: this file holds a sweep, each point of which is a study: this command takes one study; help: choose a case (`--case NAME`), where the command has that option");
}

#[test]
fn a_resolution_is_a_number_in_the_unit_of_the_first_axis() {
    let refined = |axis: &str, rest: &str| {
        with(&format!(
            "  axes: {{a: {{path: sources.steady.rate, {axis}}}}}\n  {rest}\n"
        ))
    };
    let values = "values: [10 %, 50 %]";
    let resolution = refined(values, "refine: 2.5 %").unwrap().refine.unwrap();
    assert_eq!((resolution.step, resolution.decimals), (2.5, 1));
    assert_eq!(with(TWO_AXES).unwrap().refine, None);
    // Percent of another unit are relative.
    let (_, buffer) = TWO_AXES.split_once("    buffer:").unwrap();
    let resolution = with(&format!("  axes:\n    buffer:{buffer}  refine: 10 %\n"))
        .unwrap()
        .refine
        .unwrap();
    assert!(resolution.is_relative);
    assert_eq!((resolution.step, resolution.decimals), (0.1, 0));
    assert_eq!(resolution.unit, "packets");
    let range = "from: 10 %, to: 50 %, count: 3";
    let messages = [
        refined(values, "refine: 0 %"),
        refined(values, "refine: fine"),
        refined(values, "refine: 5 Mbit/s"),
        refined(values, "refine: 0.00001 %"),
        refined(range, "refine: 5 %\n  sample: {points: 2}"),
    ];
    let messages: Vec<String> = messages.into_iter().map(Result::unwrap_err).collect();
    assert_snapshot!(messages.join("\n"), @r"
    study.yaml:36:11 `0 %`: `0 %` is no number above 0; help: write the unit of `a`, too
    study.yaml:36:11 `fine`: `fine` is no number above 0; help: write the unit of `a`, too
    study.yaml:36:11 `5 Mbit/s`: `5 Mbit/s` is not in `%`, as `10 %` of `a` is; help: write the distance in `%`, or in percent of the smaller value
    study.yaml:36:11 `0.00001 %`: `0.00001 %` has more than 3 digits after the point, and values between others have no more
    study.yaml:36:11 `5 %`: `refine` adds points to a grid, and these are drawn at random
    ");
}

#[test]
fn a_value_that_all_points_take_from_the_end_of_a_range_is_refused_once() {
    let axis =
        "{path: 'policies.weighted.classes[rest].queue_limit', from: 0.1 BDP, to: 6 BDP, count: 7}";
    assert_snapshot!(refused_axis(axis), @"study.yaml:35:73 `0.1 BDP`: `0.1 BDP` is not a queue limit: write for example `64 packets`, `100 kB` or `10 ms` (in point `a-0.1BDP` and 6 others)");
}

/// Horizontal axis of a figure, its title, and each group with the places of its cases.
type Figure = (PlotX, String, Vec<(String, Vec<String>)>);

/// A figure as all points know it together.
fn figure(series: &Series, name: &str) -> Figure {
    let plots = series.cases.iter().flat_map(|study| &study.plots);
    let mut parts = plots.filter(|plot| plot.name == name).peekable();
    let PlotDescription { x, title, .. } = (*parts.peek().unwrap()).clone();
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for part in parts {
        let [group] = &part.groups[..] else {
            panic!("a point knows of itself alone: {part:?}");
        };
        let place = group.cases[0].x.clone();
        match groups.iter_mut().find(|(name, _)| *name == group.name) {
            Some((_, places)) => places.push(place),
            None => groups.push((group.name.clone(), vec![place])),
        }
    }
    (x, title, groups)
}

/// The same of a figure that is declared with these settings.
fn declared(settings: &str) -> Result<Figure, String> {
    let y = "y: {metric: delay_mean, slice: gold}";
    let series = with(&format!("{TWO_AXES}figures:\n  one: {{{settings}, {y}}}\n"))?;
    Ok(figure(&series, "one"))
}

#[test]
fn points_of_a_figure_stand_at_the_numbers_of_an_axis_and_the_others_make_lines() {
    let (x, title, groups) = declared("x: buffer").unwrap();
    assert_eq!(
        (x, title.as_str()),
        (PlotX::CaseNumber, "Mean delay of gold over buffer")
    );
    let places = ["16", "64", "256", "1024"].map(|number| format!("{number} buffer (packets)"));
    let lines = ["load = 10 %", "load = 55.5 %"].map(|name| (name.to_owned(), places.to_vec()));
    assert_eq!(groups, lines);
    // Lines that are written stay, and so does a title.
    let cases = "title: a title, cases: {low: [load-10pct_buffer-16packets, load-55.5pct_buffer-16packets]}";
    let (_, title, groups) = declared(&format!("x: load, {cases}")).unwrap();
    let places = ["10 load (%)", "55.5 load (%)"].map(str::to_owned);
    assert_eq!(
        (title.as_str(), groups),
        ("a title", vec![("low".to_owned(), places.to_vec())])
    );
    let (x, _, groups) = declared("x: scenario").unwrap();
    assert_eq!(
        (x, groups.len(), groups[0].1.len()),
        (PlotX::Scenario, 1, 8)
    );
}

#[test]
fn words_along_an_axis_are_rows_and_a_number_has_no_unit_where_it_is_none() {
    let axes = "  axes: {of: {path: policies.weighted.title, values: [one, other]}, seed: {path: seed, values: [1, 2]}}\n";
    let over = |axis: &str| {
        let figure_of =
            format!("figures: {{one: {{x: {axis}, y: {{metric: delay_mean, slice: gold}}}}}}\n");
        figure(&with(&format!("{axes}{figure_of}")).unwrap(), "one")
    };
    let (x, _, groups) = over("of");
    assert_eq!(
        (x, &groups[0]),
        (
            PlotX::Case,
            &(
                "seed = 1".to_owned(),
                vec!["of one".to_owned(), "of other".to_owned()]
            )
        )
    );
    let (x, _, groups) = over("seed");
    assert_eq!(
        (x, &groups[1]),
        (
            PlotX::CaseNumber,
            &(
                "of = other".to_owned(),
                vec!["1 seed".to_owned(), "2 seed".to_owned()]
            )
        )
    );
}

#[test]
fn an_axis_that_the_sweep_does_not_have_is_refused() {
    assert_snapshot!(declared("x: bufer").unwrap_err(), @"study.yaml:44:12 `bufer`: `bufer` is no axis of the sweep or of figures; help: did you mean `buffer`?");
    assert_snapshot!(declared("x: time").unwrap_err(), @"study.yaml:44:12 `time`: `time` is no axis of the sweep or of figures; help: known are `load`, `buffer`, `policy`, `case`, `case_number`, `scenario`, `scenario_number`");
    assert_snapshot!(declared("x: case_number").unwrap_err(), @"study.yaml:44:12 `case_number`: points of a sweep state no `x`; help: write the name of an axis of the sweep, for example `load`");
    assert_snapshot!(declared("x: case, fit: linear").unwrap_err(), @"study.yaml:44:23 `linear`: a fit needs numbers along the horizontal axis; help: write `x: case_number`, `x: scenario_number`, an axis of a sweep that has numbers, or a quantity");
}

#[test]
fn a_sweep_without_figures_has_curves_over_its_first_axis_with_enough_numbers() {
    let series = with(TWO_AXES).unwrap();
    let names = |series: &Series| {
        let plots = series.cases[0].plots.iter();
        plots.map(|plot| plot.name.clone()).collect::<Vec<_>>()
    };
    let of_gold = [
        "throughput-gold-storm",
        "loss_ratio-gold-storm",
        "delay_p99-gold-storm",
    ];
    assert_eq!(
        (names(&series).len(), &names(&series)[..3]),
        (6, &of_gold.map(str::to_owned)[..])
    );
    let (x, title, groups) = figure(&series, "loss_ratio-rest-storm");
    assert_eq!(
        (x, title.as_str()),
        (PlotX::CaseNumber, "Loss ratio of rest in storm over buffer")
    );
    assert_eq!(groups.len(), 2);
    // Two numbers are no curve, and words are none.
    let few = "  axes: {a: {path: policies.weighted.title, values: [one, other, third]}, b: {path: seed, values: [1, 2]}}\n";
    assert!(names(&with(few).unwrap()).is_empty());
    // Points that are drawn from ranges have hardly a value in common.
    let sampled = with(&format!("{TWO_AXES}  sample: {{points: 20}}\n")).unwrap();
    let (_, _, groups) = figure(&sampled, "throughput-gold-storm");
    assert_eq!(groups.len(), 2);
    let three = TWO_AXES.replace("[10 %,", "[1 %, 10 %,");
    let sampled = with(&format!("{three}  sample: {{points: 20}}\n")).unwrap();
    let (_, title, groups) = figure(&sampled, "throughput-gold-storm");
    assert_eq!(
        (title.as_str(), groups.len()),
        ("Throughput of gold in storm over load", 1)
    );
}
