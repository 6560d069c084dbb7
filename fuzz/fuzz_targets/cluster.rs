#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| homing_fuzz::cluster(bytes));
