//! A style sheet. The property stands in `crates/page/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_page::fuzzing::sheet(data));
