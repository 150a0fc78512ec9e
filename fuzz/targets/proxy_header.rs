//! PROXY headers. The property stands in `crates/wire/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_wire::fuzzing::proxy_header(data));
