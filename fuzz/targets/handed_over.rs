//! Log lines that rescue servers hand over. The property stands in `crates/observe/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_observe::fuzzing::handed_over(data));
