//! The drawing of one panel: frame, axes, marks, legend. Only this file knows the library.

use super::axis::Axis;
use crate::signs::Sign;
use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{DashedPathElement, EmptyElement, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::Cartesian2d;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle, WHITE};
use std::ops::Range;

/// Why a figure was not drawn, in the library's words.
pub(crate) type DrawError = String;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A red, green and blue part.
pub(crate) type Rgb = (u8, u8, u8);

/// A panel that is drawn on.
pub(crate) struct Panel<'a, 'axes> {
    chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<Scale, Scale>>,
    x: &'axes Axis,
    y: &'axes Axis,
}

/// Draw a figure of `height` into a text: `panels` gets the area below title and legend.
pub(crate) fn figure(
    title: &str,
    legend: &[(String, Sign)],
    height: u32,
    panels: impl FnOnce(&Area<'_>) -> Result<(), DrawError>,
) -> Result<String, DrawError> {
    let places = legend_places(legend);
    let lines = places.last().map_or(1, |(_, line)| line + 1);
    let below_title = u32::try_from(lines).unwrap_or(1) * LEGEND_LINE;
    let mut svg = String::new();
    {
        let size = (WIDTH, height + below_title - LEGEND_LINE);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(text)?;
        let (head, body) = root.split_vertically(TITLE_HEIGHT + below_title);
        head.draw(&Text::new(
            title,
            (MARGIN, 16),
            text_style(TITLE_SIZE, HPos::Left),
        ))
        .map_err(text)?;
        for ((name, sign), (x, line)) in legend.iter().zip(places) {
            let y = i32::try_from(TITLE_HEIGHT + u32::try_from(line).unwrap_or(0) * LEGEND_LINE);
            draw_entry(&head, name, *sign, (x, y.unwrap_or(0) + 2)).map_err(text)?;
        }
        panels(&body)?;
        root.present().map_err(text)?;
    }
    Ok(svg)
}

/// Where each entry of a legend begins, and on which line: as many lines as it takes.
fn legend_places(legend: &[(String, Sign)]) -> Vec<(i32, usize)> {
    let (mut x, mut line) = (MARGIN, 0);
    let mut places = Vec::with_capacity(legend.len());
    for (name, _) in legend {
        // The reader's font is unknown: room for a wide one.
        let letters = i32::try_from(name.chars().count()).unwrap_or(40).min(40);
        let width = ENTRY_TEXT + letters * 17 + 30;
        if x > MARGIN && x + width > WIDTH.cast_signed() {
            (x, line) = (MARGIN, line + 1);
        }
        places.push((x, line));
        x += width;
    }
    places
}

/// A piece of line with a marker on it, and the name.
fn draw_entry(
    head: &Area<'_>,
    name: &str,
    sign: Sign,
    (x, y): (i32, i32),
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let middle = y + 16;
    let ends = [(x, middle), (x + ENTRY_TEXT - 12, middle)];
    let style = rgb(sign.colour).stroke_width(4);
    match sign.dash {
        None => head.draw(&PathElement::new(ends, style))?,
        Some((on, off)) => head.draw(&DashedPathElement::new(ends, on * 2, off * 2, style))?,
    }
    let centre = EmptyElement::at(((ends[0].0 + ends[1].0) / 2, middle));
    head.draw(&(centre + marker(sign, MARKER_RADIUS, 0.0)))?;
    let style = text_style(LABEL_SIZE, HPos::Left);
    head.draw(&Text::new(name.to_owned(), (x + ENTRY_TEXT, y), style))
}

/// Where a marker is, of the place it marks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Around,
    Above,
}

/// A marker `down` pixels below a place.
fn marker(sign: Sign, radius: f64, down: f64) -> Polygon<(i32, i32)> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast saturates, and markers are small"
    )]
    let pixel = |offset: f64| offset.round() as i32;
    let corner = |(x, y): &(f64, f64)| (pixel(x * radius), pixel(y * radius + down));
    let corners = sign.marker.iter().map(corner);
    Polygon::new(corners.collect::<Vec<_>>(), rgb(sign.colour))
}

/// An axis as the library wants it.
struct Scale {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Scale {
    fn of(axis: &Axis) -> Self {
        Self {
            range: axis.range(),
            ticks: axis.tick_places(),
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        let pixel = f64::from(first) + part * f64::from(last - first);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast saturates, and pixels are few"
        )]
        let pixel = pixel.round() as i32;
        pixel
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl<'a, 'axes> Panel<'a, 'axes> {
    /// Draw frame, grid and labels of a panel into `area`.
    pub(crate) fn new(area: &Area<'a>, x: &'axes Axis, y: &'axes Axis) -> Result<Self, DrawError> {
        let mut chart = ChartBuilder::on(area)
            .margin_right(56)
            .margin_bottom(if x.name.is_empty() { 0 } else { 12 })
            .margin_top(14)
            .margin_left(10)
            .x_label_area_size(if x.name.is_empty() { 40 } else { 92 })
            .y_label_area_size(150)
            .build_cartesian_2d(Scale::of(x), Scale::of(y))
            .map_err(text)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(RGBColor(0xDD, 0xDD, 0xDD).stroke_width(2))
            .light_line_style(WHITE.mix(0.0))
            .axis_style(RGBColor(0x55, 0x55, 0x55).stroke_width(2))
            .label_style(text_style(LABEL_SIZE, HPos::Left))
            .axis_desc_style(text_style(LABEL_SIZE, HPos::Center))
            .x_label_formatter(&|place| x.label_at(*place))
            .y_label_formatter(&|place| y.label_at(*place))
            .x_desc(x.name.clone())
            .y_desc(y.name.clone())
            .draw()
            .map_err(text)?;
        Ok(Self { chart, x, y })
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }

    /// A line through `points`; gaps where there is no value.
    pub(crate) fn line(
        &mut self,
        points: impl Iterator<Item = (f64, Option<f64>)>,
        colour: Rgb,
        width: u32,
        opacity: f64,
    ) -> Result<(), DrawError> {
        let style = rgb(colour).mix(opacity).stroke_width(width);
        let runs = self.runs(points).into_iter();
        self.chart
            .draw_series(runs.map(|run| PathElement::new(run, style)))
            .map_err(text)?;
        Ok(())
    }

    /// The same, dashed as `sign` is.
    pub(crate) fn signed_line(
        &mut self,
        points: impl Iterator<Item = (f64, Option<f64>)>,
        sign: Sign,
        width: u32,
    ) -> Result<(), DrawError> {
        let Some((on, off)) = sign.dash else {
            return self.line(points, sign.colour, width, 1.0);
        };
        let style = rgb(sign.colour).stroke_width(width);
        let runs = self.runs(points).into_iter();
        self.chart
            .draw_series(runs.map(|run| DashedPathElement::new(run, on * 2, off * 2, style)))
            .map_err(text)?;
        Ok(())
    }

    /// Stretches of points that have values.
    fn runs(&self, points: impl Iterator<Item = (f64, Option<f64>)>) -> Vec<Vec<(f64, f64)>> {
        let mut run: Vec<(f64, f64)> = Vec::new();
        let mut runs = Vec::new();
        for (x, y) in points {
            match y {
                Some(y) => run.push(self.at((x, y))),
                None => runs.push(std::mem::take(&mut run)),
            }
        }
        runs.push(run);
        runs.retain(|run| run.len() > 1);
        runs
    }

    /// A filled rectangle between two corners.
    pub(crate) fn rectangle(
        &mut self,
        corner: (f64, f64),
        opposite: (f64, f64),
        colour: Rgb,
        opacity: f64,
    ) -> Result<(), DrawError> {
        let shape = [self.at(corner), self.at(opposite)];
        let style = rgb(colour).mix(opacity).filled();
        self.chart
            .draw_series([Rectangle::new(shape, style)])
            .map_err(text)?;
        Ok(())
    }

    /// A marker, at most `width` wide on the x axis; around the place or above it.
    pub(crate) fn point(
        &mut self,
        at: (f64, f64),
        sign: Sign,
        (width, place): (f64, Place),
    ) -> Result<(), DrawError> {
        let Range { start, end } = self.x.range();
        let pixels = f64::from(PLOT_WIDTH) * width / (end - start);
        let radius = (pixels / 2.0).clamp(4.0, MARKER_RADIUS);
        let down = match place {
            Place::Around => 0.0,
            Place::Above => -radius - 3.0,
        };
        let marker = EmptyElement::at(self.at(at)) + marker(sign, radius, down);
        self.chart.draw_series([marker]).map_err(text)?;
        Ok(())
    }

    /// A whisker at `x` from `low` to `high`, with caps `width` wide.
    pub(crate) fn whisker(
        &mut self,
        x: f64,
        (low, high): (f64, f64),
        width: f64,
        style: (Rgb, u32),
    ) -> Result<(), DrawError> {
        let (left, right) = (x - width / 2.0, x + width / 2.0);
        for ends in [
            [(x, low), (x, high)],
            [(left, low), (right, low)],
            [(left, high), (right, high)],
        ] {
            self.line(
                ends.into_iter().map(|(x, y)| (x, Some(y))),
                style.0,
                style.1,
                1.0,
            )?;
        }
        Ok(())
    }

    /// A dashed horizontal line over the whole panel.
    pub(crate) fn level(&mut self, y: f64, colour: Rgb) -> Result<(), DrawError> {
        let Range { start, end } = self.x.range();
        let dash = (end - start) / 120.0;
        let dashes = (0..60u32).map(|i| start + f64::from(i) * 2.0 * dash);
        let y = self.y.place(y);
        let style: ShapeStyle = rgb(colour).stroke_width(2);
        let paths = dashes.map(|x| PathElement::new(vec![(x, y), (x + dash, y)], style));
        self.chart.draw_series(paths).map_err(text)?;
        Ok(())
    }
}

fn rgb((red, green, blue): Rgb) -> RGBColor {
    RGBColor(red, green, blue)
}

fn text_style(size: u32, horizontal: HPos) -> TextStyle<'static> {
    let colour = RGBColor(0x22, 0x22, 0x22);
    ("sans-serif", size)
        .into_font()
        .color(&colour)
        .pos(Pos::new(horizontal, VPos::Top))
}

fn text<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> DrawError {
    error.to_string()
}

/// Twice the size in which a figure is meant to be seen: the library draws in whole pixels.
const WIDTH: u32 = 1440;
const TITLE_HEIGHT: u32 = 64;
const LEGEND_LINE: u32 = 46;
/// From the begin of a legend's entry to its text.
const ENTRY_TEXT: i32 = 76;
const MARGIN: i32 = 24;
const TITLE_SIZE: u32 = 40;
const LABEL_SIZE: u32 = 32;
const MARKER_RADIUS: f64 = 11.0;
/// About what is left for values between labels and margin.
const PLOT_WIDTH: u32 = 1200;
