//! Headers as proxies send them, headers as nobody should, and what holds for all of them.

use proptest::prelude::*;

use super::*;

fn parsed(bytes: &[u8]) -> ProxyHeader {
    ProxyHeader::parse(bytes).unwrap().unwrap()
}

fn between(source: &str, destination: &str) -> Option<ProxiedAddresses> {
    Some(ProxiedAddresses {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    })
}

#[test]
fn lines_of_version_one_are_understood() {
    let line = b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET / HTTP/1.1\r\n";
    let header = parsed(line);
    assert_eq!(header.length, 45);
    assert_eq!(
        header.addresses,
        between("192.0.2.1:56324", "198.51.100.2:443")
    );
    let header = parsed(b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n");
    assert_eq!(
        header.addresses,
        between("[2001:db8::1]:1", "[2001:db8::2]:65535")
    );
    assert_eq!(parsed(b"PROXY UNKNOWN\r\n").addresses, None);
    let header = parsed(b"PROXY UNKNOWN ffff:: ffff:: 65535 65535\r\n");
    assert_eq!((header.length, header.addresses), (41, None));
}

#[test]
fn what_is_no_line_is_refused() {
    use ProxyHeaderFault::{Line, LongLine, Signature};
    let long = [b"PROXY UNKNOWN ".as_slice(), &[b'a'; 100]].concat();
    let cases: &[(&[u8], ProxyHeaderFault)] = &[
        (b"GET / HTTP/1.1\r\n", Signature),
        (b"PROXX", Signature),
        (b"proxy TCP4", Signature),
        (b"\x16\x03\x01", Signature),
        (b"PROXY \r\n", Line),
        (b"PROXY TCP4\r\n", Line),
        (b"PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n", Line),
        (b"PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", Line),
        (b"PROXY TCP4 ::1 ::1 1 2\r\n", Line),
        (b"PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", Line),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", Line),
        (b"PROXY UNKNOWN \xff\r\n", Line),
        (&long, LongLine),
    ];
    for (bytes, fault) in cases {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(ProxyHeader::parse(bytes), Err(*fault), "{text}");
    }
}

/// A header of version 2.
fn v2(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn headers_of_version_two_are_understood_and_what_follows_addresses_is_skipped() {
    let ends = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0, 80];
    let with_values = [&ends[..], &[0x04, 0, 3, 1, 2, 3]].concat();
    for payload in [&ends[..], &with_values] {
        let header = parsed(&[&v2(0x21, 0x11, payload)[..], b"GET /"].concat());
        assert_eq!(header.length, 16 + payload.len());
        assert_eq!(
            header.addresses,
            between("192.0.2.1:4660", "198.51.100.2:80")
        );
    }
    // The proxy's own connections: a health check, one of no family, one between files.
    assert_eq!(parsed(&v2(0x20, 0x11, &ends)).addresses, None);
    assert_eq!(parsed(&v2(0x20, 0x00, &[])).addresses, None);
    assert_eq!(parsed(&v2(0x21, 0x00, &[1, 2])).addresses, None);
    assert_eq!(parsed(&v2(0x21, 0x31, &[0; 216])).addresses, None);
    assert_eq!(parsed(&v2(0x21, 0x12, &ends)).addresses, None);
}

#[test]
fn what_is_no_header_of_version_two_is_refused() {
    use ProxyHeaderFault::{Command, Family, LongHeader, ShortAddresses, Signature};
    let cases = [
        (v2(0x11, 0x11, &[0; 12]), Command),
        (v2(0x22, 0x11, &[0; 12]), Command),
        (v2(0x21, 0x41, &[0; 12]), Family),
        (v2(0x21, 0x13, &[0; 12]), Family),
        (v2(0x21, 0x11, &[0; 11]), ShortAddresses),
        (v2(0x21, 0x21, &[0; 35]), ShortAddresses),
        (v2(0x21, 0x11, &[0; 2033]), LongHeader),
        (b"\r\n\r\n\0\r\nQUIX\n".to_vec(), Signature),
        (b"\r\n\r\nGET".to_vec(), Signature),
    ];
    for (bytes, fault) in cases {
        assert_eq!(ProxyHeader::parse(&bytes), Err(fault));
    }
}

fn ends() -> impl Strategy<Value = ProxiedAddresses> {
    let end = || (any::<IpAddr>(), any::<u16>()).prop_map(SocketAddr::from);
    (end(), end()).prop_map(|(source, destination)| ProxiedAddresses {
        source,
        destination,
    })
}

proptest! {
    #[test]
    fn a_header_is_read_as_it_was_written_and_not_before_it_is_whole(
        ends in prop::option::of(ends()),
        version in prop_oneof![Just(ProxyVersion::V1), Just(ProxyVersion::V2)],
        rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let header = version.header(ends);
        for end in 0..header.len() {
            prop_assert_eq!(ProxyHeader::parse(&header[..end]), Ok(None));
        }
        let bytes = [&header[..], &rest].concat();
        let read = ProxyHeader::parse(&bytes).unwrap().unwrap();
        prop_assert_eq!(read.length, header.len());
        let expected = ends.map(ProxiedAddresses::in_one_family);
        prop_assert_eq!(read.addresses, expected);
    }

    #[test]
    fn no_bytes_are_too_much_for_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = ProxyHeader::parse(&bytes);
        let signed = [SIGNATURE.as_slice(), &bytes].concat();
        let _ = ProxyHeader::parse(&signed);
        let spoken = [LINE_START, &bytes].concat();
        match ProxyHeader::parse(&spoken) {
            Ok(Some(header)) => prop_assert!(header.length <= LINE_BYTES_MAX),
            Ok(None) => prop_assert!(spoken.len() < LINE_BYTES_MAX),
            Err(_) => {}
        }
    }
}
