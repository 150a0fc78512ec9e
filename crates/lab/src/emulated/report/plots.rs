//! Draws a plot as SVG text. Heading and legend stand around it, in real text.

use std::error::Error;
use std::io;

use plotters::chart::ChartBuilder;
use plotters::prelude::*;

use super::super::findings::{Mark, Plot};

/// Colours of series, in their order; limits are grey.
const COLOURS: [RGBColor; 8] = [
    RGBColor(58, 110, 190),
    RGBColor(24, 128, 86),
    RGBColor(226, 130, 34),
    RGBColor(126, 87, 166),
    RGBColor(196, 62, 48),
    RGBColor(64, 160, 190),
    RGBColor(196, 100, 130),
    RGBColor(120, 130, 40),
];
/// Points of a line are marked where there are no more than these: else they hide it.
const MARKED_MAX: usize = 60;
const SIZE: (u32, u32) = (980, 340);
const INK: RGBColor = RGBColor(70, 78, 90);
const GRID: RGBColor = RGBColor(232, 235, 239);
const LIMIT: RGBColor = RGBColor(120, 128, 140);

/// The colour of each series, for the legend.
pub fn colours(plot: &Plot) -> Vec<RGBColor> {
    let mut next = COLOURS.iter().cycle();
    let colour = |mark: Mark| match mark {
        Mark::Limit => LIMIT,
        Mark::Line | Mark::Dots => *next.next().unwrap_or(&INK),
    };
    plot.series
        .iter()
        .map(|series| series.mark)
        .map(colour)
        .collect()
}

/// The plot as an `<svg>` element.
pub fn svg(plot: &Plot) -> io::Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&area, plot).map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, plot: &Plot) -> Result<(), Box<dyn Error>> {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let right = points().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
    let top = points().map(|point| point.1).fold(0.0, f64::max).max(1e-9);
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..right * 1.02, 0.0..top * 1.08)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 13).into_font().color(&INK))
        .x_desc(&plot.across)
        .y_desc(&plot.up)
        .x_labels(12)
        .y_labels(6)
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .draw()?;
    for (series, colour) in plot.series.iter().zip(colours(plot)) {
        let points = series.points.iter().copied();
        match series.mark {
            Mark::Limit => {
                let style = colour.stroke_width(2);
                chart.draw_series(DashedLineSeries::new(points, 7, 5, style))?;
            }
            Mark::Line => {
                let style = colour.stroke_width(2);
                chart.draw_series(LineSeries::new(points.clone(), style))?;
                if series.points.len() <= MARKED_MAX {
                    let mark = |point| Circle::new(point, 3, colour.filled());
                    chart.draw_series(points.map(mark))?;
                }
            }
            Mark::Dots => {
                let style = colour.mix(0.5).filled();
                chart.draw_series(points.map(|point| Circle::new(point, 2, style)))?;
            }
        }
    }
    area.present()?;
    Ok(())
}

/// `40`, `0.01`: no more digits than the value has.
fn short(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}
