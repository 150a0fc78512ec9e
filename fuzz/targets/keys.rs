//! Keys, signatures and key files. The property stands in `crates/trust/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| levee_trust::fuzzing::keys(data));
