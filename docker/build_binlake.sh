#!/bin/bash
# Builds the image of binlake: docker/build_binlake.sh [TAG]          (default binlake:0.1.0)
#
# Base: $BASE_IMAGE, a Debian; where no registry answers, docker/base_image.sh makes one.
set -eu

tag=${1:-binlake:0.1.0}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "docker/build_binlake.sh: $*"; }
. "$here/base_image.sh"

have_base "${BASE_IMAGE:-debian:bookworm-20250520-slim}" binlake/debian:bookworm ca-certificates
# The classic builder takes no ignore file of another name than .dockerignore, so the context is laid out here.
cd "$here/.."
mkdir "$work/context"
sed -n 's/^!//p' docker/binlake.Dockerfile.dockerignore | xargs cp -R --parents --target-directory="$work/context"
find "$work/context" \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +
docker build --network host --build-arg "BASE_IMAGE=$base" -t "$tag" -f "$here/binlake.Dockerfile" "$work/context" \
  > "$work/build.log" 2>&1 || { tail -n 60 "$work/build.log" >&2; exit 1; }
say "built $tag, $(docker image inspect --format '{{.Size}}' "$tag" | awk '{printf "%d MB", $1 / 1e6}')"
