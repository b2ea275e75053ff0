//! Units as others write them, and which of ours was probably meant.

/// The unit of a rate: `Mbps`, `Mbit`, `mbit/s`, `Mb/s`, `M` are `Mbit/s`; `MBps` and `MByte/s` are `MB/s`.
pub(crate) fn rate(unit: &str) -> Option<&'static str> {
    let unit: String = unit.chars().filter(|c| !c.is_whitespace()).collect();
    let lower = unit.to_ascii_lowercase();
    let per_second = ["/second", "/sec", "p/s", "/s", "ps"];
    let amount = per_second.iter().find_map(|end| lower.strip_suffix(end));
    let amount = amount.unwrap_or(&lower);
    let written = unit.get(..amount.len())?;
    // In `MBPS` all is in capitals: that of `B` says nothing.
    let says_bytes = written.ends_with('B') && !unit.ends_with("PS");
    let (prefix, is_bytes) = split(amount, &["bits", "bit"], false)
        .or_else(|| split(amount, &["bytes", "byte", "octets", "octet"], true))
        .or_else(|| split(amount, &["b", ""], says_bytes))?;
    let bits = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let bytes = ["B/s", "kB/s", "MB/s", "GB/s"];
    let units = if is_bytes { &bytes[..] } else { &bits[..] };
    units.get(power(prefix)?).copied()
}

/// The unit of a size: `KB`, `kb`, `kbyte`, `K` are `kB`; `kib` and `KIB` are `KiB`.
pub(crate) fn size(unit: &str) -> Option<&'static str> {
    let lower = unit.to_ascii_lowercase();
    let (prefix, _) = split(&lower, &["bytes", "byte", "octets", "octet", "b", ""], true)?;
    let binary = ["KiB", "MiB", "GiB"];
    match prefix.strip_suffix('i') {
        Some(prefix) => binary.get(power(prefix)?.checked_sub(1)?).copied(),
        None => ["B", "kB", "MB", "GB"].get(power(prefix)?).copied(),
    }
}

/// The unit of a duration: `sec`, `msec`, `usec`, `mins`, `hours`.
pub(crate) fn duration(unit: &str) -> Option<&'static str> {
    Some(match unit.to_lowercase().trim_end_matches('.') {
        "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" | "ns" => "ns",
        "usec" | "usecs" | "µsec" | "μsec" | "micros" | "microsecond" | "microseconds" | "us"
        | "µs" | "μs" => "µs",
        "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" | "ms" => "ms",
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "m" | "mins" | "minute" | "minutes" | "min" => "min",
        "hr" | "hrs" | "hour" | "hours" | "h" => "h",
        _ => return None,
    })
}

/// Returns the text before the first of `ends` that it has.
fn split<'a>(text: &'a str, ends: &[&str], is_bytes: bool) -> Option<(&'a str, bool)> {
    let prefix = ends.iter().find_map(|end| text.strip_suffix(end))?;
    Some((prefix, is_bytes))
}

/// The power of 1000 of a prefix in small letters.
fn power(prefix: &str) -> Option<usize> {
    let prefixes = [
        &["", ""],
        &["k", "kilo"],
        &["m", "mega"],
        &["g", "giga"],
        &["t", "tera"],
    ];
    prefixes.iter().position(|names| names.contains(&prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_how_others_write_units_of_a_rate() {
        for (unit, written) in [
            ("bit/s", "bps b/s bit bits Bit/s BIT/S"),
            ("kbit/s", "Kbps kbps kb/s Kbit kbits/s K"),
            (
                "Mbit/s",
                "Mbps MBPS mbps Mbit Mbits mbit/s Mb/s Mb M MBit/s megabit/s Mbit/sec Mbitps",
            ),
            ("Gbit/s", "Gbps gbit GBIT/S gigabits/second"),
            ("Tbit/s", "Tbps tbit/s"),
            ("B/s", "Bps B byte/s"),
            ("MB/s", "MBps MB MByte/s mbytes/s"),
        ] {
            for other in written.split(' ') {
                assert_eq!(rate(other), Some(unit), "{other}");
            }
        }
        assert_eq!(rate("Mbit per second"), None);
        assert_eq!(rate("TBps"), None);
    }

    #[test]
    fn knows_how_others_write_units_of_a_size_and_a_duration() {
        for (unit, written) in [
            ("B", "b Bytes BYTE octets"),
            ("kB", "KB kb Kb K k kbyte kilobytes"),
            ("MB", "mb Mb M mbytes megabyte"),
            ("GB", "gb G"),
            ("KiB", "kib KIB Ki kiB"),
            ("GiB", "gib Gi"),
        ] {
            for other in written.split(' ') {
                assert_eq!(size(other), Some(unit), "{other}");
            }
        }
        for (unit, written) in [
            ("ns", "nsec nanoseconds NS"),
            ("µs", "usec uS μsec microseconds"),
            ("ms", "msec mS MS milliseconds"),
            ("s", "sec S seconds secs."),
            ("min", "m mins Minutes"),
            ("h", "hr hours H"),
        ] {
            for other in written.split(' ') {
                assert_eq!(duration(other), Some(unit), "{other}");
            }
        }
        assert_eq!((size("kbit"), size("ms"), size("i")), (None, None, None));
        assert_eq!((duration("d"), duration("kB")), (None, None));
    }
}
