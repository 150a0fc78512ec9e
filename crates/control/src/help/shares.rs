//! Dividing what there is among origins of which each may have so much at most.
//!
//! By max-min fairness: all get the same, but for those whose limit is lower; what these leave is
//! for the others. So nobody's limit takes anything from anybody else, and nobody gets less than an
//! equal part because another wants more.

use levee_vocab::ByteRate;

/// The part of each, in the order of `limits`; together they are `all` at most. A fraction of a
/// byte is dropped.
pub(crate) fn divide(all: ByteRate, limits: &[Option<ByteRate>]) -> Vec<ByteRate> {
    let mut order: Vec<usize> = (0..limits.len()).collect();
    let limit_of = |index: usize| limits[index].map_or(u64::MAX, ByteRate::as_bytes);
    order.sort_by_key(|&index| limit_of(index));
    let mut shares = vec![ByteRate::ZERO; limits.len()];
    let mut left = all.as_bytes();
    for (done, &index) in order.iter().enumerate() {
        let equal = left / (order.len() - done) as u64;
        let share = equal.min(limit_of(index));
        shares[index] = ByteRate::from_bytes(share);
        left -= share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rates(numbers: &[Option<u64>]) -> Vec<Option<ByteRate>> {
        let rate = |number: &Option<u64>| number.map(ByteRate::from_bytes);
        numbers.iter().map(rate).collect()
    }

    #[test]
    fn what_a_low_limit_leaves_is_for_the_others() {
        let limits = rates(&[None, Some(100), None]);
        let shares = divide(ByteRate::from_bytes(900), &limits);
        assert_eq!(shares.map_to_bytes(), [400, 100, 400]);
        assert_eq!(divide(ByteRate::from_bytes(900), &[]), []);
    }

    trait MapToBytes {
        fn map_to_bytes(&self) -> Vec<u64>;
    }

    impl MapToBytes for Vec<ByteRate> {
        fn map_to_bytes(&self) -> Vec<u64> {
            self.iter().map(|rate| rate.as_bytes()).collect()
        }
    }

    fn limits() -> impl Strategy<Value = Vec<Option<u64>>> {
        prop::collection::vec(prop::option::of(0..2000_u64), 1..12)
    }

    proptest! {
        #[test]
        fn nobody_has_more_than_there_is_or_than_he_may(all in 0..10_000_u64, limits in limits()) {
            let shares = divide(ByteRate::from_bytes(all), &rates(&limits)).map_to_bytes();
            prop_assert!(shares.iter().sum::<u64>() <= all);
            for (share, limit) in shares.iter().zip(&limits) {
                prop_assert!(limit.is_none_or(|limit| *share <= limit));
            }
        }

        #[test]
        fn who_has_less_than_another_has_reached_a_limit(all in 0..10_000_u64, limits in limits()) {
            let shares = divide(ByteRate::from_bytes(all), &rates(&limits)).map_to_bytes();
            let most = shares.iter().max().copied().unwrap_or_default();
            for (share, limit) in shares.iter().zip(&limits) {
                // The fractions of a byte go to those who come last.
                prop_assert!(share + limits.len() as u64 >= most || *limit == Some(*share));
            }
        }

        #[test]
        fn a_lower_limit_of_one_takes_nothing_from_another(
            all in 0..10_000_u64,
            limits in limits(),
            lower in 0..2000_u64,
        ) {
            let before = divide(ByteRate::from_bytes(all), &rates(&limits)).map_to_bytes();
            let mut changed = limits.clone();
            changed[0] = Some(changed[0].map_or(lower, |limit| limit.min(lower)));
            let after = divide(ByteRate::from_bytes(all), &rates(&changed)).map_to_bytes();
            for (index, share) in after.iter().enumerate().skip(1) {
                prop_assert!(share + 1 >= before[index], "{before:?} {after:?}");
            }
        }
    }
}
