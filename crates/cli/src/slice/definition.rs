//! A slice as the options and a file define it.

use super::arguments::{DefinitionOptions, DirectionName};
use super::terms::TermsOptions;
use crate::Failure;
use slicewise_api::{LinkRecord, Match, Slice, SliceRecord};
use slicewise_study::code_point;
use slicewise_units::BothWays;
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
            ..Slice::default()
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
    let usual = BothWays::from_fn(|way| {
        let links = links.iter().filter(on_path);
        let largest = links.map(|link| link.ways()[way].largest_frame_bytes).max();
        2 * largest.unwrap_or(USUAL_FRAME_BYTES)
    });
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
    forward.apply(&mut slice.forward, usual.forward, "--")?;
    backward.apply(&mut slice.backward, usual.backward, "--backward-")?;
    match options.without {
        Some(DirectionName::Forward) => slice.forward = None,
        Some(DirectionName::Backward) => slice.backward = None,
        None => {}
    }
    Ok(())
}

/// The largest frame where no link says one: of Ethernet, without FCS.
const USUAL_FRAME_BYTES: u64 = 1514;

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
}
