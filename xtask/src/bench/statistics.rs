//! Medians and spreads, and nothing that measures.
//!
//! Medians, because one round that another program disturbed must not move the result. A ratio is
//! taken within each round first, because a noisy minute is noisy for both.

/// The middle value; of an even number, the mean of the two in the middle. None of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values
        .iter()
        .copied()
        .filter(|one| one.is_finite())
        .collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.len()) {
        (_, 0) => None,
        (1, _) => sorted.get(middle).copied(),
        _ => Some((sorted.get(middle - 1)? + sorted.get(middle)?) / 2.0),
    }
}

/// (largest - smallest) / median. None of nothing.
pub fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    let finite = || values.iter().copied().filter(|one| one.is_finite());
    let largest = finite().fold(f64::MIN, f64::max);
    let smallest = finite().fold(f64::MAX, f64::min);
    match middle == 0.0 {
        true => Some(0.0),
        false => Some((largest - smallest) / middle),
    }
}

/// Median of the ratios of each round. Rounds are numbered; one that lacks either side is left out.
pub fn paired_ratio(ours: &[(usize, f64)], theirs: &[(usize, f64)]) -> Option<f64> {
    let ratios: Vec<f64> = ours
        .iter()
        .filter_map(|(round, value)| {
            let (_, other) = theirs.iter().find(|(other, _)| other == round)?;
            (*other > 0.0).then(|| value / other)
        })
        .collect();
    median(&ratios)
}

/// The order in which `count` things are visited in `round`: each is first in turn, so that what
/// the machine does at the beginning of a round hits all alike.
pub fn rotated(count: usize, round: usize) -> Vec<usize> {
    (0..count).map(|index| (index + round) % count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_one_wild_value() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 1000.0]), Some(9.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
        assert_eq!(median(&[f64::NAN, 5.0]), Some(5.0));
    }

    #[test]
    fn the_spread_is_a_share_of_the_median() {
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[10.0, 9.0, 12.0]), Some(0.3));
        assert_eq!(spread(&[0.0]), Some(0.0));
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // Everything is three times as slow in round 1; the ratio is not.
        let ours = [(0, 2.0), (1, 6.0), (2, 2.2)];
        let theirs = [(0, 4.0), (1, 12.0)];
        assert_eq!(paired_ratio(&ours, &theirs), Some(0.5));
        assert_eq!(paired_ratio(&ours, &[]), None);
        assert_eq!(paired_ratio(&ours, &[(0, 0.0)]), None);
    }

    #[test]
    fn everyone_is_first_once() {
        assert_eq!(rotated(3, 0), [0, 1, 2]);
        assert_eq!(rotated(3, 4), [1, 2, 0]);
        assert!(rotated(0, 5).is_empty());
    }
}
