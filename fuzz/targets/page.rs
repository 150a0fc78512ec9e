//! A page. The property stands in `crates/page/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_page::fuzzing::page(data));
