#!/bin/bash
# Runs the short suite on another Python than this machine's: docker/test_python.sh 3.14 "4.2 4.3"
#
# The Pythons are those of Debian's next release, in a container with this machine's network, a copy of this directory
# and pip's and binlake's caches; Java comes as a wheel. The results go to lines/results.json.
set -eu

python=$1 lines=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "docker/test_python.sh: $*"; }
. "$here/base_image.sh"

case $python in
  3.13 | 3.14) ;;
  *) say "Debian's next release has Python 3.13 and 3.14, not $python; where $python is installed: make test-lines PYTHON=python$python" >&2; exit 2 ;;
esac
have_base "${BASE_IMAGE:-debian:forky-slim}" binlake/debian:forky ca-certificates forky
docker build --network host -t binlake/pythons:forky - > "$work/build.log" 2>&1 << DOCKERFILE || { tail -n 30 "$work/build.log" >&2; exit 1; }
FROM $base
# Java 17 is of an older release; the wheel that brings one lacks a module which Spark 4 asks for.
RUN echo "deb \$(grep -rhoE "https?://[^ ]+/debian/?" /etc/apt/sources.list* | head -n 1) bookworm main" > /etc/apt/sources.list.d/java.list
RUN apt-get -o Acquire::Check-Valid-Until=false update && apt-get install -y --no-install-recommends ca-certificates make procps python3.13-venv python3.14-venv openjdk-17-jre-headless
DOCKERFILE

mkdir -p "$work/tree" "$HOME/.cache"
(cd "$here/.." && git ls-files -z | tar --null --files-from=- -c) | tar -C "$work/tree" -x
status=0
docker run --rm --network host --volume "$work/tree:/binlake" --workdir /binlake --volume "$HOME/.cache:/root/.cache" \
  binlake/pythons:forky make test-lines "PYTHON=python$python" "LINES=$lines" || status=$?
cp "$work/tree/lines/results.json" "$here/../lines/results.json"
exit "$status"
