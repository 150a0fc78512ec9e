//! Certificates that are ordered by themselves.

use super::Audience::Operator;
use super::Kind::Counter;
use super::Metric;

/// What became of orders.
pub(super) const ORDERS: Metric = Metric {
    name: "levee_certificate_orders_total",
    kind: Counter,
    unit: "orders",
    level: Operator,
    help: "Orders for certificates, by name and by what became of them: issued, or unreachable, roots, rate_limited, refused, check_failed, not_offered, dns, disk, account, unusable, too_slow, not_in_force.",
    labels: &["name", "result"],
    read: |s, out| {
        for one in &s.certificates {
            for order in &one.orders {
                out.labelled([one.name.as_str(), order.result.as_str()], order.count);
            }
        }
    },
};
