//! The word of the way back in a target. The property stands in `crates/wire/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_wire::fuzzing::back(data));
