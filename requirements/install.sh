#!/usr/bin/env bash
# Install Galata into $VENV from a hashed lock: `install.sh run` or `install.sh dev`.
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
python=${PYTHON:-python3}
venv=${VENV:-.venv}

mend() { # the one command that brings PACKAGES on this system
  if command -v apt-get >/dev/null; then echo "sudo apt-get install -y $1"
  elif command -v dnf >/dev/null; then echo "sudo dnf install -y $2"
  elif command -v brew >/dev/null; then echo "brew install $3"
  else echo "install Python 3.11 or newer from https://www.python.org/downloads/"; fi
}

if ! command -v "$python" >/dev/null; then
  echo "Galata needs Python 3.11 or newer, and '$python' is not there. Mend it with:" >&2
  echo "  $(mend 'python3 python3-venv' python3 python@3.13)" >&2
  exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  for newer in python3.13 python3.12 python3.11; do
    if "$newer" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      python=$newer; break
    fi
  done
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  version=$("$python" -c 'import platform; print(platform.python_version())')
  echo "Galata needs Python 3.11 or newer; '$python' is $version. Mend it with:" >&2
  echo "  $(mend 'python3.11 python3.11-venv' python3.12 python@3.13)   (then: make PYTHON=python3.11)" >&2
  exit 1
fi
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  short=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  echo "Python's venv module is missing. Mend it with:" >&2
  echo "  $(mend "python$short-venv" python3 python@3.13)" >&2
  exit 1
fi

if [ ! -x "$venv/bin/python" ]; then
  echo "Creating $venv with $("$python" --version) ..."
  "$python" -m venv "$venv"
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
echo "Installing from requirements/$what.txt (about a minute the first time) ..."
"${pip[@]}" install --progress-bar on --no-deps --require-hashes -r "requirements/$what.txt"
if [ "$what" = dev ]; then
  "${pip[@]}" install --progress-bar on --no-deps --require-hashes -r requirements/local.txt
fi
"${pip[@]}" install --quiet --no-deps --no-build-isolation --editable .
touch "$venv/$what.ok"
[ "$what" = dev ] && touch "$venv/run.ok"
echo "Ready. The command is $(cd "$venv/bin" && pwd)/galata"
