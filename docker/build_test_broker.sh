#!/bin/bash
# Builds the image of the test broker: docker/build_test_broker.sh [TAG]          (default binlake/kafka:3.9.1)
#
# Base: $BASE_IMAGE, a public JRE 17 image; where no registry answers, docker/base_image.sh makes one. The jars are those
# of the embedded broker.
set -eu

tag=${1:-binlake/kafka:3.9.1}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-$here/../.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "docker/build_test_broker.sh: $*"; }
. "$here/base_image.sh"

have_base "${BASE_IMAGE:-eclipse-temurin:17-jre}" binlake/jre:17-bookworm ca-certificates,openjdk-17-jre-headless

mkdir -p "$work/context/libs"
(cd "$here/.." && "$python" -m embedded.jars kafka) > "$work/jars.txt"
while read -r jar; do cp -p "$jar" "$work/context/libs/"; done < "$work/jars.txt"
cp -p "$here/test_broker_entry.sh" "$work/context/"

docker build --quiet --build-arg "BASE_IMAGE=$base" -t "$tag" -f "$here/test_broker.Dockerfile" "$work/context" > "$work/build.log" 2>&1 ||
  { cat "$work/build.log" >&2; exit 1; }
say "built $tag"
