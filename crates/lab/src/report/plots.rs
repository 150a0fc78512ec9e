//! The four plots of the report, as SVG text.
//!
//! They have no title and no legend of their own: the page around them has, in real text.

use std::error::Error;
use std::ops::Range;

use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::crowd::tally::Second;
use crate::demo::figures::Series;
use crate::demo::neighbourhood::LINK;

/// The plots, each an `<svg>` element.
#[derive(Clone, Debug)]
pub struct Plots {
    /// Offered and answered requests a second of both runs.
    pub requests: String,
    /// What left the origin server against its limit.
    pub link: String,
    /// What visitors received, from whom.
    pub delivered: String,
    /// Latency of both runs.
    pub latency: String,
}

/// Colours of lines and areas, by meaning; the page uses them in its legends.
pub const WITH: RGBColor = RGBColor(24, 128, 86);
/// The site alone.
pub const ALONE: RGBColor = RGBColor(196, 62, 48);
/// What was offered, or allowed.
pub const OFFERED: RGBColor = RGBColor(150, 158, 170);
/// Redirects by the origin server.
pub const REDIRECTS: RGBColor = RGBColor(58, 110, 190);
/// Servers, the origin first.
pub const SERVERS: [RGBColor; 6] = [
    RGBColor(38, 70, 120),
    RGBColor(24, 128, 86),
    RGBColor(226, 160, 44),
    RGBColor(126, 87, 166),
    RGBColor(64, 160, 190),
    RGBColor(196, 100, 130),
];

const SIZE: (u32, u32) = (980, 300);
const INK: RGBColor = RGBColor(70, 78, 90);
const GRID: RGBColor = RGBColor(232, 235, 239);
const CROWD: RGBColor = RGBColor(253, 240, 226);
const BOUND: RGBColor = RGBColor(232, 240, 252);

type Failed = Box<dyn Error + Send + Sync>;

/// Draws all plots.
pub fn all(series: &Series) -> Result<Plots, Failed> {
    Ok(Plots {
        requests: svg(|area| requests(area, series))?,
        link: svg(|area| link(area, series))?,
        delivered: svg(|area| delivered(area, series))?,
        latency: svg(|area| latency(area, series))?,
    })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn svg(draw: impl FnOnce(&Area) -> Result<(), Failed>) -> Result<String, Failed> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    Ok(text)
}

fn requests(area: &Area, series: &Series) -> Result<(), Failed> {
    let requests = |second: &Second| second.offered.max(second.answered) as f64;
    let offered = series.with.iter().map(requests);
    let redirects = series.redirects.iter().map(|&count| count as f64);
    let top = highest(offered.chain(redirects)).max(10.0);
    let mut chart = frame(area, series, 0.0..top * 1.15, "requests/s")?;
    let points = |seconds: &[Second], value: fn(&Second) -> u64| {
        numbered(seconds.iter().map(|second| value(second) as f64).collect())
    };
    let offered = points(&series.with, |second| second.offered);
    let area_style = OFFERED.mix(0.30).filled();
    chart
        .draw_series(AreaSeries::new(offered, 0.0, area_style))
        .map_err(failed)?;
    for (seconds, colour) in [(&series.without, ALONE), (&series.with, WITH)] {
        let answered = points(seconds, |second| second.answered);
        chart
            .draw_series(LineSeries::new(answered, colour.stroke_width(2)))
            .map_err(failed)?;
    }
    let redirects = numbered(series.redirects.iter().map(|&count| count as f64).collect());
    chart
        .draw_series(LineSeries::new(redirects, REDIRECTS.stroke_width(2)))
        .map_err(failed)?;
    Ok(())
}

fn link(area: &Area, series: &Series) -> Result<(), Failed> {
    let limit = LINK as f64 / 1000.0;
    let kilobytes =
        |carried: &[f64]| numbered(carried.iter().map(|bytes| bytes / 1000.0).collect());
    let mut chart = frame(area, series, 0.0..limit * 1.2, "kB/s")?;
    for (carried, colour) in [
        (&series.alone_carried, ALONE),
        (&series.origin_carried, WITH),
    ] {
        chart
            .draw_series(LineSeries::new(kilobytes(carried), colour.stroke_width(2)))
            .map_err(failed)?;
    }
    let line = [(0.0, limit), (end(series), limit)];
    chart
        .draw_series(DashedLineSeries::new(line, 7, 5, INK.stroke_width(2)))
        .map_err(failed)?;
    Ok(())
}

fn delivered(area: &Area, series: &Series) -> Result<(), Failed> {
    let names = servers(series);
    let length = series.delivered.values().map(Vec::len).max().unwrap_or(0);
    let mut tops = vec![vec![0.0; length]];
    for name in &names {
        let mut top = tops.last().cloned().unwrap_or_default();
        for (sum, bytes) in top.iter_mut().zip(&series.delivered[*name]) {
            *sum += *bytes as f64 / 1000.0;
        }
        tops.push(top);
    }
    let highest = highest(tops.last().into_iter().flatten().copied()).max(10.0);
    let mut chart = frame(area, series, 0.0..highest * 1.1, "kB/s")?;
    // The highest sum first: each lower one then covers what is not its own.
    for (rank, top) in tops.into_iter().skip(1).enumerate().rev() {
        let colour = SERVERS[rank % SERVERS.len()];
        chart
            .draw_series(AreaSeries::new(numbered(top), 0.0, colour.filled()))
            .map_err(failed)?;
    }
    Ok(())
}

/// Names of the servers that delivered something: the origin, then by what they delivered.
pub fn servers(series: &Series) -> Vec<&str> {
    let mut names: Vec<&String> = series.delivered.keys().collect();
    names.sort_by_key(|name| {
        let bytes: u64 = series.delivered[*name].iter().sum();
        (name.as_str() != "news", u64::MAX - bytes)
    });
    names.into_iter().map(String::as_str).collect()
}

fn latency(area: &Area, series: &Series) -> Result<(), Failed> {
    const FASTEST: f64 = 0.0005;
    let range = (FASTEST..30.0).log_scale();
    let mut chart = frame(area, series, range, "seconds")?;
    let points = |seconds: &[Second], value: fn(&Second) -> f64| -> Vec<(f64, f64)> {
        let at = |(second, figures): (usize, &Second)| {
            (second as f64 + 0.5, value(figures).max(FASTEST))
        };
        let offered = seconds
            .iter()
            .enumerate()
            .filter(|(_, second)| second.offered > 0);
        offered.map(at).collect()
    };
    for (seconds, colour) in [(&series.without, ALONE), (&series.with, WITH)] {
        let median = points(seconds, |second| second.p50);
        let slow = points(seconds, |second| second.p99);
        chart
            .draw_series(LineSeries::new(slow, colour.mix(0.45).stroke_width(2)))
            .map_err(failed)?;
        chart
            .draw_series(LineSeries::new(median, colour.stroke_width(2)))
            .map_err(failed)?;
    }
    let line = [(0.0, 7.0), (end(series), 7.0)];
    chart
        .draw_series(DashedLineSeries::new(line, 7, 5, INK.stroke_width(1)))
        .map_err(failed)?;
    Ok(())
}

type Chart<'a, 'b, Y> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>;

/// Axes, grid, and the phases of the demo as coloured ground.
fn frame<'a, 'b, Y>(
    area: &'a Area<'b>,
    series: &Series,
    range: Y,
    unit: &str,
) -> Result<Chart<'a, 'b, Y::CoordDescType>, Failed>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .x_label_area_size(34)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end(series), range)
        .map_err(failed)?;
    let (low, high) = {
        let range = chart.y_range();
        (range.start, range.end)
    };
    let mut ground = |span: Range<f64>, colour: RGBColor| {
        let corners = [(span.start, low), (span.end, high)];
        chart
            .draw_series([Rectangle::new(corners, colour.filled())])
            .map(drop)
            .map_err(failed)
    };
    ground(series.onset..series.crowd_end, CROWD)?;
    if let Some((start, end)) = series.bound {
        ground(start..end, BOUND)?;
    }
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(("sans-serif", 13).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 13).into_font().color(&INK))
        .x_desc("seconds")
        .y_desc(unit)
        .x_labels(14)
        .y_labels(6)
        .y_label_formatter(&|value| short(*value))
        .x_label_formatter(&|second| format!("{second:.0}"))
        .draw()
        .map_err(failed)?;
    Ok(chart)
}

/// `40`, `0.01`: no more digits than the value has.
fn short(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

/// Where the plots end: when everything was normal, or with the last answer.
fn end(series: &Series) -> f64 {
    let last = [
        series.with.len() as f64,
        series.without.len() as f64,
        series.origin_carried.len() as f64,
        series.normal.unwrap_or(0.0) + 2.0,
    ];
    highest(last.into_iter())
}

fn numbered(values: Vec<f64>) -> Vec<(f64, f64)> {
    values
        .into_iter()
        .enumerate()
        .map(|(second, value)| (second as f64 + 0.5, value))
        .collect()
}

fn highest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn failed(error: impl Error) -> Failed {
    error.to_string().into()
}
