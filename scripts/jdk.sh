# shellcheck shell=bash
# Sourced by ./gristway and ./build: finds JDK 25 and Maven, and sees to a UTF-8 locale.
# Every start of gristway pays for this, so it uses shell builtins wherever one does.

# lacks WHAT: one line, and the status that says this machine misses something.
lacks() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 3
}

# jdk_major HOME TOOL: sets $major to the Java version in HOME, or to 0 if TOOL is not there. The
# release file tells it without the cost of starting java.
jdk_major() {
  local line
  major=0
  [[ -x $1/bin/java && -x $1/bin/$2 && -r $1/release ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ $line =~ ^JAVA_VERSION=\"([0-9]+) ]]; then
      major=${BASH_REMATCH[1]}
      return 0
    fi
  done <"$1/release"
}

# find_jdk TOOL: sets JAVA_HOME to the first Java 25 that has bin/TOOL (javac, where something is
# to be built; java, to run what is built), or to the first newer one if there is no 25.
find_jdk() {
  local tool=$1 home java newer='' major
  local -a homes=("${GRISTWAY_JAVA_HOME:-}" "${JAVA_HOME:-}")
  if hash java 2>/dev/null; then
    java=${BASH_CMDS[java]}
    # Most often a chain of links, of which only the last one lies in a JDK.
    [[ ! -L $java ]] || java=$(readlink -f -- "$java") || java=''
    homes+=("${java%/bin/java}")
  fi
  homes+=(/usr/lib/jvm/* /usr/java/* /opt/*jdk* /opt/java/*)
  homes+=("${HOME:-}"/.sdkman/candidates/java/* "${HOME:-}"/.jdks/*)
  for home in "${homes[@]}"; do
    [[ -n $home ]] || continue
    jdk_major "$home" "$tool"
    if ((major == 25)); then
      export JAVA_HOME=$home
      return 0
    fi
    ((major < 25)) || newer=${newer:-$home}
  done
  [[ -n $newer ]] || lacks "no JDK 25 here: install one (for example temurin-25-jdk) and, if it is in an unusual place, set GRISTWAY_JAVA_HOME to its folder"
  export JAVA_HOME=$newer
}

# find_maven: checks that mvn is there and not too old. Starts it, so only call this to build.
find_maven() {
  local version=''
  ! hash mvn 2>/dev/null || version=$(mvn -v 2>/dev/null) || true
  [[ $version =~ Maven\ ([0-9]+)\.([0-9]+) ]] &&
    ((BASH_REMATCH[1] > 3 || (BASH_REMATCH[1] == 3 && BASH_REMATCH[2] >= 8))) ||
    lacks "no Maven 3.8 or newer here: install it (for example the package maven) and put its mvn on PATH"
}

# File names are bytes that Java decodes with the locale. Counting characters asks the locale that
# is really in effect, which tells more than its name: one that is not installed has no effect.
utf8_locale() {
  local euro=$'\xe2\x82\xac'
  # Silent, since bash complains where there is no C.UTF-8.
  ((${#euro} == 1)) || { export LC_ALL=C.UTF-8; } 2>/dev/null
}
utf8_locale
