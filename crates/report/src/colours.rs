//! One palette for the page and the figures.
//!
//! Chosen by search: under normal vision and simulated protanopia, deuteranopia and tritanopia
//! (Machado et al. 2009) no two of the first seven are closer than 20 in CIE L\*a\*b\*, and each
//! stands out from its background by 3 : 1 at least (WCAG 2.2, 1.4.11).

/// On paper and light screens.
pub(crate) const LIGHT: &[&str] = &[
    "#5B8FF9", "#C77F00", "#117733", "#A0409A", "#332288", "#EE6677", "#882255", "#777777",
];

/// On dark screens.
pub(crate) const DARK: &[&str] = &[
    "#56B4E9", "#F0E442", "#8DD17E", "#B5728F", "#8C7BFF", "#D55E00", "#DDDDDD", "#888888",
];

/// Slices, where they are told apart and policies are not: P. Tol's high-contrast scheme.
pub(crate) const SLICES_LIGHT: &[&str] = &["#004488", "#BB5566", "#997700"];

/// The same on dark screens.
pub(crate) const SLICES_DARK: &[&str] = &["#6699CC", "#EE99AA", "#EECC66"];

/// The colour of the `index`th policy on paper.
pub(crate) fn on_paper(index: usize) -> (u8, u8, u8) {
    parts(LIGHT[index % LIGHT.len()])
}

/// The colour of the `index`th slice on paper, where policies are not told apart.
pub(crate) fn slice_on_paper(index: usize) -> (u8, u8, u8) {
    parts(SLICES_LIGHT[index % SLICES_LIGHT.len()])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_own_colours() {
        assert_eq!(on_paper(0), (0x5B, 0x8F, 0xF9));
        assert_eq!(on_paper(LIGHT.len() + 1), (0xC7, 0x7F, 0x00));
        assert_eq!(slice_on_paper(0), (0x00, 0x44, 0x88));
        assert_eq!(
            (LIGHT.len(), SLICES_LIGHT.len()),
            (DARK.len(), SLICES_DARK.len())
        );
    }
}
