//! Heads of responses, and trailers. The property stands in `crates/proxy/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_proxy::fuzzing::response_head(data));
