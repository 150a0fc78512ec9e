//! Signatures of questions and answers (TSIG, RFC 8945), from the server's side.

use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::tsig::{TSIG, TsigError, make_tsig_record};
use hickory_proto::rr::{TSigResponseContext, TSigner};

use crate::key::TsigKey;
use crate::name::DomainName;

/// A key, and what it may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The key.
    pub key: TsigKey,
    /// Names at and below this one.
    pub scope: DomainName,
}

/// What the signature of a question is worth.
pub(crate) enum Signature<'a> {
    /// There is none.
    None,
    /// It is good: whose it is, and how to sign the answer.
    Good(&'a Grant, Signer),
    /// It is not: the answer that says why.
    Bad(Message),
}

/// Signs the answer to one question, message by message.
pub(crate) struct Signer {
    signer: TSigner,
    now: u64,
    previous: Vec<u8>,
    is_first: bool,
}

/// What the signature of `request`, which came as `bytes`, is worth at `now` in Unix seconds.
/// `response` is the answer so far.
//= RFC 8945 section 5.2
pub(crate) fn check<'a>(
    grants: &'a [Grant],
    request: &Message,
    bytes: &[u8],
    now: u64,
    response: &Message,
) -> Signature<'a> {
    let Some(record) = request.signature() else {
        return Signature::None;
    };
    let id = request.metadata.id;
    let bad = |context: TSigResponseContext| {
        let mut answer = response.clone();
        answer.metadata.response_code = ResponseCode::NotAuth;
        let unsigned = answer.to_vec().unwrap_or_default();
        if let Ok(signature) = context.sign(&unsigned) {
            answer.set_signature(signature);
        }
        Signature::Bad(answer)
    };
    let known = grants.iter().find(|grant| {
        let signer = grant.key.signer();
        *signer.signer_name() == record.name && *signer.algorithm() == record.data.algorithm
    });
    let Some(grant) = known else {
        return bad(TSigResponseContext::unknown_key(
            id,
            now,
            record.name.clone(),
        ));
    };
    let signer = grant.key.signer().clone();
    let mac = record.data.mac.clone();
    // Looked at before the signature, because hickory subtracts it from the time.
    let fudge = u64::from(record.data.fudge);
    let is_absurd = record.data.time < fudge;
    if is_absurd || signer.verify_message_byte(bytes, None, true).is_err() {
        return bad(TSigResponseContext::bad_signature(id, now, signer));
    }
    if record.data.time.abs_diff(now) > fudge.min(FUDGE_MAX.as_secs()) {
        let error = Some(TsigError::BadTime);
        return bad(TSigResponseContext::new(id, now, signer, mac, error));
    }
    let signer = Signer {
        signer,
        now,
        previous: mac,
        is_first: true,
    };
    Signature::Good(grant, signer)
}

/// Whoever signs decides how far clocks may differ; not beyond this, or what was recorded could be
/// played again for long.
const FUDGE_MAX: Duration = Duration::from_secs(300);

impl Signer {
    /// Signs `message` and gives its bytes; none where it cannot be encoded.
    //= RFC 8945 section 5.3
    pub(crate) fn sign(&mut self, message: &mut Message) -> Option<Vec<u8>> {
        let bytes = message.to_vec().ok()?;
        let blank = TSIG::new(
            self.signer.algorithm().clone(),
            self.now,
            self.signer.fudge(),
            vec![],
            message.metadata.id,
            None,
            vec![],
        );
        let signed = match self.is_first {
            true => self
                .signer
                .encode_response_tbs(&self.previous, &bytes, &blank)
                .ok()?,
            false => self.continued(&bytes),
        };
        let mac = self.signer.sign(&signed).ok()?;
        self.is_first = false;
        self.previous.clone_from(&mac);
        let name = self.signer.signer_name().clone();
        let record = make_tsig_record(name, blank.set_mac(mac));
        message.set_signature(Box::new(record));
        message.to_vec().ok()
    }

    /// What is signed of each further message: of the key only the times.
    //= RFC 8945 section 5.3.1
    fn continued(&self, bytes: &[u8]) -> Vec<u8> {
        let mut signed = vec![];
        let length = u16::try_from(self.previous.len()).unwrap_or(u16::MAX);
        signed.extend_from_slice(&length.to_be_bytes());
        signed.extend_from_slice(&self.previous);
        signed.extend_from_slice(bytes);
        signed.extend_from_slice(&self.now.to_be_bytes()[2..]);
        signed.extend_from_slice(&self.signer.fudge().to_be_bytes());
        signed
    }
}
