//! Lines of access logs. The property stands in `crates/levee/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee::fuzzing::replay_line(data));
