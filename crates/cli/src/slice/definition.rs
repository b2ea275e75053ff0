//! A slice as the options and a file define it.

use super::arguments::{DefinitionOptions, DirectionName, OrNone, TermOptions, TermsOptions};
use crate::Failure;
use slicewise_api::{Guarantee, LinkRecord, Match, Maximum, Slice, SliceRecord, Terms};
use slicewise_study::code_point;
use std::io::Read as _;
use std::path::Path;

/// The largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The slice that `options` ask for, beginning with `known` if it exists.
pub fn define(
    options: &DefinitionOptions,
    known: Option<&SliceRecord>,
    links: &[LinkRecord],
) -> Result<Slice, Failure> {
    let mut slice = match (&options.file, known) {
        (Some(file), _) => Slice {
            name: options.name.clone(),
            ..read(file)?
        },
        (None, Some(record)) => record.slice.clone(),
        (None, None) => Slice {
            name: options.name.clone(),
            tenant: String::new(),
            path: Vec::new(),
            matches: Vec::new(),
            forward: None,
            backward: None,
        },
    };
    if let Some(tenant) = &options.tenant {
        slice.tenant.clone_from(tenant);
    }
    if let Some(path) = &options.path {
        slice.path.clone_from(path);
    }
    if !options.matches.is_empty() {
        let matches = options.matches.iter().map(|text| parse_match(text));
        slice.matches = matches.collect::<Result<_, _>>()?;
    }
    define_terms(&mut slice, options, links)?;
    if slice.matches.is_empty() {
        return Err(Failure::mistake(
            "say which packets belong to the slice: for example `--match protocol=udp,destination_port=5201`",
        ));
    }
    if slice.forward.is_none() && slice.backward.is_none() {
        return Err(Failure::mistake(
            "say what the slice is promised: for example `--rate \"10 Mbit/s\"`, or `--weight 1` for a part of the excess",
        ));
    }
    slice
        .check()
        .map_err(|invalid| Failure::mistake(format!("{invalid}")))?;
    Ok(slice)
}

fn define_terms(
    slice: &mut Slice,
    options: &DefinitionOptions,
    links: &[LinkRecord],
) -> Result<(), Failure> {
    let on_path = |link: &&LinkRecord| slice.path.is_empty() || slice.path.contains(&link.name);
    let frame = |direction: fn(&LinkRecord) -> u64| {
        let largest = links.iter().filter(on_path).map(direction).max();
        2 * largest.unwrap_or(USUAL_FRAME_BYTES)
    };
    let usual = [
        frame(|link| link.forward.largest_frame_bytes),
        frame(|link| link.backward.largest_frame_bytes),
    ];
    let TermsOptions {
        forward,
        both,
        backward,
    } = &options.terms;
    let backward = if *both {
        backward.or(*forward)
    } else {
        *backward
    };
    forward.apply(&mut slice.forward, usual[0], "--")?;
    backward.apply(&mut slice.backward, usual[1], "--backward-")?;
    match options.without {
        Some(DirectionName::Forward) => slice.forward = None,
        Some(DirectionName::Backward) => slice.backward = None,
        None => {}
    }
    Ok(())
}

/// The largest frame where no link says one: of Ethernet, without FCS.
const USUAL_FRAME_BYTES: u64 = 1514;

impl TermOptions {
    /// Put these into `terms`. `usual` is the burst where none is given; `prefix` that of the options.
    fn apply(&self, terms: &mut Option<Terms>, usual: u64, prefix: &str) -> Result<(), Failure> {
        if self.says_nothing() {
            return Ok(());
        }
        let terms = terms.get_or_insert_with(Terms::default);
        if let Some(weight) = self.weight {
            terms.weight = weight;
        }
        match self.rate {
            Some(OrNone::None) => terms.guarantee = None,
            Some(OrNone::Some(rate)) => {
                let guarantee = terms.guarantee.get_or_insert(Guarantee {
                    rate_bps: 0,
                    burst_bytes: usual,
                    delay_ns: None,
                    smallest_frame_bytes: None,
                });
                guarantee.rate_bps = rate.bits_per_second();
            }
            None => {}
        }
        let needs = |option: &str, other: &str| {
            Failure::mistake(format!(
                "`{prefix}{option}` needs a rate: add `{prefix}{other} RATE`"
            ))
        };
        if let Some(burst) = self.burst {
            let guarantee = terms.guarantee.as_mut();
            guarantee.ok_or_else(|| needs("burst", "rate"))?.burst_bytes = burst.bytes();
        }
        if let Some(delay) = self.delay {
            let guarantee = terms.guarantee.as_mut();
            guarantee.ok_or_else(|| needs("delay", "rate"))?.delay_ns = match delay {
                OrNone::Some(delay) => Some(delay.nanos()),
                OrNone::None => None,
            };
        }
        if let Some(frame) = self.smallest_frame {
            let guarantee = terms.guarantee.as_mut();
            let guarantee = guarantee.ok_or_else(|| needs("smallest-frame", "rate"))?;
            guarantee.smallest_frame_bytes = Some(frame.bytes());
        }
        let burst = terms.guarantee.map_or(usual, |one| one.burst_bytes);
        match self.maximum {
            Some(OrNone::None) => terms.maximum = None,
            Some(OrNone::Some(rate)) => {
                let maximum = terms.maximum.get_or_insert(Maximum {
                    rate_bps: 0,
                    burst_bytes: burst,
                });
                maximum.rate_bps = rate.bits_per_second();
            }
            None => {}
        }
        if let Some(burst) = self.maximum_burst {
            let maximum = terms.maximum.as_mut();
            maximum
                .ok_or_else(|| needs("maximum-burst", "maximum"))?
                .burst_bytes = burst.bytes();
        }
        Ok(())
    }
}

/// `protocol=udp,destination_port=5201` as a match: the fields are those of the API.
fn parse_match(text: &str) -> Result<Match, Failure> {
    let wrong = |why: &str| {
        Failure::mistake(format!(
            "`--match {text}`: {why}; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`"
        ))
    };
    let mut fields = serde_json::Map::new();
    for part in text.split(',') {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| wrong(&format!("`{part}` is not FIELD=VALUE")))?;
        let (key, value) = (key.trim(), value.trim());
        let is_number = matches!(key, "protocol" | "vlan" | "inner_vlan" | "teid");
        let json = match value.parse::<u64>() {
            _ if key == "dscp" => code_point(value).map_err(|why| wrong(&why))?.into(),
            Ok(number) if is_number => number.into(),
            _ => value.into(),
        };
        if fields.insert(key.to_owned(), json).is_some() {
            return Err(wrong(&format!("`{key}` is there twice")));
        }
    }
    serde_json::from_value(fields.into()).map_err(|error| wrong(&error.to_string()))
}

/// A slice from a file, also as the controller prints it: what only the controller decides is left out.
fn read(file: &Path) -> Result<Slice, Failure> {
    let (name, text) = if file == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin()
            .take(FILE_BYTES_MAX)
            .read_to_string(&mut text);
        ("standard input".to_owned(), read.map(|_| text))
    } else {
        let mut text = String::new();
        let read = std::fs::File::open(file)
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
        (file.display().to_string(), read.map(|_| text))
    };
    let text = text.map_err(|error| Failure::mistake(format!("cannot read {name}: {error}")))?;
    let wrong = |error: serde_json::Error| {
        Failure::mistake(format!("{name}: {error}: expected a slice as JSON"))
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(wrong)?;
    if value.get("state").is_some() {
        let record: SliceRecord = serde_json::from_value(value).map_err(wrong)?;
        return Ok(record.slice);
    }
    serde_json::from_value(value).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slicewise_units::{BitRate, ByteCount};

    #[test]
    fn a_match_says_what_is_wrong_with_it() {
        let found = parse_match("protocol=udp,destination_port=5201,vlan=7").unwrap();
        assert_eq!(
            serde_json::to_value(found).unwrap(),
            serde_json::json!({"protocol": "udp", "destination_port": "5201", "vlan": 7})
        );
        let wrong = ["udp", "protocol=udp,protocol=tcp", "port=80", "vlan=x"];
        let texts = wrong.map(|text| parse_match(text).unwrap_err().to_string());
        insta::assert_snapshot!(texts.join("\n"), @r#"
        `--match udp`: `udp` is not FIELD=VALUE; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`
        `--match protocol=udp,protocol=tcp`: `protocol` is there twice; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`
        `--match port=80`: unknown field `port`, expected one of `source`, `destination`, `protocol`, `source_port`, `destination_port`, `dscp`, `vlan`, `inner_vlan`, `teid`; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`
        `--match vlan=x`: invalid type: string "x", expected u16; write for example `protocol=udp,destination=192.0.2.0/24,destination_port=5201`
        "#);
    }

    #[test]
    fn a_burst_without_a_rate_is_refused_and_the_default_is_two_frames() {
        let burst = TermOptions {
            burst: Some(ByteCount::new(1)),
            ..TermOptions::default()
        };
        let error = burst.apply(&mut None, 3028, "--backward-").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`--backward-burst` needs a rate: add `--backward-rate RATE`"
        );
        let rate = TermOptions {
            rate: Some(OrNone::Some(BitRate::new(9))),
            ..TermOptions::default()
        };
        let mut terms = None;
        rate.apply(&mut terms, 3028, "--").unwrap();
        assert_eq!(terms.unwrap().guarantee.unwrap().burst_bytes, 3028);
    }
}
