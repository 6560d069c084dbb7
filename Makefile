# An index of what can be done here; `make help` prints it. Plain `make` builds, as packagers expect.
.PHONY: build help pages dist wheel dist-test test test-lab lab-packages bench fuzz campaign

# The release: homing and homing-host, then homing-admin, whose feature would make the first two larger.
build:
	cargo build --release -p homing --no-default-features --features hdfs
	cargo build --release -p homing --bin homing-admin

# Prints each target with the comment above it.
help:
	@awk '/^#/ { text = text substr($$0, 2) "\n" } /^[a-z-]+:/ { split($$0, name, ":"); printf "make %s\n%s", name[1], text } \
	  /^$$|^[a-z-]+:/ { text = "" }' Makefile

# Writes each page and list that a test compares with the program: reference, keys, codes, options, ceilings of style.
PAGES = documents::reference_is_the_help cluster_keys::the_list_of_keys_of_the_cluster_file_is_whole manual \
  grammar::tests::the_page_of_options_is_the_grammar cmd::exec::own::tests::the_manual_has_all_options \
  language::faults_of_style_only_fall
pages:
	UPDATE=1 cargo test --workspace --no-fail-fast --lib --test recorded --test local -- --exact $(PAGES)

# Static programs, .deb, .rpm, archive and SHA256SUMS in target/packages.
dist:
	dist/build

# What make dist built, as a wheel per architecture for pip, uv and pipx, in target/packages too.
wheel:
	dist/wheel

# Installs, upgrades, uses and removes them, in a lab and in an empty root.
dist-test: lab-packages
	dist/test

# Format, clippy, all tests but the lab suites, and a short lab scenario an engine.
test: lab-packages
	tests/run

# All lab suites, or some: make test-lab ONLY="volume check". With SLOW=1 also what takes many minutes.
test-lab: lab-packages
	tests/lab $(ONLY)

# Installs the packages of the lab, on Debian and as root; elsewhere the tests that need one are left out.
lab-packages:
	tests/packages

# Measures, beside the peers.
bench:
	bench/run

# libFuzzer over each parser: needs a nightly compiler and `cargo install cargo-fuzz`.
MINUTES ?= 10
FUZZED ?= wire journal nodeset template lsf cluster tasks
fuzz:
	cd fuzz && for target in $(FUZZED); do \
	  mkdir -p found/$$target && \
	  cargo +nightly fuzz run $$target found/$$target corpus/$$target -- -max_total_time=$$(($(MINUTES) * 60)) \
	    -max_len=4096 -timeout=10 -rss_limit_mb=2048 -dict=words.dict -print_final_stats=1 || exit 1; done

# Faults at random against whole runs; make test does fifteen. With LAB=NAME over ssh, in a lab that is up:
# target/debug/homing lab up --name NAME --hosts 3 --gluster 1x3
RUNS ?= 1000
SEED ?= 1
campaign:
	cargo build -p homing -p homing-campaign --features homing/admin
	d=$$(tests/target)/debug && "$$d/homing-campaign" "$$d/homing" $(RUNS) $(SEED) $(LAB)
