//! Signs of a policy, slice or back end: a colour, a marker and a dash, on the page and in figures.
//!
//! A colour is the same on light and dark backgrounds. The palettes were found by search; the tests below state how
//! far apart their colours are, also under simulated colour blindness.

/// How one of several is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sign {
    /// Red, green and blue.
    pub(crate) colour: (u8, u8, u8),
    /// Corners of the marker, in a square from −1 to 1 with y downwards.
    pub(crate) marker: &'static [(f64, f64)],
    /// Pixels on and off; `None` is solid.
    pub(crate) dash: Option<(u32, u32)>,
}

/// Policies.
pub(crate) const POLICIES: [&str; 8] = [
    "#5A3FFC", "#AB9048", "#09A299", "#C61B00", "#9987D8", "#3F7548", "#FC5190", "#994887",
];

/// Slices and back ends, where policies do not have colours.
pub(crate) const SLICES: [&str; 3] = ["#9000FC", "#2DA290", "#F30000"];

/// Markers, in the order in which they are given out.
pub(crate) const MARKERS: [&[(f64, f64)]; 8] = [
    CIRCLE,
    SQUARE,
    TRIANGLE,
    DIAMOND,
    CROSS,
    TRIANGLE_DOWN,
    STAR,
    PLUS,
];

/// Dashes of lines.
pub(crate) const DASHES: [Option<(u32, u32)>; 4] =
    [None, Some((9, 4)), Some((3, 3)), Some((16, 4))];

/// The sign of the `index`th policy. Colours repeat after eight; no two of the first 64 policies have both
/// colour and marker in common.
pub(crate) fn policy(index: usize) -> Sign {
    sign(&POLICIES, index)
}

/// The sign of the `index`th slice or back end.
pub(crate) fn slice(index: usize) -> Sign {
    sign(&SLICES, index)
}

fn sign(palette: &[&str], index: usize) -> Sign {
    Sign {
        colour: parts(palette[index % palette.len()]),
        marker: MARKERS[marker_index(palette.len(), index)],
        dash: DASHES[index % DASHES.len()],
    }
}

/// The page's script repeats this formula.
fn marker_index(colours: usize, index: usize) -> usize {
    let turns = match MARKERS.len() % colours {
        0 => index / colours,
        _ => 0,
    };
    (index + turns) % MARKERS.len()
}

/// The outline of a marker as an SVG path.
pub(crate) fn path(marker: &[(f64, f64)]) -> String {
    let corners: Vec<String> = marker.iter().map(|(x, y)| format!("{x} {y}")).collect();
    format!("M{}Z", corners.join("L"))
}

/// Red, green and blue of "#RRGGBB".
fn parts(code: &str) -> (u8, u8, u8) {
    let part = |at: usize| {
        code.get(at..at + 2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .unwrap_or_default()
    };
    (part(1), part(3), part(5))
}

/// Marker of verdicts that are undecided.
pub(crate) const CIRCLE: &[(f64, f64)] = &[
    (0.9, 0.0),
    (0.83, 0.34),
    (0.64, 0.64),
    (0.34, 0.83),
    (0.0, 0.9),
    (-0.34, 0.83),
    (-0.64, 0.64),
    (-0.83, 0.34),
    (-0.9, 0.0),
    (-0.83, -0.34),
    (-0.64, -0.64),
    (-0.34, -0.83),
    (0.0, -0.9),
    (0.34, -0.83),
    (0.64, -0.64),
    (0.83, -0.34),
];
const SQUARE: &[(f64, f64)] = &[(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)];
const TRIANGLE: &[(f64, f64)] = &[(0.0, -1.0), (1.0, 0.8), (-1.0, 0.8)];
const TRIANGLE_DOWN: &[(f64, f64)] = &[(0.0, 1.0), (-1.0, -0.8), (1.0, -0.8)];
const DIAMOND: &[(f64, f64)] = &[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)];
const PLUS: &[(f64, f64)] = &[
    (-0.35, -1.0),
    (0.35, -1.0),
    (0.35, -0.35),
    (1.0, -0.35),
    (1.0, 0.35),
    (0.35, 0.35),
    (0.35, 1.0),
    (-0.35, 1.0),
    (-0.35, 0.35),
    (-1.0, 0.35),
    (-1.0, -0.35),
    (-0.35, -0.35),
];
/// Marker of what is broken.
pub(crate) const CROSS: &[(f64, f64)] = &[
    (-1.0, -0.55),
    (-0.55, -1.0),
    (0.0, -0.45),
    (0.55, -1.0),
    (1.0, -0.55),
    (0.45, 0.0),
    (1.0, 0.55),
    (0.55, 1.0),
    (0.0, 0.45),
    (-0.55, 1.0),
    (-1.0, 0.55),
    (-0.45, 0.0),
];
const STAR: &[(f64, f64)] = &[
    (0.0, -1.0),
    (0.26, -0.36),
    (0.95, -0.31),
    (0.43, 0.14),
    (0.59, 0.81),
    (0.0, 0.45),
    (-0.59, 0.81),
    (-0.43, 0.14),
    (-0.95, -0.31),
    (-0.26, -0.36),
];

#[cfg(test)]
mod difference;

#[cfg(test)]
mod tests {
    use super::difference::{Sight, chroma, contrast, difference, seen};
    use super::*;
    use proptest::prelude::*;

    /// Backgrounds of the page, light and dark, as `report.css` has them, and of figures.
    const BACKGROUNDS: [&str; 5] = ["#fdfdfb", "#ffffff", "#14171c", "#FFFFFF", "#fdfdfb"];

    /// CIEDE2000: smallest difference of any two colours under full protanopia and deuteranopia, and
    /// under normal sight and tritanopia. 2.3 is just noticeable.
    const APART: [(Sight, f64); 6] = [
        (Sight::Normal, 20.0),
        (Sight::ProtanopiaMachado, 13.0),
        (Sight::DeuteranopiaMachado, 13.0),
        (Sight::ProtanopiaVienot, 13.0),
        (Sight::DeuteranopiaVienot, 13.0),
        (Sight::TritanopiaMachado, 13.0),
    ];

    #[test]
    fn no_two_colours_look_alike_to_the_colour_blind() {
        for palette in [&POLICIES[..], &SLICES[..]] {
            for (sight, least) in APART {
                for (index, one) in palette.iter().enumerate() {
                    for other in &palette[..index] {
                        let apart = difference(seen(parts(one), sight), seen(parts(other), sight));
                        assert!(apart >= least, "{one} and {other}: {apart:.1} by {sight:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_slice_has_the_colour_of_a_policy() {
        assert!(SLICES.iter().all(|colour| !POLICIES.contains(colour)));
    }

    #[test]
    fn every_colour_stands_out_from_both_backgrounds_and_none_is_grey() {
        let css = include_str!("../assets/page/report.css");
        for colour in POLICIES.iter().chain(&SLICES) {
            for background in BACKGROUNDS {
                let contrast = contrast(parts(colour), parts(background));
                assert!(contrast >= 3.0, "{colour} on {background}: {contrast:.2}");
            }
            assert!(chroma(parts(colour)) >= 30.0, "{colour} is grey");
        }
        for paper in ["--paper: #fdfdfb", "--paper: #14171c", "--raised: #ffffff"] {
            assert!(css.contains(paper), "the page's background is not {paper}");
        }
    }

    proptest! {
        #[test]
        fn sixty_four_policies_differ_in_colour_or_marker(one in 0usize..64, other in 0usize..64) {
            let (a, b) = (policy(one), policy(other));
            prop_assert_eq!(one == other, (a.colour, a.marker) == (b.colour, b.marker));
        }

        #[test]
        fn twenty_four_slices_differ_in_colour_or_marker(one in 0usize..24, other in 0usize..24) {
            let (a, b) = (slice(one), slice(other));
            prop_assert_eq!(one == other, (a.colour, a.marker) == (b.colour, b.marker));
        }
    }
}
