# Wheels of a requirements file that names the hash of each. D: the environment; S: the hash of the file.
export LC_ALL=C
die() { echo "$*" >&2; exit 1; }
why() { grep -m 3 -e '^ *ERROR' -e 'No matching' | tr '\n' ' '; }
p=python3; [ ! -x "$D/bin/python" ] || p=$D/bin/python
# Wheels are of a Python, a processor and a library of C.
asked() {
  k=$("$p" -c 'import ensurepip, platform, sys
print(sys.implementation.cache_tag, platform.machine(), *platform.libc_ver(), sep="-")') 2>/dev/null || die "python3 with its venv is not there (python3-venv)"
  if [ -x "$D/bin/python" ] && [ "$(cat "$D/.homing-requirements" 2>/dev/null)" = "$S" ]; then echo "has $k"; else echo "wants $k"; fi
}
folder() { t=$(mktemp -d) || die "there is no room for a folder in ${TMPDIR:-/tmp}"; trap 'rm -rf "$t"' EXIT; }
# fetch BASE64: no more than wheels, since to look at a source is to run it.
fetch() {
  folder
  printf %s "$1" | base64 -d >"$t/list" && "$p" -m venv "$t/env" && mkdir "$t/files" || die "no environment could be made to fetch with"
  out=$("$t/env/bin/python" -m pip --disable-pip-version-check download --only-binary :all: --require-hashes -r "$t/list" -d "$t/files" 2>&1 </dev/null) ||
    die "pip: $(echo "$out" | why)"
  tar -C "$t/files" -cf - .
}
# came: a tar on standard input. pip compares each file with its hash.
came() {
  folder
  tar -C "$t" --no-same-owner -xf - || die "the wheels did not arrive whole"
  if [ ! -e "$D/pyvenv.cfg" ]; then
    [ -z "$(ls -A "$D" 2>/dev/null)" ] || die "$D is there, and is no environment of Python's; nothing was installed"
    python3 -m venv "$D" </dev/null || die "$D cannot be made"
  fi
  out=$("$D/bin/python" -m pip --isolated --disable-pip-version-check install --no-index --find-links "$t" --only-binary :all: --require-hashes -r "$t/homing.list" 2>&1 </dev/null) ||
    die "nothing was installed: $(echo "$out" | why)"
  echo "$S" >"$D/.homing-requirements" || die "$D cannot be written to"
}
