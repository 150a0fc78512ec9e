//! Lines of the state folder. The property stands in `crates/levee/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee::fuzzing::state_files(data));
