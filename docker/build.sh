#!/bin/bash
# Builds the image of the test broker: docker/build.sh [TAG]          (default binlake/kafka:3.9.1)
#
# Base: $BASE_IMAGE, a public JRE 17 image. Where no registry answers, a base is bootstrapped here from Debian's
# packages (needs root and debootstrap; about a minute, once). The jars are those of the embedded broker.
set -eu

tag=${1:-binlake/kafka:3.9.1}
base=${BASE_IMAGE:-eclipse-temurin:17-jre}
local_base=binlake/jre:17-bookworm
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-$here/../.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "docker/build.sh: $*"; }
have_image() { docker image inspect "$1" > /dev/null 2>&1; }

bootstrap_base() {
  command -v debootstrap > /dev/null || { say "no registry answers and debootstrap is not installed" >&2; exit 1; }
  [ "$(id -u)" = 0 ] || { say "no registry answers, and debootstrap needs root" >&2; exit 1; }
  say "bootstrapping $local_base from Debian's packages"
  local root=$work/root
  if ! debootstrap --variant=minbase --include=ca-certificates,openjdk-17-jre-headless bookworm "$root" \
      > "$work/debootstrap.log" 2>&1; then
    tail -n 20 "$work/debootstrap.log" >&2
    exit 1
  fi
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  tar -C "$root" -c . | docker import - "$local_base" > /dev/null
}

if have_image "$base"; then
  say "base $base"
elif have_image "$local_base"; then
  say "base $local_base (bootstrapped earlier)"
  base=$local_base
elif timeout 300 docker pull "$base" > "$work/pull.log" 2>&1; then
  say "base $base (pulled)"
else
  say "$base cannot be pulled: $(tail -n 1 "$work/pull.log")"
  bootstrap_base
  base=$local_base
fi

mkdir -p "$work/context/libs"
(cd "$here/.." && "$python" -m embedded.jars kafka) > "$work/jars.txt"
while read -r jar; do cp -p "$jar" "$work/context/libs/"; done < "$work/jars.txt"
cp -p "$here/entry.sh" "$work/context/"

# Engines without the buildx plugin have the classic builder only.
docker buildx version > /dev/null 2>&1 || export DOCKER_BUILDKIT=0
docker build --quiet --build-arg "BASE_IMAGE=$base" -t "$tag" -f "$here/Dockerfile" "$work/context" > "$work/build.log" 2>&1 ||
  { cat "$work/build.log" >&2; exit 1; }
say "built $tag"
