//! A whole zone as messages (AXFR, RFC 5936), for secondaries that go on when we are dead.

use hickory_proto::op::Message;
use hickory_proto::rr::Record;

use super::answer::response_to;
use super::records::Records;

/// Records of one message: with the longest names that are likely, half of the 64 KiB that fit.
const RECORDS_MAX: usize = 100;

/// The messages that answer `request` for all of `records`.
//= RFC 5936 section 2.2
pub(crate) fn transfer(records: &Records, request: &Message) -> Vec<Message> {
    let soa = records.soa().clone();
    let whole: Vec<Record> = [soa.clone()]
        .into_iter()
        .chain(records.all())
        .chain([soa])
        .collect();
    let message = |chunk: &[Record]| {
        let mut message = response_to(request);
        message.metadata.authoritative = true;
        message.add_answers(chunk.iter().cloned());
        message
    };
    whole.chunks(RECORDS_MAX).map(message).collect()
}
