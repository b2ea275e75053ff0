//! Tables of figures from results.
//!
//! ```text
//! <!-- figures: slicewise run studies/upgrade.yaml
//! each slice=video span=steady scenario=overload quantity=loss_ratio as=%
//! rows policy=fifo | policy=minimum | -
//! columns - | phase=before | phase=upgraded
//! -->
//! ```
//!
//! Each row and column of the table has keys, `*` for none, or `-` where it is written by hand. Together with those of
//! `each` they select a row of `data/FILE.csv` (`file`, by default `cells`) of the study, or of one of its cases
//! (`case`), by values of columns, with `~` for a space; a key without value selects nothing. `value` names the column
//! with the figure (`mean`), and `as` its unit and number of significant digits (`ms:3`); `±` behind that adds half of
//! the 95 % interval. `take` is `sum`, `mean`, `least` or `most` of several rows, and `per` a column whose `take` it is
//! divided by.
//!
//! Without `columns` the bold text of a row is its figures, in order, and everything else is written by hand:
//!
//! ```text
//! <!-- figures: slicewise run studies/dpdk-hqos.yaml
//! run slicewise run studies/dpdk-hqos-variations.yaml
//! each file=application_cells source=web quantity=request_latency_mean_ns as=ms policy=q64-b64
//! rows case=e3 scenario=alone + scenario=cross + outcome=request_latency_mean relative_to_scenario=alone
//! rows study=dpdk-hqos-variations case=transfers scenario=t2 | -
//! -->
//! ```
//!
//! Behind `+` a figure has the keys of the one before it, unless it states its own. `run` names further commands, and
//! `study` whose results a figure is from (by default those of the first command). `outcome=METRIC` is the outcome of the
//! comparison with a published figure of this metric; it takes over `study` and `case` alone.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

type Keys = BTreeMap<String, String>;

/// Cells of a table.
pub struct Spec {
    /// Commands that make the results.
    pub commands: Vec<String>,
    /// Figures of each row, none of one by hand.
    rows: Vec<Vec<Keys>>,
    /// Empty where figures stand in bold.
    columns: Vec<Option<Keys>>,
    /// Hash of the figures, of a table by hand.
    pub seal: String,
}

fn keys(text: &str) -> Result<Keys, String> {
    let words = text.split_whitespace();
    let pair = |word: &str| {
        let pair = word
            .split_once('=')
            .map(|(key, value)| (key.to_owned(), value.replace('~', " ")));
        pair.ok_or_else(|| format!("`{word}` is not KEY=VALUE"))
    };
    words.map(pair).collect()
}

fn column(text: &str) -> Result<Option<Keys>, String> {
    match text.trim() {
        "-" => Ok(None),
        "*" => Ok(Some(Keys::new())),
        text => keys(text).map(Some),
    }
}

/// Figures of a row, each with its own keys and, where it states none, those of the one before it.
fn row(text: &str, each: &Keys) -> Result<Vec<Keys>, String> {
    let mut before = each.clone();
    let figure = |mut own: Keys| {
        let mut figure = before.clone();
        if let Some(metric) = own.remove("outcome") {
            figure.retain(|key, _| key == "study" || key == "case");
            figure.extend(keys("file=published value=outcome").expect("these are pairs"));
            figure.insert("metric".to_owned(), metric);
            figure.extend(own);
        } else {
            figure.extend(own);
            before.clone_from(&figure);
        }
        figure
    };
    match text.trim() {
        "-" => Ok(Vec::new()),
        "*" => Ok(vec![each.clone()]),
        text => {
            let own: Result<Vec<Keys>, String> = text.split(" + ").map(keys).collect();
            Ok(own?.into_iter().map(figure).collect())
        }
    }
}

impl Spec {
    /// Reads the comment above a table: what stands behind `figures` in its first line, and its other lines.
    pub fn read(first: &str, rest: &[&str]) -> Result<Self, String> {
        let (_, command) = first.split_once(": ").ok_or("the command is missing")?;
        let mut each = Keys::new();
        let mut spec = Self {
            commands: vec![command.to_owned()],
            rows: Vec::new(),
            columns: Vec::new(),
            seal: String::new(),
        };
        for line in rest {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("run", text) => spec.commands.push(text.to_owned()),
                ("each", text) => each.extend(keys(text)?),
                ("rows", text) => {
                    for part in text.split('|') {
                        spec.rows.push(row(part, &each)?);
                    }
                }
                ("columns", text) => {
                    for part in text.split('|') {
                        spec.columns.push(column(part)?);
                    }
                }
                ("seal", text) => spec.seal = text.to_owned(),
                (other, _) => {
                    return Err(format!("`{other}` is not run, each, rows, columns or seal"));
                }
            }
        }
        Ok(spec)
    }

    /// Fills the cells of a table from results.
    pub fn filled(&self, table: &[&str], results: &Path) -> Result<Vec<String>, String> {
        let study = self.commands[0]
            .split_whitespace()
            .find(|word| word.ends_with(".yaml"));
        let study = study
            .and_then(|path| Path::new(path).file_stem())
            .ok_or("the command names no study")?;
        let study = study.to_str().unwrap();
        self.cells(table, |keys, _| {
            let named = format!("{keys:?}");
            figure(keys, study, results).map_err(|what| format!("{named}: {what}"))
        })
    }

    /// Returns a hash of the figures of a table.
    pub fn sealed_with(&self, table: &[&str]) -> Result<String, String> {
        let mut hash = Sha256::new();
        self.cells(table, |_, shown| {
            hash.update(shown);
            hash.update("|");
            Ok(shown.to_owned())
        })?;
        let hash = hash.finalize();
        Ok(hash[..4].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Replaces each cell that is a figure, by its keys and its text.
    fn cells(
        &self,
        table: &[&str],
        mut replace: impl FnMut(Keys, &str) -> Result<String, String>,
    ) -> Result<Vec<String>, String> {
        if table.len() != self.rows.len() + 2 {
            let there = table.len().saturating_sub(2);
            return Err(format!(
                "{} rows are described, {there} are there",
                self.rows.len()
            ));
        }
        let (head, body) = table.split_at(2);
        let mut filled: Vec<String> = head.iter().map(|line| (*line).to_owned()).collect();
        for (line, row) in body.iter().zip(&self.rows) {
            filled.push(if self.columns.is_empty() {
                in_bold(line, row, &mut replace)?
            } else {
                self.in_columns(line, row, &mut replace)?
            });
        }
        Ok(filled)
    }

    fn in_columns(
        &self,
        line: &str,
        row: &[Keys],
        replace: &mut impl FnMut(Keys, &str) -> Result<String, String>,
    ) -> Result<String, String> {
        let cells = line.trim_matches('|').split('|');
        let mut cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
        if cells.len() != self.columns.len() {
            let described = self.columns.len();
            return Err(format!(
                "{described} columns are described, {} are there: {line}",
                cells.len()
            ));
        }
        for (cell, column) in cells.iter_mut().zip(&self.columns) {
            if let ([row], Some(column)) = (row, column) {
                let mut keys = row.clone();
                keys.extend(column.clone());
                *cell = replace(keys, cell)?;
            }
        }
        Ok(format!("| {} |", cells.join(" | ")))
    }
}

fn in_bold(
    line: &str,
    row: &[Keys],
    replace: &mut impl FnMut(Keys, &str) -> Result<String, String>,
) -> Result<String, String> {
    let mut parts: Vec<String> = line.split("**").map(str::to_owned).collect();
    if parts.len() != 2 * row.len() + 1 {
        return Err(format!(
            "{} figures are described, {} are in bold: {line}",
            row.len(),
            parts.len() / 2
        ));
    }
    for (part, keys) in parts.iter_mut().skip(1).step_by(2).zip(row) {
        *part = replace(keys.clone(), part)?;
    }
    Ok(parts.join("**"))
}

/// Text of a cell.
fn figure(mut keys: Keys, study: &str, results: &Path) -> Result<String, String> {
    let mut option =
        |name: &str, otherwise: &str| keys.remove(name).unwrap_or_else(|| otherwise.to_owned());
    let (study, file, value, format, take) = (
        option("study", study),
        option("file", "cells"),
        option("value", "mean"),
        option("as", ""),
        option("take", "only"),
    );
    keys.retain(|_, value| !value.is_empty());
    let per = keys.remove("per");
    let mut folder = results.join(&study);
    if let Some(case) = keys.remove("case") {
        folder.push(format!("{study}-{case}"));
    }
    if let Some(phase) = keys.remove("phase") {
        let policy = keys.get_mut("policy").ok_or("`phase` without `policy`")?;
        *policy += &format!("/{phase}");
    }
    let path = folder.join("data").join(file + ".csv");
    let mut reader =
        csv::Reader::from_path(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows: Vec<Keys> = reader
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let rows: Vec<Keys> = rows
        .into_iter()
        .filter(|row| keys.iter().all(|(key, value)| row.get(key) == Some(value)))
        .collect();
    let column = |name: &str| -> Result<Vec<String>, String> {
        let values = rows.iter().map(|row| row.get(name).cloned());
        values
            .collect::<Option<_>>()
            .ok_or_else(|| format!("there is no column `{name}`"))
    };
    let values = column(&value)?;
    let combined = match (&*take, &*values) {
        (_, []) => return Err("no row has these values".into()),
        ("only", [value]) if format.is_empty() => return Ok(value.clone()),
        ("only", [value]) => number(value)?,
        ("only", more) => return Err(format!("{} rows have these values", more.len())),
        (how, values) => combined(how, values)?,
    };
    let combined = match per {
        Some(per) => combined / self::combined(&take, &column(&per)?)?,
        None => combined,
    };
    let half = if format.ends_with('±') {
        Some((number(&column("interval_high")?[0])? - number(&column("interval_low")?[0])?) / 2.0)
    } else {
        None
    };
    written(combined, half, format.trim_end_matches('±'))
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn combined(how: &str, values: &[String]) -> Result<f64, String> {
    let values: Vec<f64> = values
        .iter()
        .map(|value| number(value))
        .collect::<Result<_, _>>()?;
    let sum: f64 = values.iter().sum();
    match how {
        "sum" => Ok(sum),
        "mean" => Ok(sum / values.len() as f64),
        "least" => Ok(values.into_iter().fold(f64::INFINITY, f64::min)),
        "most" => Ok(values.into_iter().fold(f64::NEG_INFINITY, f64::max)),
        other => Err(format!("`{other}` is not sum, mean, least or most")),
    }
}

/// A value in a unit, with significant digits.
fn written(value: f64, half: Option<f64>, format: &str) -> Result<String, String> {
    let (unit, digits) = format.split_once(':').unwrap_or((format, "3"));
    let digits: i32 = digits
        .parse()
        .map_err(|_| format!("`{format}` is not UNIT:DIGITS"))?;
    let (scale, behind) = match unit {
        "n" => (1.0, ""),
        "us" => (1e3, ""),
        "ms" => (1e6, ""),
        "ms2" => (1e12, ""),
        "s" => (1e9, ""),
        "Mbit/s" => (1e6, ""),
        "Gbit/s" => (1e9, ""),
        "kB" => (1e3, ""),
        "%" => (1e-2, " %"),
        other => return Err(format!("`{other}` is no unit")),
    };
    let value = value / scale;
    let decimals = match format!("{value:e}")
        .split_once('e')
        .and_then(|(_, magnitude)| magnitude.parse::<i32>().ok())
    {
        Some(magnitude) if value != 0.0 => usize::try_from(digits - 1 - magnitude).unwrap_or(0),
        _ => 0,
    };
    let half = half.map_or(String::new(), |half| {
        format!(" ± {}", with_commas(half / scale, decimals))
    });
    Ok(with_commas(value, decimals) + &half + behind)
}

/// A number with these decimals, and commas from 10,000 on.
fn with_commas(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if value.abs() < 9_999.5 {
        return text;
    }
    let end = text.find('.').unwrap_or(text.len());
    let mut grouped = text[end..].to_owned();
    for (index, digit) in text[..end].chars().rev().enumerate() {
        if index > 0 && index % 3 == 0 && digit.is_ascii_digit() {
            grouped.insert(0, ',');
        }
        grouped.insert(0, digit);
    }
    grouped
}
