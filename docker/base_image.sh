# Sourced by the scripts beside it. have_base IMAGE FALLBACK PACKAGES [RELEASE] sets `base` to IMAGE where it is here or
# can be pulled. Where no registry answers, FALLBACK is bootstrapped from the packages of a release of Debian (bookworm);
# that needs root and debootstrap, and about a minute, once. It trusts the certificates that this machine's owner added.

have_image() { docker image inspect "$1" > /dev/null 2>&1; }

have_base() {
  local image=$1 fallback=$2 packages=$3 release=${4:-bookworm} problem
  if have_image "$image"; then
    base=$image
  elif have_image "$fallback"; then
    base=$fallback
  elif problem=$(timeout 300 docker pull "$image" 2>&1); then
    base=$image
  else
    say "$image cannot be pulled: $(tail -n 1 <<< "$problem")"
    bootstrap "$fallback" "$packages" "$release"
    base=$fallback
  fi
  say "base $base"
}

bootstrap() {
  local tag=$1 packages=$2 release=$3 root=$work/root
  command -v debootstrap > /dev/null || { say "no registry answers and debootstrap is not installed" >&2; exit 1; }
  [ "$(id -u)" = 0 ] || { say "no registry answers, and debootstrap needs root" >&2; exit 1; }
  say "bootstrapping $tag from Debian's packages"
  # a debootstrap that is older than the release does not know its name: all releases are made like sid
  cp -R /usr/share/debootstrap "$work/debootstrap"
  ln -sf sid "$work/debootstrap/scripts/$release"
  if ! DEBOOTSTRAP_DIR=$work/debootstrap debootstrap --variant=minbase --include="$packages" "$release" "$root" > "$work/debootstrap.log" 2>&1; then
    tail -n 20 "$work/debootstrap.log" >&2
    exit 1
  fi
  # what this machine trusts besides: the certificates of a company's own mirror
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2> /dev/null || true
  chroot "$root" update-ca-certificates > /dev/null 2>&1
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  mkdir -p "$root/usr/share/man/man1" # Java's packages link their pages there
  tar -C "$root" -c . | docker import - "$tag" > /dev/null
}

# Engines without the buildx plugin have the classic builder only.
docker buildx version > /dev/null 2>&1 || export DOCKER_BUILDKIT=0
