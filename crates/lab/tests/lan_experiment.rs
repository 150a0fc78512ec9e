//! The paper's experiment in a LAN (dotslash 6.3.4, Figure 11) comes out of the simulator.
//!
//! Shorter than `levee-lab experiment lan`, with the same rates: each of them for a few seconds.

use std::time::Duration;

use levee_lab::experiment::{LanFigures, LanRow, LanSettings, MACHINES, run_lan};
use levee_vocab::ByteRate;

fn short_experiment() -> LanFigures {
    let rates = [
        200.0, 400.0, 600.0, 800.0, 1200.0, 1400.0, 1600.0, 1700.0, 1850.0, 2000.0, 2100.0,
    ];
    run_lan(&LanSettings {
        rates: rates.to_vec(),
        each: Duration::from_secs(16),
        settle: Duration::from_secs(12),
        seed: 1,
    })
}

fn kilobytes(rate: ByteRate) -> f64 {
    rate.as_bytes() as f64 / 1000.0
}

fn check_row(row: &LanRow) {
    let origin = kilobytes(row.out[0]);
    let told = format!("{row:?}");
    if row.offered <= 1600.0 {
        assert!((712.5..=787.5).contains(&origin), "flat at 750: {told}");
    } else {
        // Redirects alone: 468 bytes each.
        let expected = row.offered * 468.0 / 1000.0;
        assert!((origin - expected).abs() < 0.02 * expected, "{told}");
        assert!(origin < 1000.0, "below D_out: {told}");
        assert!(
            row.redirects > 0.999 * row.offered,
            "all redirected: {told}"
        );
    }
    assert!(row.answered > 0.999 * row.offered, "all answered: {told}");
    assert_eq!(row.refused, 0.0, "{told}");
    check_proportions(row);
}

/// Rescue rates are proportional to capacities, among those that were drafted.
fn check_proportions(row: &LanRow) {
    let shares = row.rescued.iter().zip(&MACHINES[1..]);
    let shares: Vec<f64> = shares
        .map(|(rescued, (_, usable))| rescued / *usable as f64)
        .filter(|share| *share > 0.0)
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    for share in shares {
        assert!((share - mean).abs() < 0.05 * mean, "{row:?}");
    }
}

#[test]
fn the_origin_stays_at_750_kb_while_rescue_servers_are_drafted_largest_first() {
    let figures = short_experiment();
    println!("{}", figures.to_table());
    figures.rows.iter().for_each(check_row);
    let drafted: Vec<&str> = figures
        .drafted
        .iter()
        .map(|(machine, _)| *machine)
        .collect();
    assert!(drafted.len() >= 4, "{drafted:?}");
    let largest: Vec<&str> = MACHINES[1..].iter().map(|(machine, _)| *machine).collect();
    assert_eq!(drafted, largest[..drafted.len()]);
    let table = figures.to_csv();
    assert_eq!(table.lines().count(), figures.rows.len() + 1);
}

#[test]
fn above_the_bound_of_2137_redirects_the_excess_is_refused_and_the_rest_is_served() {
    let figures = run_lan(&LanSettings {
        rates: vec![1000.0, 1500.0, 2000.0, 2600.0],
        each: Duration::from_secs(30),
        settle: Duration::from_secs(24),
        seed: 1,
    });
    println!("{}", figures.to_table());
    let last = figures.rows.last().expect("four rates, four rows");
    let bound = 1_000_000.0 / 468.0;
    assert!(last.redirects <= 1.001 * bound, "{last:?}");
    assert!(last.redirects > 0.95 * bound, "{last:?}");
    assert!(last.refused > 0.0, "{last:?}");
    assert!(kilobytes(last.out[0]) < 1.1 * 1000.0, "{last:?}");
}
