//! The figures for machines: one object for each workload, and in it one for each server.

use super::samples::{Figures, Samples};
use super::servers::{BARE, Maker, OURS, Server};
use super::workloads::{Measure, Workload};

/// The best of the peers under `workload`: its name and its figures.
pub fn best_peer<'a>(
    samples: &Samples,
    workload: &str,
    servers: &[&'a Server],
) -> Option<(&'a str, Figures)> {
    let peers = servers
        .iter()
        .filter(|server| matches!(server.maker, Maker::Debian(_)));
    peers
        .filter_map(|server| Some((server.name, samples.figures(workload, server.name)?)))
        .min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
}

/// The whole text. A figure that was not measured is `null`.
pub fn of(samples: &Samples, servers: &[&Server], workloads: &[&Workload]) -> String {
    let objects: Vec<String> = workloads
        .iter()
        .map(|workload| {
            format!(
                "  \"{}\": {}",
                workload.id,
                object(samples, servers, workload)
            )
        })
        .collect();
    format!("{{\n{}\n}}\n", objects.join(",\n"))
}

fn object(samples: &Samples, servers: &[&Server], workload: &Workload) -> String {
    let unit = match workload.measure() {
        Measure::Processor => "us",
        Measure::Memory => "bytes",
    };
    let workload = workload.id;
    let ours = samples.figures(workload, OURS);
    let bare = samples.figures(workload, BARE);
    let best = best_peer(samples, workload, servers);
    let mut members: Vec<(String, String)> = vec![
        (
            format!("ours_{unit}"),
            number(ours.map(|figures| figures.cost)),
        ),
        (
            "best_peer".to_owned(),
            best.map_or("null".to_owned(), |(name, _)| format!("\"{name}\"")),
        ),
        (
            format!("best_peer_{unit}"),
            number(best.map(|(_, figures)| figures.cost)),
        ),
        (
            format!("bare_{unit}"),
            number(bare.map(|figures| figures.cost)),
        ),
        (
            "ratio_best_peer".to_owned(),
            number(best.and_then(|(name, _)| samples.ratio(workload, OURS, name))),
        ),
        (
            "ratio_bare".to_owned(),
            number(samples.ratio(workload, OURS, BARE)),
        ),
        (
            "spread".to_owned(),
            number(ours.map(|figures| figures.spread)),
        ),
    ];
    let each: Vec<String> = servers
        .iter()
        .filter_map(|server| {
            let figures = samples.figures(workload, server.name)?;
            Some(format!(
                "      \"{}\": {}",
                server.name,
                of_server(&figures, unit)
            ))
        })
        .collect();
    members.push((
        "servers".to_owned(),
        format!("{{\n{}\n    }}", each.join(",\n")),
    ));
    let lines: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("    \"{name}\": {value}"))
        .collect();
    format!("{{\n{}\n  }}", lines.join(",\n"))
}

fn of_server(figures: &Figures, unit: &str) -> String {
    format!(
        "{{ \"{}\": {}, \"spread\": {}, \"user_us\": {}, \"rps\": {}, \"p50_us\": {}, \
         \"p99_us\": {}, \"bytes_each\": {}, \"errors\": {} }}",
        match unit {
            "us" => "cpu_us",
            other => other,
        },
        number(Some(figures.cost)),
        number(Some(figures.spread)),
        number(Some(figures.user_us)),
        number(Some(figures.rate)),
        number(Some(figures.p50_us)),
        number(Some(figures.p99_us)),
        number(figures.memory),
        figures.errors,
    )
}

/// Three digits are more than any of these measurements can tell.
fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.3}"),
        Some(_) | None => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::tests::samples_of;
    use super::super::servers::SERVERS;
    use super::super::workloads::WORKLOADS;
    use super::*;

    #[test]
    fn the_best_peer_is_the_cheapest_and_the_bare_loop_is_none() {
        let samples = samples_of(&[("levee", 500), ("bare", 100), ("nginx", 1000), ("h2o", 800)]);
        let servers: Vec<&Server> = SERVERS.iter().collect();
        let (name, figures) = best_peer(&samples, "hot_1k", &servers).unwrap();
        assert_eq!((name, figures.cost), ("h2o", 8.0));
        let text = of(&samples, &servers, &[&WORKLOADS[0]]);
        for part in [
            "\"ours_us\": 5.000",
            "\"best_peer\": \"h2o\"",
            "\"ratio_best_peer\": 0.625",
            "\"ratio_bare\": 5.000",
            "\"nginx\": { \"cpu_us\": 10.000",
        ] {
            assert!(text.contains(part), "{text} lacks {part}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn what_was_not_measured_is_null() {
        let text = of(&samples_of(&[]), &[], &[&WORKLOADS[0]]);
        assert!(text.contains("\"best_peer\": null"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
