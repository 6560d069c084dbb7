# An index of what can be done here.
.PHONY: build test lab-packages bench

build:
	cargo build --release

test: lab-packages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	tests/run

# What the lab needs, on Debian and as root; elsewhere the lab tests say that they are left out.
lab-packages:
	tests/packages

bench:
	bench/run
