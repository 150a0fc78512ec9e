//! What holds for all bytes and all messages: no panic, no growth, nothing lost on the way.
#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::time::Duration;

use levee_vocab::{
    AliasHttps, ByteRate, FetchKey, HostName, Misses, Peer, Peers, Purge, PurgeKind, PurgeScope,
    Timestamp, WebAddress,
};
use levee_wire::registry::{self, Entry, Farewell, Proof, ReplyLine, Search};
use levee_wire::rescue::{Answer, Body, Message, Offer, Rate, Request, ShutdownWord, Sos, parse};
use levee_wire::{
    Digest, Input, LINE_MAX, LineReader, Output, Permit, PermitProof, Report, RescueSession,
    SessionLimits, SessionPhase, leading_number,
};
use proptest::option;
use proptest::prelude::*;

fn host() -> impl Strategy<Value = HostName> {
    "[a-z0-9]{1,9}(-[a-z0-9]{1,9})?(\\.[a-z]{1,9}){0,3}".prop_map(|text| text.parse().unwrap())
}

fn web() -> impl Strategy<Value = WebAddress> {
    (host(), 1..=u16::MAX).prop_map(|(host, port)| WebAddress { host, port })
}

fn address() -> impl Strategy<Value = IpAddr> {
    any::<IpAddr>().prop_map(|address| address.to_canonical())
}

fn seconds() -> impl Strategy<Value = Duration> {
    any::<u32>().prop_map(|count| Duration::from_secs(count.into()))
}

fn rate() -> impl Strategy<Value = ByteRate> {
    any::<u32>().prop_map(|count| ByteRate::from_kilobytes(count.into()))
}

fn key() -> impl Strategy<Value = FetchKey> {
    any::<[u8; 16]>().prop_map(FetchKey::from_bytes)
}

prop_compose! {
    fn sos()(
        origin in web(),
        address in address(),
        idle_max in seconds(),
        key in option::of(key()),
        ttl in option::of(seconds()),
        beats in any::<bool>(),
        drill in option::of(seconds()),
        name_ttl in option::of(seconds()),
        misses in prop_oneof![Just(Misses::Fetch), Just(Misses::SendBack)],
        tls in option::of(1_u16..),
        version in any::<u32>(),
    ) -> Sos {
        Sos {
            origin, address, idle_max, key, ttl, beats, drill, name_ttl, misses, tls,
            version,
            proof: None,
        }
    }
}

prop_compose! {
    fn offer()(
        alias in web(),
        address in address(),
        rate in rate(),
        beats in any::<bool>(),
        drill in any::<bool>(),
        tls in option::of(1_u16..),
    ) -> Offer {
        Offer { alias, address, rate, beats, drill, tls }
    }
}

fn words() -> impl Strategy<Value = String> {
    "[A-Z][a-z]{0,9}( [a-z0-9=.]{1,9}){0,4}"
}

fn code() -> impl Strategy<Value = u16> {
    (0_u16..1000).prop_filter("codes with a meaning of their own", |code| {
        *code != 200 && *code != 403
    })
}

fn purge() -> impl Strategy<Value = Purge> {
    let kind = prop_oneof![Just(PurgeKind::Hard), Just(PurgeKind::Soft)];
    let tag = "[!-~\u{a1}-\u{ff}]{1,12}".prop_map(|tag| tag.parse().unwrap());
    let scope = prop_oneof![
        "/[!-~]{0,40}".prop_map(|url| PurgeScope::Url(url.parse().unwrap())),
        prop::collection::vec(tag, 1..=16).prop_map(PurgeScope::Tags),
        Just(PurgeScope::All),
    ];
    (scope, kind).prop_map(|(scope, kind)| Purge { scope, kind })
}

fn peers() -> impl Strategy<Value = Peers> {
    let peer = (web(), address(), prop::option::of(1..=u16::MAX), rate());
    let peer = peer.prop_map(|(alias, address, tls, rate)| Peer {
        alias,
        address,
        tls,
        rate,
    });
    // More do not fit on a line with the longest names; the session leaves them out.
    let members = prop::collection::vec(peer, 0..=8);
    let key = any::<[u8; 16]>().prop_map(FetchKey::from_bytes);
    (key, members).prop_map(|(key, members)| Peers { key, members })
}

fn permit() -> impl Strategy<Value = Permit> {
    let proof = (any::<u64>(), "[!-~]{1,120}", "[!-~]{1,120}");
    let proof = proof.prop_map(|(stamp, key, signature)| PermitProof {
        stamp,
        key,
        signature,
    });
    (any::<u32>(), prop::option::of(proof)).prop_map(|(seconds, proof)| Permit {
        length: Duration::from_secs(u64::from(seconds)),
        proof,
    })
}

fn report() -> impl Strategy<Value = Report> {
    let told = (web(), "/[!-~]{0,80}", any::<[u8; 32]>(), any::<bool>());
    told.prop_map(|(alias, target, seen, by_https)| Report {
        alias,
        target,
        seen: Digest(seen),
        by_https,
    })
}

fn told_rate() -> impl Strategy<Value = Rate> {
    (rate(), option::of(rate())).prop_map(|(redirects, carried)| Rate { redirects, carried })
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        sos().prop_map(|sos| Body::Request(Request::Sos(sos))),
        told_rate().prop_map(|rate| Body::Request(Request::Rate(rate))),
        purge().prop_map(|purge| Body::Request(Request::Purge(purge))),
        peers().prop_map(|peers| Body::Request(Request::Peers(peers))),
        permit().prop_map(|permit| Body::Request(Request::Permit(permit))),
        report().prop_map(|report| Body::Request(Request::Report(report))),
        Just(Body::Request(Request::Shutdown(ShutdownWord::Unsaid))),
        Just(Body::Request(Request::Shutdown(ShutdownWord::NotAMember))),
        any::<u32>().prop_map(|objects| Body::Answer(Answer::Purged { objects })),
        "X[A-Z0-9_-]{0,31}".prop_map(|command| Body::Request(Request::Unknown(command))),
        Just(Body::Answer(Answer::Done)),
        offer().prop_map(|offer| Body::Answer(Answer::Accept(offer))),
        Just(Body::Answer(Answer::Reject)),
        (code(), words()).prop_map(|(code, text)| Body::Answer(Answer::Other { code, text })),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    (1..=u32::MAX, body()).prop_map(|(number, body)| Message { number, body })
}

prop_compose! {
    fn proof()(
        key in "[A-Za-z0-9:_-]{1,128}",
        signature in "[A-Za-z0-9:_-]{1,128}",
        asked in seconds(),
    ) -> Proof {
        Proof {
            key: key.parse().unwrap(), signature: signature.parse().unwrap(), asked,
            https_signature: None,
        }
    }
}

prop_compose! {
    fn farewell()(
        site in host(),
        stamp in any::<u64>(),
        proof in option::of(proof()),
    ) -> Farewell {
        let proof = proof.map(|proof| Proof { asked: Duration::ZERO, ..proof });
        Farewell { site, stamp, proof }
    }
}

prop_compose! {
    fn search()(
        count in any::<u32>(),
        except in option::of(host()),
        per_domain in option::of(any::<u32>()),
        nonce in option::of(any::<u64>()),
    ) -> Search {
        Search { count, except, per_domain, nonce }
    }
}

prop_compose! {
    fn entry()(
        site in web(),
        address in address(),
        port in 1..=u16::MAX,
        free in rate(),
        lifetime in seconds(),
        stamp in any::<u64>(),
        https in https(),
        proof in option::of(proof()),
        https_signature in option::of("[A-Za-z0-9:_-]{1,128}"),
    ) -> Entry {
        let is_said = https != AliasHttps::Unknown;
        let https_signature = https_signature.filter(|_| is_said);
        let https_signature = https_signature.map(|word| word.parse().unwrap());
        let proof = proof.map(|proof| Proof { https_signature, ..proof });
        Entry { stamp, https, proof, ..Entry::new(site, (address, port).into(), free, lifetime) }
    }
}

fn https() -> impl Strategy<Value = AliasHttps> {
    prop_oneof![
        Just(AliasHttps::Unknown),
        Just(AliasHttps::No),
        Just(AliasHttps::Yes)
    ]
}

fn registry_request() -> impl Strategy<Value = registry::Request> {
    prop_oneof![
        entry().prop_map(registry::Request::Register),
        farewell().prop_map(registry::Request::Deregister),
        search().prop_map(registry::Request::Search),
        host().prop_map(registry::Request::Query),
        "X[A-Z]{0,9}".prop_map(registry::Request::Unknown),
    ]
}

fn reply_line() -> impl Strategy<Value = ReplyLine> {
    prop_oneof![
        entry().prop_map(ReplyLine::Entry),
        any::<u32>().prop_map(ReplyLine::Done),
        (400_u16..1000, words()).prop_map(|(code, text)| ReplyLine::Refused { code, text }),
    ]
}

/// Bytes that look like messages often enough to get past the first check.
fn nearly_a_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        "[0-9]{0,3} ?(SOS|RATE|SHUTDOWN|200|403|SEARCH|REGISTER|210)?( [ -~]{0,20}){0,7}"
            .prop_map(String::into_bytes),
        (message(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(message, at, byte)| {
            let mut bytes = message.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        }),
    ]
}

fn without_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap()
}

/// The lines that a reader finds when the bytes come in these pieces.
fn lines(limit: usize, chunks: &[Vec<u8>]) -> (Vec<Vec<u8>>, bool) {
    let mut reader = LineReader::new(limit);
    let mut found = Vec::new();
    for chunk in chunks {
        let mut rest = chunk.as_slice();
        loop {
            match reader.next_line(&mut rest) {
                Ok(Some(line)) => found.push(line.to_vec()),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
            assert!(reader.held() <= limit + 1);
        }
        assert!(rest.is_empty());
        assert!(reader.held() <= limit + 1);
    }
    (found, true)
}

proptest! {
    #[test]
    fn every_message_survives_its_line(message in message()) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        prop_assert!(bytes.len() <= LINE_MAX);
        prop_assert_eq!(parse(without_end(&bytes)), Ok(message));
    }

    #[test]
    fn every_registry_message_survives_its_line(
        number in 1..=u32::MAX,
        request in registry_request(),
        line in reply_line(),
    ) {
        let mut bytes = Vec::new();
        request.encode(number, &mut bytes);
        prop_assert_eq!(registry::parse_request(without_end(&bytes)), Ok((number, request)));
        bytes.clear();
        line.encode(number, &mut bytes);
        prop_assert_eq!(registry::parse_reply_line(without_end(&bytes)), Ok((number, line)));
    }

    #[test]
    fn no_line_makes_a_parser_panic_and_what_is_read_can_be_said(line in nearly_a_line()) {
        let _ = leading_number(&line);
        let _ = registry::parse_request(&line);
        let _ = registry::parse_reply_line(&line);
        if let Ok(message) = parse(&line) {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert_eq!(parse(without_end(&bytes)), Ok(message));
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_are_chopped_up(
        text in "[a-c\r\n]{0,60}",
        cuts in prop::collection::vec(0_usize..60, 0..8),
        limit in 1_usize..12,
    ) {
        let whole = lines(limit, &[text.clone().into_bytes()]);
        let mut chunks = Vec::new();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts {
            let to = cut.clamp(from, text.len());
            chunks.push(text.as_bytes()[from..to].to_vec());
            from = to;
        }
        chunks.push(text.as_bytes()[from..].to_vec());
        prop_assert_eq!(lines(limit, &chunks), whole);
    }

    #[test]
    fn no_bytes_make_a_session_panic_and_the_end_is_the_last_word(
        chunks in prop::collection::vec(
            prop_oneof![
                any::<Vec<u8>>(),
                nearly_a_line(),
                message().prop_map(|message| {
                    let mut bytes = Vec::new();
                    message.encode(&mut bytes);
                    bytes
                }),
                "[1-4] (SHUTDOWN|RATE 5|200 OK|403 Reject|HELLO|SOS a.b 1.2.3.4 80 600)\n"
                    .prop_map(String::into_bytes),
            ],
            0..20,
        ),
        calls in any::<bool>(),
        sos in sos(),
        offer in offer(),
    ) {
        let mut session = match calls {
            true => {
                let answer_by = Timestamp::from_seconds(2);
                RescueSession::call(sos, answer_by, SessionLimits::default()).0
            }
            false => RescueSession::answer(Timestamp::ZERO, SessionLimits::default()),
        };
        let mut now = Timestamp::ZERO;
        let mut ends = 0;
        for chunk in chunks {
            now = now + Duration::from_millis(100);
            let mut outputs = session.handle(now, Input::BytesReceived(&chunk));
            outputs.extend(session.handle(now, Input::SosAccepted(offer.clone())));
            outputs.extend(session.handle(now, Input::TimerFired));
            outputs.extend(session.handle(now, Input::RateChanged(Rate {
                redirects: offer.rate,
                carried: None,
            })));
            let is_end = |output: &Output| matches!(output, Output::Close(_));
            ends += outputs.iter().filter(|output| is_end(output)).count();
            prop_assert_eq!(ends > 0, session.view().phase == SessionPhase::Over);
            if let Some(index) = outputs.iter().position(is_end) {
                prop_assert_eq!(index, outputs.len() - 1);
            }
        }
        prop_assert!(ends <= 1);
        // Only a link on which nothing is due may wait without an end.
        let waits = session.next_deadline().is_some();
        let may_rest = match session.view().phase {
            SessionPhase::Rescued | SessionPhase::Rescuing | SessionPhase::Over => true,
            SessionPhase::Calling
            | SessionPhase::Awaiting
            | SessionPhase::Deciding
            | SessionPhase::Closing => false,
        };
        prop_assert!(waits || may_rest);
    }
}
