# Prints the table of tests by tag and fails if it shows a test that should have run and did not.
# Input: the floors (tag floor), then files of tag, ran, failed, skipped, reasons, split by tabs.
# Variables: require (tags that may not skip, split by commas), partial (1: do not check floors).
BEGIN {
  FS = "\t"
  count = split("java python torch system", tags, " ")
  for (i = 1; i <= count; i++) known[tags[i]] = 1
  required_count = split(require, names, ",")
  for (i = 1; i <= required_count; i++) {
    gsub(/ /, "", names[i])
    if (names[i] == "") continue
    required[names[i]] = 1
    if (!(names[i] in known)) problem("GRISTWAY_REQUIRE names " names[i] ", which is no tag")
  }
}

function problem(text) { problems[++problem_count] = text }

# The first file; FNR == NR would take the second for it when the first is empty.
FILENAME == ARGV[1] {
  split($0, words, " ")
  if (words[1] != "" && words[1] !~ /^#/) floor[words[1]] = words[2] + 0
  next
}

$1 == "error" { problem($5); next }

!($1 in known) { problem("a count for " $1 ", which is no tag, in " FILENAME); next }

{
  ran[$1] += $2
  failed[$1] += $3
  skipped[$1] += $4
  reason_count = split($5, reasons, "; ")
  for (i = 1; i <= reason_count; i++) {
    if (seen[$1, reasons[i]]++) continue
    why[$1] = why[$1] (why[$1] == "" ? "" : "; ") reasons[i]
  }
}

END {
  printf "\n%-6s | %6s | %7s | %s\n", "tag", "ran", "skipped", "why"
  for (i = 1; i <= count; i++) {
    tag = tags[i]
    note = why[tag]
    if (failed[tag]) note = failed[tag] " failed" (note == "" ? "" : "; " note)
    printf "%-6s | %6d | %7d | %s\n", tag, ran[tag], skipped[tag], note
    if (tag in required && skipped[tag]) {
      problem(tag ": " skipped[tag] " skipped, and GRISTWAY_REQUIRE names it")
    }
    # A tag that was skipped as a whole lacks what it needs on this machine, and says so.
    excused = !ran[tag] && skipped[tag] && why[tag] != "" && !(tag in required)
    if (!partial && !excused && ran[tag] < floor[tag]) {
      problem(tag ": " ran[tag] + 0 " ran, fewer than the floor of " floor[tag])
    }
  }
  if (partial) print "(part of the tests only: floors not checked)"
  fflush()
  for (i = 1; i <= problem_count; i++) print "build: " problems[i] > "/dev/stderr"
  exit problem_count > 0
}
