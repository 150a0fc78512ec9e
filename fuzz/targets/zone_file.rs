//! Zone files. The property stands in `crates/dns/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_dns::fuzzing::zone_file(data));
