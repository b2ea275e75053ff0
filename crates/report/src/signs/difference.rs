//! How far apart two colours are, to whom.

use std::f64::consts::TAU;

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// Whose sight.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight {
    Normal,
    /// G. M. Machado, M. M. Oliveira, L. A. F. Fernandes: A Physiologically-based Model for Simulation of Color
    /// Vision Deficiency. IEEE TVCG 15(6), 2009, severity 1.0; on linear sRGB.
    ProtanopiaMachado,
    DeuteranopiaMachado,
    TritanopiaMachado,
    /// F. Viénot, H. Brettel, J. D. Mollon: Digital video colourmaps for checking the legibility of displays by
    /// dichromats. Color Research & Application 24(4), 1999; on linear sRGB.
    ProtanopiaVienot,
    DeuteranopiaVienot,
}

impl Sight {
    const fn matrix(self) -> Matrix {
        match self {
            Self::Normal => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Self::ProtanopiaMachado => [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
            Self::DeuteranopiaMachado => [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ],
            Self::TritanopiaMachado => [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ],
            Self::ProtanopiaVienot => [
                [0.11238, 0.88762, 0.0],
                [0.11238, 0.88762, 0.0],
                [0.00401, -0.00401, 1.0],
            ],
            Self::DeuteranopiaVienot => [
                [0.29275, 0.70725, 0.0],
                [0.29275, 0.70725, 0.0],
                [-0.02234, 0.02234, 1.0],
            ],
        }
    }
}

fn linear((red, green, blue): (u8, u8, u8)) -> Vector {
    [red, green, blue].map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    })
}

fn times(matrix: Matrix, vector: Vector) -> Vector {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

/// CIE L*a*b* (D65) of a colour as `sight` has it.
pub(super) fn seen(colour: (u8, u8, u8), sight: Sight) -> Vector {
    let rgb = times(sight.matrix(), linear(colour)).map(|part| part.clamp(0.0, 1.0));
    let xyz = times(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ],
        rgb,
    );
    let f = |part: f64| {
        if part > 216.0 / 24389.0 {
            part.cbrt()
        } else {
            (24389.0 / 27.0 * part + 16.0) / 116.0
        }
    };
    let [x, y, z] = [f(xyz[0] / 0.95047), f(xyz[1]), f(xyz[2] / 1.08883)];
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

pub(super) fn chroma(colour: (u8, u8, u8)) -> f64 {
    let [_, a, b] = seen(colour, Sight::Normal);
    a.hypot(b)
}

/// Contrast ratio by WCAG 2.2.
pub(super) fn contrast(one: (u8, u8, u8), other: (u8, u8, u8)) -> f64 {
    let luminance = |colour| {
        let [red, green, blue] = linear(colour);
        0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
    };
    let (one, other) = (luminance(one), luminance(other));
    one.max(other) / one.min(other)
}

/// CIEDE2000 of two L*a*b* colours: G. Sharma, W. Wu, E. N. Dalal, Color Research & Application 30(1), 2005.
pub(super) fn difference(one: Vector, other: Vector) -> f64 {
    let saturation = |c: f64| (c.powi(7) / (c.powi(7) + 25f64.powi(7))).sqrt();
    let mean_chroma = (one[1].hypot(one[2]) + other[1].hypot(other[2])) / 2.0;
    let stretch = 1.0 + 0.5 * (1.0 - saturation(mean_chroma));
    let polar = |lab: Vector| {
        let a = lab[1] * stretch;
        (a.hypot(lab[2]), lab[2].atan2(a).rem_euclid(TAU))
    };
    let ((c1, h1), (c2, h2)) = (polar(one), polar(other));
    let turn = if c1 * c2 == 0.0 {
        0.0
    } else {
        (h2 - h1 + TAU / 2.0).rem_euclid(TAU) - TAU / 2.0
    };
    let hue = if c1 * c2 == 0.0 {
        h1 + h2
    } else {
        h1 + turn / 2.0
    };
    let (lightness, chroma) = ((one[0] + other[0]) / 2.0, (c1 + c2) / 2.0);
    let degrees = hue.to_degrees().rem_euclid(360.0);
    let cos = |degrees: f64| degrees.to_radians().cos();
    let t = 1.0 - 0.17 * cos(degrees - 30.0)
        + 0.24 * cos(2.0 * degrees)
        + 0.32 * cos(3.0 * degrees + 6.0)
        - 0.2 * cos(4.0 * degrees - 63.0);
    let offset = (lightness - 50.0).powi(2);
    let l = (other[0] - one[0]) / (1.0 + 0.015 * offset / (20.0 + offset).sqrt());
    let c = (c2 - c1) / (1.0 + 0.045 * chroma);
    let h = 2.0 * (c1 * c2).sqrt() * (turn / 2.0).sin() / (1.0 + 0.015 * chroma * t);
    let blue = 60.0 * (-((degrees - 275.0) / 25.0).powi(2)).exp();
    let rotation = -2.0 * saturation(chroma) * blue.to_radians().sin();
    (l * l + c * c + h * h + rotation * c * h).sqrt()
}

#[test]
fn differences_are_those_of_the_published_examples() {
    let published = [
        ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
        ([50.0, -1.3802, -84.2814], [50.0, 0.0, -82.7485], 1.0000),
        ([50.0, 2.49, -0.001], [50.0, -2.49, 0.0009], 7.1792),
        ([50.0, 2.5, 0.0], [73.0, 25.0, -18.0], 27.1492),
        (
            [60.2574, -34.0099, 36.2677],
            [60.4626, -34.1751, 39.4387],
            1.2644,
        ),
        (
            [22.7233, 20.0904, -46.6940],
            [23.0331, 14.9730, -42.5619],
            2.0373,
        ),
    ];
    for (one, other, expected) in published {
        let found = difference(one, other);
        assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
    }
}
