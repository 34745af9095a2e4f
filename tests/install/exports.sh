#!/bin/sh
# Shows that the shared library shows hapax_* to whoever links it, every function
# of the header, and nothing else.
#   exports.sh LIBRARY HEADER
set -eu
shown=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sed 's/@.*//' | sort)
declared=$(sed -n 's/^HAPAX_API .*[ *]\(hapax_[a-z0-9_]*\)(.*/\1/p' "$2" | sort)
if [ "$shown" != "$declared" ]; then
	printf 'the library shows:\n%s\n\nthe header declares:\n%s\n' "$shown" "$declared" >&2
	exit 1
fi
