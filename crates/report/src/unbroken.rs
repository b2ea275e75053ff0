//! Numbers that stay on one line with their units.

/// `text` with a space that does not break between each number and its unit, and behind each "±".
pub(crate) fn unbroken(text: &str) -> String {
    let mut words = text.split(' ');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |line, word| {
        let is_number = line.ends_with(|c: char| c.is_ascii_digit());
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ')', '.', ':']));
        let stays = (is_number && is_unit) || line.ends_with('±');
        line + if stays { "\u{a0}" } else { " " } + word
    })
}

const UNITS: [&str; 13] = [
    "%", "points", "s", "ms", "µs", "ns", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "B", "kB", "MB",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(unbroken("at 5 ms, 3 slices"), "at 5\u{a0}ms, 3 slices");
        assert_eq!(unbroken("1 ± 2 %)"), "1 ±\u{a0}2\u{a0}%)");
    }
}
