# shellcheck shell=bash
# Sourced by ./gristway for its command `wheel`.

# make_wheel [DEST]: a Python wheel with a Java runtime inside, for machines of this kind that have
# no Java, in the folder DEST or the current one. Prints its path.
make_wheel() {
  local destination=${1:-.} usage='usage: gristway wheel [DEST]' modules strip=--strip-debug wheel
  case $destination in
    -h | --help)
      echo "$usage"
      echo 'Makes a Python wheel with a Java runtime inside, in the folder DEST or the current one.'
      return 0
      ;;
  esac
  if (($# > 1)) || [[ $destination == -* ]]; then
    echo "gristway: $usage" >&2
    return 2
  fi
  find_jdk jlink
  python3 -m pip --version >/dev/null 2>&1 ||
    lacks "no python3 with pip here: install both (for example the packages python3 and python3-pip)"
  mkdir -p -- "$destination"
  destination=$(cd -- "$destination" && pwd)
  ! is_stale || build

  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  echo 'gristway: making a Java runtime…' >&2
  # The modules that Gristway's own classes use. The libraries in the jar could use more (Java
  # Beans, XML, SQL), for classes of theirs that nothing here calls.
  modules=$("$JAVA_HOME/bin/jdeps" --ignore-missing-deps --multi-release 25 \
    -include 'org\.gristway\..*' --print-module-deps "$jar")
  # Without objcopy only Java's debug information can be left out.
  hash objcopy 2>/dev/null || strip=--strip-java-debug-attributes
  # The archive of the runtime's own classes costs 13 MB and saves 0.2 s at every start. There is no
  # start-up cache of Gristway's classes: the JVM refuses one whose jar has another time than when
  # the cache was made, and installing a wheel gives files the time of their installation.
  checked "$JAVA_HOME/bin/jlink" --add-modules "$modules" "$strip" --no-header-files \
    --no-man-pages --compress zip-6 --generate-cds-archive --output "$work/runtime"
  # One for heaps of more than 32 GB.
  rm -f "$work"/runtime/lib/server/classes_*nocoops*.jsa
  echo 'gristway: packing the wheel…' >&2
  checked python3 -m pip wheel --no-deps --wheel-dir "$work/wheel" \
    --config-settings "runtime=$work/runtime" "$root/python"
  wheel=$(echo "$work"/wheel/*.whl)
  mv -f -- "$wheel" "$destination/"
  echo "$destination/${wheel##*/}"
}

# checked COMMAND…: runs it, and shows what it says only if it fails.
checked() {
  "$@" </dev/null >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    lacks "${1##*/} failed, as it says above"
  }
}
